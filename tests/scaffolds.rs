//! Tests of environments with an initial graph whose nodes are distinguished or interchangeable. States,
//! symmetries and distributions are compared with brute force.

use std::collections::HashMap;

use gfn::contract::{Budget, check_graph_env};
use gfn::env::{EnumerableEnv, Env, StateGraph};
use gfn::graph::{
    ActionSet, AddEdge, AddNode, CanonicalKey, Edge, Free, GraphEnv, GraphKind, GraphSchema, GraphState,
    GraphStates, Node, PerGraph, Scaffold, Semantics, labelled_key,
};
use gfn::metrics::{Distances, ExactPolicy, estimate_log_probs, estimate_log_z, eubo};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

const NODES: usize = 5;

/// Returns two initial graphs: a path of three nodes, whose ends are interchangeable, and a ring of three
/// nodes.
fn scaffolds() -> [GraphState; 2] {
    let graph = |edges: &[(u32, u32)]| {
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, Edge::default())).collect();
        GraphState::from_parts(GraphKind::Undirected, &[Node::default(); 3], &edges).unwrap()
    };
    [graph(&[(0, 1), (1, 2)]), graph(&[(0, 1), (0, 2), (1, 2)])]
}

/// Builds an environment in which graphs grow from an initial graph by leaves, and by edges between any
/// nodes.
fn growth(scaffold: GraphState, scaffold_kind: Scaffold) -> GraphEnv {
    let actions = ActionSet::new(Semantics::UpToIsomorphism)
        .with(AddNode::attached(2, 1, NODES))
        .with(AddEdge::new(1).at_most(6).keeping_connected());
    let schema = GraphSchema { node_classes: 2, ..GraphSchema::plain(GraphKind::Undirected, NODES) };
    GraphEnv::new(Free, actions, scaffold)
        .and_then(|env| env.with_schema(schema))
        .unwrap()
        .with_scaffold(scaffold_kind)
        .unwrap()
}

/// Builds an environment in which graphs grow from `n` isolated nodes. Actions add nodes of two classes, and
/// edges between any nodes.
fn loose_growth(kind: GraphKind, n: usize, max_nodes: usize, max_edges: usize) -> GraphEnv {
    let actions = ActionSet::new(Semantics::UpToIsomorphism)
        .with(AddNode::free(2, max_nodes))
        .with(AddEdge::new(1).at_most(max_edges));
    let schema = GraphSchema { node_classes: 2, ..GraphSchema::plain(kind, max_nodes) };
    GraphEnv::new(Free, actions, GraphState::with_nodes(kind, n))
        .and_then(|env| env.with_schema(schema))
        .unwrap()
}

fn permutations(items: &[u32]) -> Vec<Vec<u32>> {
    match items {
        [] => vec![Vec::new()],
        _ => (0..items.len())
            .flat_map(|k| {
                let rest: Vec<u32> =
                    items.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, &b)| b).collect();
                permutations(&rest).into_iter().map(move |tail| [&[items[k]], &tail[..]].concat())
            })
            .collect(),
    }
}

/// Returns the keys of all labellings of a graph. A labelling permutes the nodes of the initial graph by one
/// of its symmetries, and the other nodes in any order.
fn labellings(scaffold: &GraphState, graph: &GraphState) -> Vec<CanonicalKey> {
    let mut out = Vec::new();
    for first in permutations(&[0, 1, 2]).into_iter().filter(|order| scaffold.induced(order) == *scaffold) {
        for rest in permutations(&(3..graph.n_nodes() as u32).collect::<Vec<_>>()) {
            out.push(labelled_key(&graph.induced(&[&first[..], &rest].concat())));
        }
    }
    out
}

