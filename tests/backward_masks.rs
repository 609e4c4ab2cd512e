//! The backward masks that the library derives from an environment's forward moves are compared with masks
//! computed by the definition of a parent. The cost of deriving them is measured.

use std::time::{Duration, Instant};

use gfn::Rng;
use gfn::env::{Direction, DiscreteEnv};
use gfn::graph::{
    ActionKind, ActionSet, AddEdge, AddNode, Attributes, Edge, GraphActionType, GraphEnv, GraphKind,
    GraphRules, GraphSchema, GraphState, GraphStates, Move, MoveMask, Node, Reverse, Semantics, SetEdgeAttr,
    SetNodeAttr,
};

/// A restriction of the forward masks.
#[derive(Clone, Copy, Debug)]
enum Restriction {
    Nothing,
    /// The restriction forbids edges to a node with a lower label, so that no directed cycle can be closed.
    Acyclic,
    /// The restriction forbids the first legal slot of each action type. Whether a slot is legal therefore
    /// depends on other slots.
    AllButTheFirst,
}

struct Parts {
    restriction: Restriction,
    /// `true` if graphs with an odd number of edges are declared unreachable.
    even_edges: bool,
}

impl GraphRules for Parts {
    fn restrict(&self, _: &GraphState, moves: &mut MoveMask<'_>) {
        match self.restriction {
            Restriction::Nothing => {}
            Restriction::Acyclic => moves.retain(|action| action.a < action.b),
            Restriction::AllButTheFirst => {
                let mut first = true;
                moves.retain(|_| std::mem::take(&mut first));
            }
        }
    }
    fn is_reachable(&self, graph: &GraphState) -> bool {
        !self.even_edges || graph.n_edges().is_multiple_of(2)
    }
}

fn parts(
    actions: ActionSet,
    initial: GraphState,
    (restriction, even_edges): (Restriction, bool),
) -> GraphEnv {
    let schema = GraphSchema {
        node_classes: 2,
        edge_classes: 2,
        node_attributes: vec![2],
        edge_attributes: vec![1],
        ..GraphSchema::plain(initial.kind(), 8)
    };
    GraphEnv::new(Parts { restriction, even_edges }, actions, initial)
        .and_then(|env| env.with_schema(schema))
        .unwrap()
}

/// Builds an initial graph with two different nodes and an edge.
fn scaffold(kind: GraphKind) -> GraphState {
    let marked = Node { class: 1, attributes: Attributes::new(&[1]).unwrap() };
    GraphState::from_parts(kind, &[Node::default(), marked], &[(0, 1, Edge::from_class(1))]).unwrap()
}

fn environments() -> Vec<GraphEnv> {
    let mut out = Vec::new();
    for kind in [GraphKind::Directed, GraphKind::Undirected] {
        for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
            let set = || ActionSet::new(semantics);
            let grown = || {
                set()
                    .with(AddNode::first(2))
                    .with(AddNode::attached(2, 2, 8))
                    .with(AddEdge::new(2).keeping_connected())
            };
            let free = || {
                let nodes = set().with(AddNode::free(2, 8)).with(SetNodeAttr::new(&[2]).unwrap());
                nodes.with(AddEdge::new(2).at_most(9)).with(SetEdgeAttr::new(&[1]).unwrap())
            };
            let edges = || set().with(AddEdge::new(2));
            for restriction in [Restriction::Nothing, Restriction::AllButTheFirst] {
                out.push(parts(grown(), GraphState::new(kind), (restriction, false)));
                out.push(parts(free(), scaffold(kind), (restriction, false)));
                out.push(parts(free(), GraphState::new(kind), (restriction, true)));
                let removed = set().with(Reverse(AddEdge::new(1))).with(Reverse(AddNode::free(1, 8)));
                out.push(parts(removed, GraphState::with_nodes(kind, 4), (restriction, false)));
            }
            out.push(parts(edges(), GraphState::with_nodes(kind, 5), (Restriction::Acyclic, false)));
        }
    }
    out
}

