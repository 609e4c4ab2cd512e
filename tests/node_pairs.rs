//! Tests of actions that add or remove two nodes at once. The contract checks must pass, backward
//! trajectories must be replayable, and wrong reports of removed nodes must be refused.

use gfn::contract::{Budget, check_action_type, check_graph_env};
use gfn::env::{Direction, EnumerableEnv};
use gfn::graph::{
    ActionSet, Anchor, Edge, GraphActionType, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState,
    GraphView, Head, Move, Node, Reverse, Semantics, SetNodeAttr,
};
use gfn::policy::UniformPolicy;
use gfn::rollout::Container;
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};

/// The nodes that the backward action of [`AddPair`] reports as removed. The action removes two nodes, so
/// only `Both` is a correct report.
#[derive(Clone, Copy, Debug)]
enum ReportedNodes {
    Both,
    /// Reports both removed nodes, but in the opposite of the order in which they were added.
    Swapped,
    One,
}

/// An action type that adds a node of class 0, a node of class 1 and an edge between them. The backward
/// action removes a pair that has no other edges.
#[derive(Clone, Copy, Debug)]
struct AddPair {
    max_nodes: usize,
    reported: ReportedNodes,
}

impl GraphActionType for AddPair {
    fn name(&self) -> &str {
        "add_pair"
    }
    fn head(&self, direction: Direction) -> Option<Head> {
        let anchor = if direction == Direction::Forward { Anchor::Graph } else { Anchor::Edge };
        Some(Head { anchor, width: 1 })
    }
    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        let loose =
            |a: u32| graph.degree(a) == 1 && graph.node(a).is_some_and(|node| node.attributes.is_unset());
        let class = |a: u32| graph.node(a).map_or(0, |node| node.class);
        match direction {
            Direction::Forward => mask.fill(graph.n_nodes() + 2 <= self.max_nodes),
            Direction::Backward => {
                for (legal, (a, b)) in mask.iter_mut().zip(graph.edges()) {
                    *legal = loose(a) && loose(b) && class(a) != class(b);
                }
            }
        }
    }
    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        match direction {
            Direction::Forward => {
                let a = graph.add_node(Node::from_class(0));
                let b = graph.add_node(Node::from_class(1));
                graph.add_edge(a, b, Edge::default())
            }
            Direction::Backward => {
                graph.remove_node(action.a.max(action.b))?;
                graph.remove_node(action.a.min(action.b)).map(|_| ())
            }
        }
    }
    fn reverse(&self, direction: Direction, before: &GraphState, _: Move) -> Move {
        let n = before.n_nodes() as u32;
        match direction {
            Direction::Forward => Move { a: n, b: n + 1, class: 0 },
            Direction::Backward => Move::default(),
        }
    }
    fn removed_nodes(&self, direction: Direction, before: &GraphState, action: Move) -> Vec<u32> {
        if direction == Direction::Forward {
            return Vec::new();
        }
        let mut pair = vec![action.a, action.b];
        pair.sort_by_key(|&a| before.node(a).map(|node| node.class));
        match self.reported {
            ReportedNodes::Both => {}
            ReportedNodes::Swapped => pair.reverse(),
            ReportedNodes::One => pair.truncate(1),
        }
        pair
    }
}

#[derive(Debug)]
struct Pairs;

impl GraphRules for Pairs {
    // The edge within a pair is never removed alone, so every node of a reachable graph has an edge.
    fn is_reachable(&self, graph: &GraphState) -> bool {
        (0..graph.n_nodes() as u32).all(|a| graph.degree(a) > 0)
    }
}

fn schema(max_nodes: usize) -> GraphSchema {
    GraphSchema {
        node_classes: 2,
        node_attributes: vec![2],
        ..GraphSchema::plain(GraphKind::Undirected, max_nodes)
    }
}

/// Builds an environment in which actions add pairs of nodes and set attributes of nodes.
fn growing_env(reported: ReportedNodes) -> GraphEnv {
    let marks = SetNodeAttr::new(&[2]).unwrap();
    let actions =
        ActionSet::new(Semantics::UpToIsomorphism).with(AddPair { max_nodes: 8, reported }).with(marks);
    GraphEnv::new(Pairs, actions, GraphState::new(GraphKind::Undirected))
        .and_then(|env| env.with_schema(schema(8)))
        .unwrap()
}

