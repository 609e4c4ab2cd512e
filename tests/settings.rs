//! Tests of settings of graph networks. With default settings a network can distinguish the graphs of its
//! environment. Settings that prevent this, and graphs that don't fit, must be refused.

use crate::nets::{CONVS, KINDS, blocks, config, everything, everything_under, net, random_graph};
use gfn::env::StateGraph;
use gfn::env::{Direction, Env};
use gfn::examples::word_env;
use gfn::graph::PerGraph;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, Edge, GraphEnv, GraphKind, GraphRules, GraphSchema,
    GraphState, GraphStates, Node, Semantics,
};
use gfn::metrics::Distances;
use gfn::nn::GraphNetwork;
use gfn::nn::{ConvKind, EdgeMlp, EdgeMlpConfig, GraphNet, GraphNetConfig, SymmetryInput};
use gfn::objective::Quantities;
use gfn::objective::TrajectoryBalance;
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::policy::{GraphPolicy, MlpPolicy, MlpPolicyConfig, Policy, ScaledEntries};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::ring::Ring;
use tch::{Device, Kind};

/// The rules of a small environment. If `grown` is `true`, only connected graphs are reachable.
#[derive(Debug)]
struct Small {
    grown: bool,
}

impl GraphRules for Small {
    fn is_reachable(&self, graph: &GraphState) -> bool {
        !self.grown || graph.as_undirected().is_some_and(|g| petgraph::algo::connected_components(g) <= 1)
    }
}

fn small(actions: ActionSet, schema: GraphSchema, initial: GraphState) -> Result<GraphEnv> {
    let rules = Small { grown: initial.n_nodes() == 0 };
    Ok(GraphEnv::new(rules, actions, initial)
        .and_then(|env| env.with_schema(schema))?
        .with_backward(BackwardRule::ByType))
}

fn labelled_edges() -> ActionSet {
    ActionSet::new(Semantics::Labelled).with(AddEdge::new(1))
}

/// Builds the environment of all directed graphs on three labelled nodes.
fn digraph_env() -> GraphEnv {
    let kind = GraphKind::Directed;
    small(labelled_edges(), GraphSchema::plain(kind, 3), GraphState::with_nodes(kind, 3)).unwrap()
}

/// Builds the environment of connected graphs of up to four nodes with two classes of edges, up to
/// isomorphism.
fn bonded_env() -> GraphEnv {
    let kind = GraphKind::Undirected;
    let actions = ActionSet::new(Semantics::UpToIsomorphism)
        .with(AddNode::first(1))
        .with(AddNode::attached(1, 2, 4))
        .with(AddEdge::new(2).keeping_connected());
    let schema = GraphSchema { edge_classes: 2, ..GraphSchema::plain(kind, 4) };
    small(actions, schema, GraphState::new(kind)).unwrap()
}