#[test]
fn symmetries_of_alike_nodes_merge_states() {
    let with_scaffold = scaffolds().map(|scaffold| {
        [Scaffold::Alike, Scaffold::ToldApart].map(|scaffold_kind| growth(scaffold.clone(), scaffold_kind))
    });
    // These initial graphs have no edges. The nodes of such a graph must be interchangeable by default,
    // without a call of `with_scaffold`.
    let by_default = [GraphKind::Undirected, GraphKind::Directed].map(|kind| {
        let env = loose_growth(kind, 3, NODES, 2);
        [env.clone(), env.with_scaffold(Scaffold::ToldApart).unwrap()]
    });
    for [env, told_apart] in with_scaffold.into_iter().chain(by_default) {
        let scaffold = env.initial_graphs()[0].clone();
        assert_eq!((env.scaffold(), told_apart.scaffold()), (Scaffold::Alike, Scaffold::ToldApart));
        check_graph_env(&env, Budget::thorough().with_walks(60), &mut Rng::seeded(0)).unwrap();
        let alike = StateGraph::build(&env, 10_000).unwrap();
        let apart = StateGraph::build(&told_apart, 10_000).unwrap();
        let mut places = HashMap::new();
        for (place, graph) in alike.states().graphs().iter().enumerate() {
            let labellings = labellings(&scaffold, graph);
            let smallest = labellings.iter().min().unwrap().clone();
            assert_eq!(places.insert(smallest, place), None, "one state twice");
            // The number of automorphisms must be the number of labellings that give the same graph.
            let own = labelled_key(graph);
            let expected = (labellings.iter().filter(|key| **key == own).count() as f64).ln();
            assert!((env.log_automorphisms(graph).unwrap() - expected).abs() < 1e-12, "{graph}");
        }
        // A state with interchangeable nodes corresponds to one or more states with distinguished nodes. The
        // terminal probability of the state with interchangeable nodes must be the sum of the terminal
        // probabilities of its corresponding states.
        let of = |graph: &GraphState| places[&labellings(&scaffold, graph).into_iter().min().unwrap()];
        let ended = alike.terminating_distribution(&env, &UniformPolicy, None).unwrap().probs;
        let mut expected = vec![0.0; alike.len()];
        let ended_apart = apart.terminating_distribution(&told_apart, &UniformPolicy, None).unwrap().probs;
        for (graph, p) in apart.states().graphs().iter().zip(ended_apart) {
            expected[of(graph)] += p;
        }
        assert!(expected.iter().zip(&ended).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!(apart.len() as f64 > 1.5 * alike.len() as f64, "{} and {}", apart.len(), alike.len());
    }
}

/// Returns the log-reward of each graph: 0.5 per node of class 1, and 0.2 per edge.
fn reward(states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    let of = |graph: &GraphState| graph.nodes().map(|node| 0.5 * f64::from(node.class)).sum::<f64>();
    Ok(states.graphs().iter().map(|graph| of(graph) + 0.2 * graph.n_edges() as f64).collect())
}

/// Trains on initial graphs with interchangeable nodes. In the ring all nodes are interchangeable; in the
/// path only its two ends are. Actions may add an edge between these ends. The path is then a ring, in which
/// the ends can't be distinguished from the node between them.
#[test]
fn a_policy_learns_the_distribution_over_states_of_alike_nodes() {
    for scaffold in scaffolds() {
        let actions = ActionSet::new(Semantics::UpToIsomorphism)
            .with(AddNode::attached(2, 1, 4))
            .with(AddEdge::new(1).keeping_connected());
        let schema = GraphSchema { node_classes: 2, ..GraphSchema::plain(GraphKind::Undirected, 4) };
        let env = GraphEnv::new(Free, actions, scaffold)
            .and_then(|env| env.with_schema(schema))
            .unwrap()
            .with_scaffold(Scaffold::Alike)
            .unwrap();
        let space = StateGraph::build(&env, 1_000).unwrap();
        let target = space.target_distribution(&reward, None).unwrap();
        let mut rng = Rng::seeded(3);
        let network = GraphNetConfig { embedding: 32, ..GraphNetConfig::default() };
        let net = GraphNet::new(&env, network, Device::Cpu, Kind::Float, &mut rng).unwrap();
        let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
        let mut trainer =
            Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
        for _ in 0..400 {
            trainer.step().unwrap();
        }
        let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
        let tv = Distances::between(&learned.probs, &target.probs).unwrap().tv;
        assert!(tv < 0.05, "{tv} over {} states", space.len());
        // The bound is small enough to detect a log Z in which the symmetries of the initial graph aren't
        // counted: ln |Aut| of the two initial graphs is 0.69 and 1.79.
        let log_z = trainer.step().unwrap().log_z;
        assert!((log_z - target.log_z).abs() < 0.2, "{log_z} of {}", target.log_z);
    }
}

#[test]
fn a_scaffold_of_too_many_symmetries_is_refused_where_its_nodes_are_alike() {
    let actions = || ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 9));
    let star: Vec<_> = (1..8).map(|b| (0, b, Edge::default())).collect();
    let star = GraphState::from_parts(GraphKind::Undirected, &[Node::default(); 8], &star).unwrap();
    let env = GraphEnv::new(Free, actions(), star).unwrap();
    assert_eq!(env.scaffold(), Scaffold::ToldApart);
    let error = env.clone().with_scaffold(Scaffold::Alike).unwrap_err();
    assert!(
        matches!(error, Error::Config { setting: "the number of symmetries of the initial graph", .. }),
        "{error}"
    );
    assert_eq!(env.with_scaffold(Scaffold::ToldApart).unwrap().initial(&[0]).graphs()[0].n_nodes(), 8);
}

