//! Tests of the public checkers. The checkers must accept valid environments, and the error for an invalid
//! environment must name its mistake.

use crate::spaces::ColouredGraphs;
use gfn::contract::{Budget, check_action_type, check_env, check_graph_env};
use gfn::env::Direction;
use gfn::examples::{Chain, Triangles};
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, Edge, Free, GraphActionType, GraphEnv, GraphKind, GraphRules,
    GraphSchema, GraphState, GraphView, Head, Move, MoveMask, Node, Reverse, Semantics, SetEdgeAttr,
    SetNodeAttr,
};
use gfn::{Result, Rng};

/// Rules that limit the number of edges by restricting forward moves only.
#[derive(Clone, Debug)]
struct MaxEdges {
    max_edges: usize,
}

impl GraphRules for MaxEdges {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        if graph.n_edges() >= self.max_edges {
            moves.forbid_all();
        }
    }
}

fn schema(kind: GraphKind, max_nodes: usize) -> GraphSchema {
    GraphSchema {
        node_classes: 2,
        edge_classes: 2,
        node_attributes: vec![2, 1],
        edge_attributes: vec![2],
        ..GraphSchema::plain(kind, max_nodes)
    }
}

/// Builds a graph environment from an action set, an initial graph and a maximum number of nodes.
fn parts(actions: ActionSet, initial: GraphState, max_nodes: usize) -> GraphEnv {
    let schema = schema(initial.kind(), max_nodes);
    GraphEnv::new(Free, actions, initial).and_then(|env| env.with_schema(schema)).unwrap()
}

fn rng() -> Rng {
    Rng::seeded(3)
}

#[test]
fn right_environments_pass() {
    check_env(&Chain::new(12), Budget::thorough().with_walks(30), &mut rng()).unwrap();
    check_graph_env(&Triangles::env(), Budget::thorough().with_walks(30), &mut rng()).unwrap();
    check_graph_env(&ColouredGraphs::env(5), Budget::thorough().with_walks(40), &mut rng()).unwrap();
    for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
        for kind in [GraphKind::Directed, GraphKind::Undirected] {
            let grown = ActionSet::new(semantics)
                .with(AddNode::free(2, 4))
                .with(AddEdge::new(2))
                .with(SetNodeAttr::new(&[2, 1]).unwrap())
                .with(SetEdgeAttr::new(&[2]).unwrap());
            // The initial graph has one edge, which stays in all states.
            let mut initial = GraphState::with_nodes(kind, 2);
            initial.add_edge(0, 1, Edge::default()).unwrap();
            check_graph_env(&parts(grown, initial, 4), Budget::thorough().with_walks(6), &mut rng()).unwrap();
        }
        // The environment removes edges from a complete graph.
        let mut full = GraphState::with_nodes(GraphKind::Undirected, 4);
        for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            full.add_edge(a, b, Edge::default()).unwrap();
        }
        let fewer = Reverse(AddEdge::new(1));
        let shrinking = ActionSet::new(semantics).with(fewer);
        // With `BackwardRule::Derived`, backward moves can't change the initial graph. Here, however, actions
        // remove the edges of the initial graph, and backward moves add them again. The environment therefore
        // uses `BackwardRule::ByType`, with which each action type computes its backward mask without regard
        // to the initial graph and to the rules for forward moves.
        let env = parts(shrinking, full, 4).with_backward(BackwardRule::ByType);
        check_env(&env, Budget::thorough().with_walks(20), &mut rng()).unwrap();
    }
}

fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, gfn::Error::Contract { .. }), "{error}");
    error.to_string()
}

#[test]
fn masks_by_type_that_forget_the_environment_are_caught() {
    // Nodes and edges may be added in any order, so an isolated node and any edge may have been the last
    // addition. The backward masks of `BackwardRule::ByType`, which ignore rules for forward moves, assume
    // exactly that.
    let set = || ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(2, 4)).with(AddEdge::new(1));
    let kind = GraphKind::Undirected;
    let capped = |max_edges, rule| {
        let env = GraphEnv::new(MaxEdges { max_edges }, set(), GraphState::new(kind))
            .and_then(|env| env.with_schema(schema(kind, 4)))
            .unwrap();
        env.with_backward(rule)
    };
    check_graph_env(&capped(usize::MAX, BackwardRule::ByType), Budget::thorough().with_walks(30), &mut rng())
        .unwrap();
    // No action is legal after the second edge, so an isolated node can't have been the last addition. The
    // backward masks of `BackwardRule::ByType` don't take that into account, so the check must fail.
    let found =
        message(check_env(&capped(2, BackwardRule::ByType), Budget::thorough().with_walks(30), &mut rng()));
    assert!(
        found.contains("the reverse of a legal backward move is a legal forward move of the parent"),
        "{found}"
    );
    check_graph_env(&capped(2, BackwardRule::Derived), Budget::thorough().with_walks(30), &mut rng())
        .unwrap();
}