/// Trains a network with these settings for a short time. Returns the exact distance from the target.
fn train(make: fn() -> GraphEnv, log_r: fn(&GraphState) -> f64, config: GraphNetConfig, steps: usize) -> f64 {
    tch::set_num_threads(1);
    let mut rng = Rng::seeded(5);
    let net = GraphNet::new(&make(), config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let config = TrainerConfig {
        batch: 32,
        adam: AdamConfig { lr: 5e-3, ..AdamConfig::default() },
        lr_scale: Schedule::Linear { from: 1.0, to: 0.05, steps },
        ..TrainerConfig::default()
    };
    let mut trainer =
        Trainer::new(make(), PerGraph(log_r), GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    let space = StateGraph::build(&make(), 10_000).unwrap();
    let target = space.target_distribution(&PerGraph(log_r), None).unwrap();
    let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
    Distances::between(&learned.probs, &target.probs).unwrap().tv
}

fn upwards(graph: &GraphState) -> f64 {
    graph.edges().map(|(a, b)| if a < b { 1.0 } else { -1.0 }).sum()
}

fn strong(graph: &GraphState) -> f64 {
    graph.edges().map(|(a, b)| f64::from(graph.edge(a, b).unwrap().class)).sum()
}

#[test]
fn by_default_networks_learn_what_depends_on_labels_and_directions() {
    let tv = train(digraph_env, upwards, GraphNetConfig { embedding: 32, ..GraphNetConfig::default() }, 600);
    assert!(tv < 0.02, "{tv}");
    let blind = GraphNetConfig {
        embedding: 32,
        identity: false,
        conv: ConvKind::Gin,
        ablation: true,
        ..GraphNetConfig::default()
    };
    let tv = train(digraph_env, upwards, blind, 600);
    assert!(tv > 0.3, "an ablation is what it says: {tv}");
}

#[test]
fn by_default_networks_learn_what_depends_on_edge_classes() {
    let config =
        GraphNetConfig { embedding: 32, layers: 3, pair_walks: Some(3), ..GraphNetConfig::default() };
    let tv = train(bonded_env, strong, config.clone(), 600);
    assert!(tv < 0.15, "{tv}");
    let tv = train(
        bonded_env,
        strong,
        GraphNetConfig { conv: ConvKind::Gin, ablation: true, symmetry: SymmetryInput::Ignored, ..config },
        600,
    );
    assert!(tv > 0.2, "an ablation is what it says: {tv}");
}

fn build(env: &GraphEnv, config: GraphNetConfig) -> Result<GraphNet> {
    GraphNet::new(env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0))
}

#[test]
fn the_convolution_is_chosen_by_what_edges_say() {
    let chosen = |env: &GraphEnv| build(env, GraphNetConfig::default()).unwrap().config().conv;
    let with = |kind, edge_classes, edge_attributes: &[u8]| {
        let edge_attributes = edge_attributes.to_vec();
        let schema = GraphSchema { edge_classes, edge_attributes, ..GraphSchema::plain(kind, 3) };
        small(labelled_edges(), schema, GraphState::with_nodes(kind, 3)).unwrap()
    };
    assert_eq!(chosen(&with(GraphKind::Undirected, 1, &[])), ConvKind::Gin);
    assert_eq!(chosen(&with(GraphKind::Undirected, 1, &[0])), ConvKind::Gin);
    assert_eq!(chosen(&with(GraphKind::Directed, 1, &[])), ConvKind::Directed);
    for kind in KINDS {
        assert_eq!(chosen(&with(kind, 2, &[])), ConvKind::Gine);
        assert_eq!(chosen(&with(kind, 1, &[3])), ConvKind::Gine);
    }
}

#[test]
fn a_convolution_that_is_blind_to_edges_is_refused() {
    let refused = |env: &dyn Fn(GraphNetConfig) -> Result<GraphNet>, conv, what: &str| {
        let config = GraphNetConfig { conv, ..GraphNetConfig::default() };
        let error = env(config.clone()).unwrap_err();
        let message = error.to_string();
        assert!(
            matches!(error, Error::Config { setting: "conv", .. }) && message.contains(what),
            "{message}"
        );
        assert!(message.contains("ablation"), "{message}");
        env(GraphNetConfig { ablation: true, ..config }).unwrap();
    };
    let classes = |config| build(&bonded_env(), config);
    refused(&classes, ConvKind::Gin, "classes");
    refused(&classes, ConvKind::Directed, "classes");
    refused(&|config| build(&digraph_env(), config), ConvKind::Gin, "direction");
    for conv in [ConvKind::Gine, ConvKind::Transformer { heads: 4 }] {
        for kind in KINDS {
            build(&everything(kind, 4), GraphNetConfig { conv, ..GraphNetConfig::default() }).unwrap();
        }
    }
}

/// Returns the logit of the exit for each graph. The graphs differ only in the labels of their nodes.
fn exits(env: &GraphEnv, graphs: &[GraphState], config: GraphNetConfig) -> Vec<f64> {
    let pf = blocks(env, &net(env, config, Kind::Double), graphs, None).pf.unwrap();
    (0..graphs.len() as i64).map(|g| pf.last().unwrap().double_value(&[g, 0])).collect()
}

#[test]
fn labels_enter_where_they_mean_something_and_nowhere_else() {
    // The three nodes of the path differ in class or attribute.
    let mut last = Node::from_class(0);
    last.attributes.set(0, 1);
    let nodes = [Node::from_class(0), Node::from_class(1), last];
    let edges = [(0, 1, Edge::default()), (1, 2, Edge::default())];
    let path = GraphState::from_parts(GraphKind::Undirected, &nodes, &edges).unwrap();
    // In the second graph nodes 0 and 1 are swapped, and in the third graph nodes 1 and 2.
    let graphs = [path.clone(), path.induced(&[1, 0, 2]), path.induced(&[0, 2, 1])];
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    for conv in CONVS {
        let labelled = everything_under(Semantics::Labelled, GraphKind::Undirected, 4);
        let free = everything(GraphKind::Undirected, 4);
        let labelled_exits = exits(&labelled, &graphs, config(conv));
        assert!(
            !near(labelled_exits[0], labelled_exits[1]) && !near(labelled_exits[0], labelled_exits[2]),
            "{conv:?}: {labelled_exits:?}"
        );
        let hidden = exits(&labelled, &graphs, GraphNetConfig { identity: false, ..config(conv) });
        assert!(near(hidden[0], hidden[1]) && near(hidden[0], hidden[2]), "{conv:?}: {hidden:?}");
        for identity in [true, false] {
            let same = exits(&free, &graphs, GraphNetConfig { identity, ..config(conv) });
            assert!(near(same[0], same[1]) && near(same[0], same[2]), "{conv:?}: {same:?}");
        }
        // The nodes of an initial graph are distinguished from other nodes. Here the initial graph is node 0,
        // so only the second graph, in which nodes 0 and 1 are swapped, must give another logit.
        let kind = GraphKind::Undirected;
        let actions =
            ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(2, 4)).with(AddEdge::new(2));
        let rooted = small(actions, free.schema().clone(), GraphState::with_nodes(kind, 1)).unwrap();
        let rooted = exits(&rooted, &graphs, config(conv));
        assert!(!near(rooted[0], rooted[1]) && near(rooted[0], rooted[2]), "{conv:?}: {rooted:?}");
    }
}