/// Checks initial graphs of isolated nodes: a few nodes, and more nodes than the search for symmetries would
/// handle directly.
#[test]
fn any_number_of_nodes_without_edges_may_be_alike() {
    for (kind, n) in
        [GraphKind::Undirected, GraphKind::Directed].into_iter().flat_map(|kind| [(kind, 9), (kind, 100)])
    {
        let env = loose_growth(kind, n, n + 3, 9);
        let joined = |edges: [(u32, u32); 2]| {
            let mut graph = GraphState::with_nodes(kind, n + 3);
            for &(a, b) in &edges {
                graph.add_edge(a, b, Edge::default()).unwrap();
            }
            graph
        };
        let last = n as u32;
        let inner = joined([(0, 1), (2, 3)]);
        let graphs = [
            inner,
            joined([(6, 4), (8, 2)]),
            joined([(0, 1), (2, last)]),
            joined([(0, 1), (last + 2, last)]),
        ];
        let keys = env.keys(&graphs.to_vec().into());
        assert!(
            keys[0] == keys[1]
                && (0..4).all(|k| (k != 1 && k != 0) || (keys[k] != keys[2] && keys[k] != keys[3]))
        );
        assert_ne!(keys[2], keys[3]);
        let expected = |free: usize, log: f64| (1..=free).map(|k| (k as f64).ln()).sum::<f64>() + log;
        let turned = if kind == GraphKind::Undirected { 8.0 } else { 2.0_f64 };
        let found = env.log_automorphisms(&graphs[0]).unwrap();
        assert!((found - expected(n - 4, turned.ln() + 6_f64.ln())).abs() < 1e-9, "{found}");
    }
}

#[test]
fn different_or_joined_nodes_are_distinguished_by_default() {
    let kind = GraphKind::Undirected;
    let free = || AddEdge::new(1);
    let scaffold = |actions, initial| {
        let schema = GraphSchema { node_classes: 2, ..GraphSchema::plain(kind, 3) };
        GraphEnv::new(Free, actions, initial).and_then(|env| env.with_schema(schema)).unwrap().scaffold()
    };
    let set = |semantics, edges| ActionSet::new(semantics).with(edges);
    let up_to = |initial| scaffold(set(Semantics::UpToIsomorphism, free()), initial);
    let bare = GraphState::with_nodes(kind, 3);
    assert_eq!(up_to(bare.clone()), Scaffold::Alike);
    let nodes = [0, 0, 1].map(Node::from_class);
    assert_eq!(up_to(GraphState::from_parts(kind, &nodes, &[]).unwrap()), Scaffold::ToldApart);
    let edge = [(0, 1, Edge::default())];
    assert_eq!(up_to(GraphState::from_parts(kind, &nodes[..2], &edge).unwrap()), Scaffold::ToldApart);
    assert_eq!(scaffold(set(Semantics::Labelled, free()), bare), Scaffold::ToldApart);
}

#[test]
fn log_z_and_log_probabilities_are_those_of_the_raw_reward() {
    let [_, ring] = scaffolds();
    let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::attached(1, 1, 5));
    let env = GraphEnv::new(Free, actions, ring).unwrap();
    let env = env.with_scaffold(Scaffold::Alike).unwrap();
    let reward = PerGraph(|graph: &GraphState| 0.3 * graph.n_nodes() as f64);
    let space = StateGraph::build(&env, 100).unwrap();
    // The states are the ring, the ring with one leaf, and three graphs with two leaves: on one node, on two
    // nodes, or one leaf on the other.
    let expected = (0.9_f64.exp() + 1.2_f64.exp() + 3.0 * 1.5_f64.exp()).ln();
    let flows = space.exact_flows(&env, &UniformPolicy, &reward, None).unwrap();
    assert!((flows.log_z - expected).abs() < 1e-6, "{} of {expected}", flows.log_z);
    let exact = ExactPolicy::new(&space, &env, &UniformPolicy, &reward).unwrap();
    let estimated = estimate_log_z(&env, &exact, &reward, 20, &mut Rng::seeded(1)).unwrap().log_z;
    let bound = eubo(&env, &exact, &reward, space.states(), &mut Rng::seeded(2)).unwrap().mean;
    assert!(
        (estimated - expected).abs() < 1e-4 && (bound - expected).abs() < 1e-4,
        "{estimated}, {bound} of {expected}"
    );
    let log_probs = estimate_log_probs(&env, &exact, space.states(), 1, &mut Rng::seeded(3)).unwrap();
    let sum: f64 = log_probs.iter().map(|log| log.exp()).sum();
    assert!((sum - 1.0).abs() < 1e-4, "{log_probs:?}");
}