/// Draws a random graph with attributes that contains the initial graph.
fn random_graph(initial: &GraphState, rng: &mut Rng) -> GraphState {
    let mut graph = initial.clone();
    while graph.n_nodes() < 8 && rng.below(6) > 0 {
        let attributes = Attributes::new(&[rng.below(6).saturating_sub(3) as u8]).unwrap();
        graph.add_node(Node { class: rng.below(2) as u16, attributes });
    }
    let n = graph.n_nodes();
    for _ in 0..rng.below(2 * n + 1) {
        let attributes = Attributes::new(&[(rng.below(5) / 4) as u8]).unwrap();
        let edge = Edge { class: rng.below(2) as u16, attributes };
        let _ = graph.add_edge(rng.below(n) as u32, rng.below(n) as u32, edge);
    }
    graph
}

/// Returns `true` if `graph` contains the nodes, edges and attributes of `initial`.
fn contains(graph: &GraphState, initial: &GraphState) -> bool {
    let keeps = |then: Attributes, now: Attributes| {
        then.values().iter().zip(now.values()).all(|(t, n)| *t == 0 || t == n)
    };
    let node = |a: u32| {
        let then = initial.node(a).unwrap();
        let now = graph.node(a);
        now.is_some_and(|now| now.class == then.class && keeps(then.attributes, now.attributes))
    };
    let edge = |(a, b): (u32, u32)| {
        let then = initial.edge(a, b).unwrap();
        let now = graph.edge(a, b);
        now.is_some_and(|now| now.class == then.class && keeps(then.attributes, now.attributes))
    };
    (0..initial.n_nodes() as u32).all(node) && initial.edges().all(edge)
}

/// Returns `true` if the backward move of a slot leads to a parent of the graph, by definition: the forward
/// move that undoes the backward move must be legal in the parent.
fn is_parent(
    env: &GraphEnv,
    kind: ActionKind,
    action_type: &dyn GraphActionType,
    graph: &GraphState,
    slot: usize,
) -> bool {
    let back = Direction::Backward;
    let on = Direction::Forward;
    let undo = action_type.head(back).unwrap().decode(graph, slot);
    if action_type
        .removed_nodes(back, graph, undo)
        .iter()
        .any(|&a| (a as usize) < env.initial_graphs()[0].n_nodes())
    {
        return false;
    }
    let redo = action_type.reverse(back, graph, undo);
    // Removing nodes shifts the labels of all nodes after them.
    let gone = action_type.removed_nodes(back, graph, undo);
    let shifted = |a: u32| (0..a).filter(|b| !gone.contains(b)).count() as u32;
    let redo = Move { a: shifted(redo.a), b: shifted(redo.b), ..redo };
    let mut parent = graph.clone();
    if action_type.apply(back, &mut parent, undo).is_err() || !env.rules().is_reachable(&parent) {
        return false;
    }
    if contains(graph, &env.initial_graphs()[0]) && !contains(&parent, &env.initial_graphs()[0]) {
        return false;
    }
    let Ok(slot) = env.actions().encode(on, &parent, kind, redo) else {
        return false;
    };
    env.masks(on, &GraphStates::from(vec![parent])).row(0)[slot as usize]
}

#[test]
fn a_derived_mask_holds_the_moves_that_some_parent_permits() {
    let mut rng = Rng::seeded(1);
    let mut n_kept = 0;
    let mut n_dropped = 0;
    for (place, env) in environments().iter().enumerate() {
        let graphs: Vec<_> = (0..60).map(|_| random_graph(&env.initial_graphs()[0], &mut rng)).collect();
        let masks = env.masks(Direction::Backward, &GraphStates::from(graphs.clone()));
        for (row, graph) in graphs.iter().enumerate() {
            let mut expected = Vec::new();
            for (kind, action_type, head) in env.actions().heads(Direction::Backward) {
                let mut mask = vec![false; head.anchor.rows(graph) * head.width];
                action_type.mask(Direction::Backward, env.actions().semantics(), graph.into(), &mut mask);
                for (slot, candidate) in mask.into_iter().enumerate() {
                    let kept = candidate && is_parent(env, kind, action_type, graph, slot);
                    n_dropped += usize::from(candidate && !kept);
                    expected.push(kept);
                }
            }
            n_kept += expected.iter().filter(|kept| **kept).count();
            assert_eq!(masks.row(row), expected, "environment {place}: {graph:?}");
        }
    }
    assert!(n_kept > 3000 && n_dropped > 3000, "{n_kept} kept, {n_dropped} dropped");
}