/// Tests environments with several action types. Each type must remove only those nodes, edges and values
/// that it could have added itself.
#[test]
fn types_that_know_fewer_classes_than_others_leave_these_alone() {
    let first = AddNode::first(2);
    let plain = AddNode::attached(1, 1, 4);
    let few = SetNodeAttr::new(&[1, 1]).unwrap();
    let of_types = |rule, attached| {
        let set = ActionSet::new(Semantics::UpToIsomorphism).with(first).with(plain);
        let set = set.with(AddEdge::new(1).keeping_connected());
        let set = match attached {
            true => set.with(AddNode::attached(2, 2, 4)),
            false => set.with(few.clone()).with(SetNodeAttr::new(&[2]).unwrap()),
        };
        parts(set, GraphState::new(GraphKind::Undirected), 4).with_backward(rule)
    };
    for attached in [true, false] {
        for rule in [BackwardRule::Derived, BackwardRule::ByType] {
            check_graph_env(&of_types(rule, attached), Budget::thorough().with_walks(20), &mut rng())
                .unwrap();
        }
    }
    let mut marked = Node::from_class(1);
    marked.attributes.set(0, 2);
    let edges = [(0, 1, Edge::from_class(1)), (1, 2, Edge::default())];
    let nodes = [marked, Node::default(), Node::from_class(1)];
    let graph = GraphState::from_parts(GraphKind::Undirected, &nodes, &edges).unwrap();
    let legal = |action_type: &dyn GraphActionType| {
        let head = action_type.head(Direction::Backward).unwrap();
        let mut mask = vec![false; head.anchor.rows(&graph) * head.width];
        action_type.mask(Direction::Backward, Semantics::UpToIsomorphism, (&graph).into(), &mut mask);
        mask
    };
    assert_eq!(legal(&AddNode::attached(1, 2, 4)), [false; 3]);
    assert_eq!(legal(&AddNode::attached(2, 1, 4)), [false, false, true]);
    assert_eq!(legal(&AddNode::attached(2, 1, 2)), [false; 3]);
    assert_eq!(legal(&AddEdge::new(1)), [false, true]);
    assert_eq!(legal(&AddEdge::new(2).at_most(1)), [false; 2]);
    assert_eq!(legal(&few), [false; 6]);
    assert_eq!(legal(&SetNodeAttr::new(&[2]).unwrap()), [true, false, false]);
}

#[test]
fn an_environment_that_leaves_no_way_back_is_caught() {
    struct WrongReachability;
    impl GraphRules for WrongReachability {
        fn is_reachable(&self, graph: &GraphState) -> bool {
            graph.n_edges() != 1
        }
    }
    let kind = GraphKind::Undirected;
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::new(WrongReachability, actions, GraphState::with_nodes(kind, 3))
        .and_then(|env| env.with_schema(schema(kind, 3)))
        .unwrap();
    let found = message(check_graph_env(&env, Budget::thorough().with_walks(30), &mut rng()));
    assert!(found.contains("every state but the initial state has a legal backward move"), "{found}");
}

#[test]
fn a_schema_that_is_too_small_is_caught() {
    let actions = ActionSet::new(Semantics::Labelled).with(AddNode::free(2, 3));
    let kind = GraphKind::Directed;
    let check = |schema| {
        let env = GraphEnv::new(Free, actions.clone(), GraphState::new(kind))
            .and_then(|env| env.with_schema(schema))
            .unwrap();
        check_graph_env(&env, Budget::thorough().with_walks(30), &mut rng())
    };
    check(schema(kind, 3)).unwrap();
    assert!(message(check(GraphSchema { node_classes: 1, ..schema(kind, 3) })).contains("schema"));
    assert!(message(check(schema(kind, 2))).contains("schema"));
}