/// Applies a network to a graph of an environment for which it wasn't built.
fn evaluate_other_graph(env: &GraphEnv, net: &impl GraphNetwork, graph: GraphState) -> Result<()> {
    let states = GraphStates::from(vec![graph]);
    GraphPolicy(net).evaluate(env, &states, None, Quantities::PF).map(|_| ())
}

fn check_refused(result: Result<()>, words: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Contract { .. }) && error.to_string().contains(words), "{error}");
}

#[test]
fn graphs_that_do_not_fit_a_network_are_refused() {
    let four = Ring::new(4, GraphKind::Directed).unwrap().into_env();
    let five = Ring::new(5, GraphKind::Directed).unwrap().into_env();
    let net = build(&four, GraphNetConfig::default()).unwrap();
    evaluate_other_graph(&four, &net, four.initial_graphs()[0].clone()).unwrap();
    check_refused(
        evaluate_other_graph(&five, &net, five.initial_graphs()[0].clone()),
        "5 nodes, but the network was built for at most 4 nodes",
    );
    let frozen = net.on_host(Direction::Forward).unwrap();
    check_refused(frozen.distribution(&five, &five.initial(&[0])).map(|_| ()), "5 nodes");
    let undirected = Ring::new(4, GraphKind::Undirected).unwrap().into_env();
    check_refused(frozen.distribution(&undirected, &undirected.initial(&[0])).map(|_| ()), "is Undirected");
    // Up to isomorphism, the labels of nodes have no meaning, so a graph may have more nodes than the graphs
    // of the network's environment.
    let free = |n| everything(GraphKind::Undirected, n);
    let net = build(&free(4), GraphNetConfig::default()).unwrap();
    evaluate_other_graph(&free(6), &net, random_graph(GraphKind::Undirected, 6, 0.5, &mut Rng::seeded(0)))
        .unwrap();

    check_refused(
        evaluate_other_graph(
            &undirected,
            &build(&four, GraphNetConfig::default()).unwrap(),
            undirected.initial_graphs()[0].clone(),
        ),
        "Undirected",
    );
    check_refused(
        evaluate_other_graph(
            &four,
            &build(&four, GraphNetConfig::default()).unwrap(),
            undirected.initial_graphs()[0].clone(),
        ),
        "is Undirected",
    );
    check_refused(
        evaluate_other_graph(
            &free(4),
            &build(&bonded_env(), GraphNetConfig::default()).unwrap(),
            GraphState::new(GraphKind::Undirected),
        ),
        "of the network",
    );

    // A class of nodes, and then a value of an attribute, that isn't in the schema of the network's
    // environment must be refused.
    let mut node = Node::from_class(2);
    let graph = |node: Node| GraphState::from_parts(GraphKind::Undirected, &[node], &[]).unwrap();
    check_refused(
        evaluate_other_graph(&free(4), &net, graph(node)),
        "class 2, but the classes go from 0 to below 2",
    );
    node = Node::from_class(0);
    node.attributes.set(0, 3);
    check_refused(evaluate_other_graph(&free(4), &net, graph(node)), "value 3 of attribute 0");
    let mlp =
        EdgeMlp::new(&four, EdgeMlpConfig::default(), Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap();
    let edge = Edge::from_class(1);
    let marked = GraphState::from_parts(GraphKind::Directed, &[Node::default(); 4], &[(0, 1, edge)]).unwrap();
    check_refused(evaluate_other_graph(&four, &mlp, marked), "class 1, but the classes go from 0 to below 1");
    check_refused(
        evaluate_other_graph(&undirected, &mlp, undirected.initial_graphs()[0].clone()),
        "of the network",
    );
}

#[test]
fn environments_whose_initial_graph_does_not_fit_are_refused() {
    let initial = GraphState::with_nodes(GraphKind::Undirected, 3);
    let env = small(labelled_edges(), GraphSchema::plain(GraphKind::Directed, 3), initial);
    check_refused(env.map(|_| ()), "is Undirected, but must be Directed");
}

#[test]
fn devices_that_are_not_there_are_refused() {
    // This device exists on no machine, so building a network on it must fail.
    let device = Device::Cuda(4096);
    let rng = &mut Rng::seeded(0);
    let env = digraph_env();
    let graph_net = GraphNet::new(&env, GraphNetConfig::default(), device, Kind::Float, rng).map(|_| ());
    let edge_mlp = EdgeMlp::new(&env, EdgeMlpConfig::default(), device, Kind::Float, rng).map(|_| ());
    let words = word_env(2, 3);
    let mlp = MlpPolicy::new(
        &words,
        ScaledEntries::new(3, 3),
        MlpPolicyConfig::default(),
        device,
        Kind::Float,
        rng,
    )
    .map(|_| ());
    for refused in [graph_net, edge_mlp, mlp] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Device { .. }) && error.to_string().contains("cuda:4096"), "{error}");
    }
}

#[test]
fn missing_settings_of_a_network_have_their_defaults_and_unknown_ones_are_refused() {
    let config: GraphNetConfig = serde_json::from_str(r#"{"layers": 1, "unit": 4.0}"#).unwrap();
    assert_eq!(config, GraphNetConfig { layers: 1, unit: 4.0, ..GraphNetConfig::default() });
    let written = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<GraphNetConfig>(&written).unwrap(), config);
    let message = serde_json::from_str::<GraphNetConfig>(r#"{"layer": 1}"#).unwrap_err().to_string();
    assert!(message.contains("unknown field `layer`") && message.contains("`layers`"), "{message}");
}