#[test]
fn an_edge_can_be_added_exactly_where_none_is() {
    let mut rng = Rng::seeded(2);
    for (kind, n) in [GraphKind::Directed, GraphKind::Undirected]
        .into_iter()
        .flat_map(|kind| [0, 1, 7, 64, 70].map(|n| (kind, n)))
    {
        let mut graph = GraphState::with_nodes(kind, n);
        for _ in 0..n * n / 3 {
            let _ = graph.add_edge(rng.below(n) as u32, rng.below(n) as u32, Edge::default());
        }
        for classes in [1, 3] {
            let mut mask = vec![false; n * n * classes];
            AddEdge::new(classes as u16).mask(
                Direction::Forward,
                Semantics::Labelled,
                (&graph).into(),
                &mut mask,
            );
            for (slot, legal) in mask.iter().enumerate() {
                let a = (slot / classes / n) as u32;
                let b = (slot / classes % n) as u32;
                let pair = if graph.is_directed() { a != b } else { a < b };
                assert_eq!(*legal, pair && !graph.has_edge(a, b), "{kind:?}, {n} nodes: ({a}, {b})");
            }
        }
    }
}

#[test]
fn a_graph_without_a_node_is_the_one_that_the_others_induce() {
    let mut rng = Rng::seeded(3);
    for round in 0..200 {
        let kind = [GraphKind::Directed, GraphKind::Undirected][round % 2];
        let mut graph = random_graph(&GraphState::with_nodes(kind, 1 + round % 5), &mut rng);
        let a = rng.below(graph.n_nodes()) as u32;
        let others: Vec<u32> = (0..graph.n_nodes() as u32).filter(|&b| b != a).collect();
        let expected = graph.induced(&others);
        let weight = graph.node(a).unwrap();
        assert_eq!(graph.remove_node(a).unwrap(), weight);
        assert_eq!(graph, expected);
        assert_eq!(graph.has_edge_weights(), expected.has_edge_weights());
    }
}

/// Returns the shortest time of several runs, to reduce the influence of other programs.
fn shortest(mut run: impl FnMut()) -> Duration {
    let times = (0..20).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.min().unwrap()
}

/// Draws a random tree with `n` nodes, and adds up to `n` further edges.
fn tree_and_edges(n: usize) -> GraphState {
    let mut rng = Rng::seeded(4);
    let mut graph = GraphState::with_nodes(GraphKind::Undirected, n);
    for b in 1..n {
        graph.add_edge(rng.below(b) as u32, b as u32, Edge::default()).unwrap();
    }
    for _ in 0..n {
        let _ = graph.add_edge(rng.below(n) as u32, rng.below(n) as u32, Edge::default());
    }
    graph
}

/// Tests the cost of checking whether one graph is a parent of another. The check makes the possible parent
/// and its forward mask. Making the parent must not cost far more than copying a graph, and making the mask
/// not far more than writing its memory.
#[test]
fn a_candidate_costs_little_more_than_writing_it() {
    let graph = tree_and_edges(400);
    let mut mask = vec![false; 400 * 400];
    let written = shortest(|| std::hint::black_box(&mut mask).fill(true));
    let made = shortest(|| {
        AddEdge::new(1).mask(
            Direction::Forward,
            Semantics::Labelled,
            (&graph).into(),
            std::hint::black_box(&mut mask),
        );
    });
    assert!(made < 20 * written, "a mask takes {made:?}, writing it {written:?}");

    let graph = tree_and_edges(2000);
    let edge = graph.edges().next().unwrap();
    // A copy of a graph shares its edges with the original until an edge changes. The removal of an edge
    // therefore makes the program copy all edges, and this time is measured.
    let copied = shortest(|| {
        std::hint::black_box(graph.clone()).remove_edge(edge.0, edge.1).unwrap();
    });
    let removed = shortest(|| {
        std::hint::black_box(graph.clone()).remove_node(3).unwrap();
    });
    assert!(removed < 100 * copied, "removing a node takes {removed:?}, a copy {copied:?}");
}