/// An action type that adds an edge. Each variant has a different mistake.
#[derive(Clone, Copy, Debug)]
enum BrokenAddEdge {
    /// The backward action removes nothing.
    UndoDoesNothing,
    /// The reverse of a move isn't legal in the child.
    BackwardMaskEmpty,
    /// The reverse of a reverse has another class than the original move.
    ForgetsClass,
    /// Two legal slots represent the same move.
    BothOrders,
}

impl GraphActionType for BrokenAddEdge {
    fn name(&self) -> &str {
        "broken"
    }
    fn head(&self, direction: Direction) -> Option<Head> {
        AddEdge::new(2).head(direction)
    }
    fn mask(&self, direction: Direction, semantics: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        match (self, direction) {
            (Self::BackwardMaskEmpty, Direction::Backward) => {}
            (Self::BothOrders, Direction::Forward) if graph.n_edges() == 0 => mask.fill(true),
            _ => AddEdge::new(2).mask(direction, semantics, graph, mask),
        }
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        match (self, direction) {
            (Self::UndoDoesNothing, Direction::Backward) => Ok(()),
            _ => AddEdge::new(2).apply(direction, graph, action),
        }
    }
    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        match (self, direction) {
            (Self::ForgetsClass, Direction::Backward) => action,
            _ => AddEdge::new(2).reverse(direction, before, action),
        }
    }
}

#[test]
fn broken_action_types_are_caught_and_right_ones_pass() {
    let mut path = GraphState::with_nodes(GraphKind::Undirected, 4);
    for a in 0..3 {
        path.add_edge(a, a + 1, Edge::from_class(a as u16 % 2)).unwrap();
    }
    let graphs = [GraphState::with_nodes(GraphKind::Undirected, 3), path];
    let cases = [
        (BrokenAddEdge::UndoDoesNothing, "the reverse of a move restores the graph"),
        (BrokenAddEdge::BackwardMaskEmpty, "among the backward moves of the child"),
        (BrokenAddEdge::ForgetsClass, "is the move itself"),
        (BrokenAddEdge::BothOrders, "can be applied"),
    ];
    for (broken, expected) in cases {
        let found = message(check_action_type(&broken, Semantics::Labelled, &graphs));
        assert!(found.contains(expected), "{found}");
        // The check of an environment that uses the action type must find the mistake, too.
        let actions = ActionSet::new(Semantics::Labelled).with(broken);
        let env = parts(actions, GraphState::with_nodes(GraphKind::Undirected, 3), 3);
        assert!(check_env(&env, Budget::thorough().with_walks(10), &mut rng()).is_err(), "{broken:?}");
    }
    for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
        let right: [&dyn GraphActionType; 7] = [
            &AddEdge::new(2),
            &AddNode::free(2, 6),
            &AddNode::attached(2, 2, 6),
            &SetNodeAttr::new(&[2, 1]).unwrap(),
            &SetEdgeAttr::new(&[3]).unwrap(),
            &Reverse(AddEdge::new(2)),
            &Reverse(SetNodeAttr::new(&[2, 1]).unwrap()),
        ];
        for action_type in right {
            check_action_type(action_type, semantics, &graphs).unwrap();
        }
    }
}

/// Tests callbacks that are called repeatedly during a check of an environment, or during a search for the
/// cheapest pairing of points. If a callback returns an error, the check or the search must stop with this
/// error.
#[test]
fn a_watching_function_can_end_it() {
    let enough = || -> gfn::Error { gfn::Error::config("states", "more", "enough of them") };
    let found = check_env(&Chain::new(12), Budget::thorough().with_watch(&|| Err(enough())), &mut rng());
    assert!(found.unwrap_err().to_string().contains("enough of them"));
    let found =
        check_graph_env(&Triangles::env(), Budget::thorough().with_watch(&|| Err(enough())), &mut rng());
    assert!(found.unwrap_err().to_string().contains("enough of them"));
    let points = gfn::env::Reals::from_flat(1, (0..20).map(f64::from).collect()).unwrap();
    let mut left = 5;
    let mut watch = || {
        left -= 1;
        if left == 0 { Err(enough()) } else { Ok(()) }
    };
    let found = gfn_extras::transport::wasserstein2_watched(&points, &points, &mut watch);
    assert!(found.unwrap_err().to_string().contains("enough of them") && left == 0);
}