/// Builds an environment in which forward actions add and remove pairs of nodes, and set attributes of the
/// remaining nodes.
fn coming_and_going_env() -> GraphEnv {
    let pairs = AddPair { max_nodes: 6, reported: ReportedNodes::Both };
    let actions = ActionSet::new(Semantics::UpToIsomorphism).with(pairs).with(Reverse(pairs));
    let actions = actions.with(SetNodeAttr::new(&[2]).unwrap());
    GraphEnv::new(Pairs, actions, GraphState::new(GraphKind::Undirected))
        .and_then(|env| env.with_schema(schema(6)))
        .unwrap()
}

/// Collects the graphs of all states of sampled trajectories.
fn graphs(env: &GraphEnv) -> Vec<GraphState> {
    let walks = Sampler::new(env, &UniformPolicy).forward(60, &mut Rng::seeded(2)).unwrap();
    walks.states().graphs().to_vec()
}

#[test]
fn checkers_pass() {
    let env = growing_env(ReportedNodes::Both);
    check_graph_env(&env, Budget::thorough().with_walks(20), &mut Rng::seeded(1)).unwrap();
    let pairs = AddPair { max_nodes: 8, reported: ReportedNodes::Both };
    for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
        check_action_type(&pairs, semantics, &graphs(&env)).unwrap();
    }
    check_action_type(&Reverse(pairs), Semantics::UpToIsomorphism, &graphs(&env)).unwrap();
}

#[test]
fn walks_taken_backwards_are_replayed_to_the_same_object() {
    let env = growing_env(ReportedNodes::Both);
    let rng = &mut Rng::seeded(1);
    let forward = Sampler::new(&env, &UniformPolicy).forward(300, rng).unwrap();
    let back = Sampler::new(&env, &UniformPolicy).backward(forward.terminal_states(), rng).unwrap();
    let replayed = back.walks(&env).unwrap().replay(&env).unwrap();
    assert!(back.terminal_states().graphs().iter().any(|graph| graph.n_nodes() >= 6));
    assert_eq!(env.keys(replayed.terminal_states()), env.keys(back.terminal_states()));
    assert_eq!(env.keys(replayed.states()), env.keys(back.states()));
}

#[test]
fn forward_moves_that_remove_nodes_are_replayed() {
    let env = coming_and_going_env();
    let rng = &mut Rng::seeded(1);
    let forward = Sampler::new(&env, &UniformPolicy).forward(200, rng).unwrap();
    let sizes: Vec<usize> = forward.states().graphs().iter().map(GraphState::n_nodes).collect();
    assert!(sizes.windows(2).any(|pair| pair[1] > 0 && pair[1] < pair[0]));
    // The replay may give nodes other labels than the trajectory has, so states are compared by keys that
    // don't depend on labels.
    let renamed = forward.walks(&env).unwrap().replay(&env).unwrap();
    assert_eq!(env.keys(renamed.states()), env.keys(forward.states()));
}

#[test]
fn a_wrong_account_of_removed_nodes_is_refused() {
    for (reported, words) in [
        (ReportedNodes::One, "each once, and no other"),
        (ReportedNodes::Swapped, "in the order in which the reverse adds them"),
    ] {
        let env = growing_env(reported);
        let wrong =
            check_action_type(&AddPair { max_nodes: 8, reported }, Semantics::UpToIsomorphism, &graphs(&env));
        let found = wrong.unwrap_err().to_string();
        assert!(found.contains(words) && found.contains("add_pair") && found.contains("nodes"), "{found}");
    }
    let env = growing_env(ReportedNodes::One);
    let rng = &mut Rng::seeded(1);
    let forward = Sampler::new(&env, &UniformPolicy).forward(50, rng).unwrap();
    let back = Sampler::new(&env, &UniformPolicy).backward(forward.terminal_states(), rng).unwrap();
    let longest = (0..50).max_by_key(|&i| back.terminal_states().graphs()[i].n_nodes()).unwrap();
    let error = back.select([longest]).unwrap().walks(&env).unwrap_err();
    assert!(matches!(error, Error::Contract { .. }), "{error}");
    assert!(error.to_string().contains("check_action_type"), "{error}");
}
