//! Tests of graphs that have too many nodes for a stored adjacency matrix. Growth across the limit on stored
//! matrices and back, and network outputs, must be correct.

use gfn::Rng;
use gfn::env::{Direction, DiscreteEnv, Env};
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Edge, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState, GraphStates,
    Node, Semantics, labelled_key,
};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::Quantities;
use gfn::policy::{GraphPolicy, Policy, UniformPolicy};
use gfn::rollout::Sampler;
use tch::{Device, Kind, Tensor};

const BORDER: usize = 2_048;

struct Full(usize);

impl GraphRules for Full {
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() == self.0
    }
}

/// Builds an environment whose initial graph is a path of `start` nodes. Nodes are attached until there are
/// `n` nodes.
fn growth(start: usize, n: usize) -> GraphEnv {
    let edges: Vec<_> = (1..start as u32).map(|b| (b - 1, b, Edge::default())).collect();
    let path = GraphState::from_parts(GraphKind::Undirected, &vec![Node::default(); start], &edges).unwrap();
    let actions = ActionSet::new(Semantics::Labelled).with(AddNode::attached(2, 1, n));
    let schema = GraphSchema { node_classes: 2, ..GraphSchema::plain(GraphKind::Undirected, n) };
    GraphEnv::new(Full(n), actions, path).and_then(|env| env.with_schema(schema)).unwrap()
}

#[test]
fn growth_over_the_border_goes_back_the_way_it_came() {
    let env = growth(BORDER - 4, BORDER + 4);
    let mut rng = Rng::seeded(0);
    let sampler = Sampler::new(&env, &UniformPolicy);
    let forward = sampler.forward(3, &mut rng).unwrap();
    assert_eq!(forward.n_transitions(), 3 * 9);
    let masks = env.masks(Direction::Backward, forward.terminal_states());
    // Labelled nodes can only be removed in the reverse order of their addition.
    assert!((0..3).all(|row| masks.n_legal(row) == 1));
    let back = sampler.backward(forward.terminal_states(), &mut rng).unwrap();
    assert_eq!(back.states(), forward.states());
    assert_eq!(back.actions(), forward.actions());
    for graph in forward.terminal_states().graphs() {
        assert!(graph.adjacency().bits(0).is_none());
        assert_eq!(petgraph::algo::connected_components(graph.as_undirected().unwrap()), 1);
    }
}

/// Tests a network on a path with an adjacency matrix, and on a path with too many nodes for one. The output
/// for a node depends only on the node's neighbourhood, so it must be the same on both paths.
#[test]
fn a_network_says_the_same_on_either_side_of_the_border() {
    let env = growth(3, BORDER + 40);
    let config = GraphNetConfig { identity: false, global: false, embedding: 8, ..GraphNetConfig::default() };
    let mut rng = Rng::seeded(1);
    let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let policy = GraphPolicy(net);
    // The parameters are set to larger numbers, because all outputs of an untrained network would be nearly
    // equal.
    for parameter in Policy::<GraphEnv>::parameters(&policy).unwrap() {
        let numbers = Tensor::arange(parameter.tensor.numel() as i64, (Kind::Float, Device::Cpu)).sin() * 2.0;
        tch::no_grad(|| parameter.tensor.shallow_clone().copy_(&numbers.view_as(&parameter.tensor)));
    }
    let path = |n: usize| growth(n, BORDER + 40).initial(&[0]);
    // The closure returns the log-probabilities of attaching a node to node 1, 2, 5 or 40 of the path,
    // relative to attaching it to node 0, the end of the path.
    let relative = |states: &GraphStates| {
        let evaluation = tch::no_grad(|| policy.evaluate(&env, states, None, Quantities::PF)).unwrap();
        let log_probs = evaluation.pf.unwrap().host_log_probs().unwrap().to_vec();
        [1, 2, 5, 40].map(|a: usize| log_probs[2 * a] - log_probs[0])
    };
    let small = relative(&path(BORDER - 20));
    let large = relative(&path(BORDER + 20));
    assert!(
        small.iter().zip(large).all(|(a, b)| (a - b).abs() < 1e-3 * a.abs().max(0.01)),
        "{small:?} {large:?}"
    );
    // The outputs must differ between nodes, or the comparison would show nothing.
    assert!(small[0].abs() > 1e-3, "{small:?}");
}

#[test]
fn edges_of_large_graphs_are_masked_added_and_removed() {
    let n = BORDER + 2;
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1).at_most(3));
    let start = GraphState::with_nodes(GraphKind::Undirected, n);
    let env = GraphEnv::new(gfn::graph::Free, actions, start).unwrap();
    let mut states = env.initial(&[0]);
    states.graphs_mut()[0].add_edge(2_049, 7, Edge::default()).unwrap();
    let masks = env.masks(Direction::Forward, &states);
    // All pairs of nodes except for the existing edge are legal, and so is the exit.
    assert_eq!(masks.n_legal(0), n * (n - 1) / 2 - 1 + 1);
    assert_eq!(env.masks(Direction::Backward, &states).n_legal(0), 1);
    states.graphs_mut()[0].remove_edge(7, 2_049).unwrap();
    assert_eq!(states, env.initial(&[0]));
}

/// Tests directed graphs that have too many nodes for an adjacency matrix, and edges of several classes.
/// Degrees, edits and keys must be correct.
#[test]
fn directed_graphs_with_classes_of_edges_are_edited() {
    let n = BORDER + 2;
    let mut graph = GraphState::with_nodes(GraphKind::Directed, n);
    for (a, b, class) in [(2_049, 0, 1), (0, 2_049, 0), (5, 2_049, 2), (2_048, 5, 1)] {
        graph.add_edge(a, b, Edge::from_class(class)).unwrap();
    }
    assert_eq!((graph.in_degree(2_049), graph.out_degree(2_049), graph.edge_rank(2_048, 5)), (2, 1, 2));
    assert_eq!(graph.edge(5, 2_049), Some(Edge::from_class(2)));
    let mut other = graph.clone();
    other.set_edge(5, 2_049, Edge::from_class(1)).unwrap();
    assert_ne!(labelled_key(&graph), labelled_key(&other));
    other.set_edge(5, 2_049, Edge::from_class(2)).unwrap();
    assert_eq!((labelled_key(&graph), &graph), (labelled_key(&other), &other));
    // Removing the last node with its edges must give the graph of the other nodes.
    other.remove_node(2_049).unwrap();
    let rest = [(2_048, 5, Edge::from_class(1))];
    assert_eq!(
        other,
        GraphState::from_parts(GraphKind::Directed, &vec![Node::default(); n - 1], &rest).unwrap()
    );
}
