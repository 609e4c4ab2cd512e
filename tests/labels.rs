//! Tests of label dependence. Up to isomorphism, labels have no meaning, so rules, rewards, actions and
//! symmetry counts that depend on labels must be errors. All others must be accepted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use gfn::contract::{Budget, check_graph_env};
use gfn::env::Env;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, Edge, Free, GraphEnv, GraphKind, GraphRules, GraphSchema,
    GraphState, GraphStates, MoveMask, PerGraph, Reverse, Scaffold, Semantics,
};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::Quantities;
use gfn::objective::{LogPartitionVariance, TrajectoryBalance};
use gfn::policy::{GraphPolicy, Policy, UniformPolicy};
use gfn::rollout::Sampler;
use gfn::train::{TrainEnv, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig, Growth};
use tch::{Device, Kind, Tensor};

/// Builds an environment of graphs with at most 4 nodes. If `max_nodes`, the limit of the schema, is above 8,
/// isomorphic states of a batch aren't merged.
fn env_with_rules(rules: impl GraphRules + 'static, semantics: Semantics, max_nodes: usize) -> GraphEnv {
    let actions = ActionSet::new(semantics).with(AddNode::free(1, 4)).with(AddEdge::new(1));
    let schema = GraphSchema::plain(GraphKind::Undirected, max_nodes);
    GraphEnv::new(rules, actions, GraphState::new(GraphKind::Undirected))
        .and_then(|env| env.with_schema(schema))
        .unwrap()
}

#[track_caller]
fn check_refused(result: Result<()>, words: &[&str]) {
    let error = result.unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, Error::Contract { .. }), "{message}");
    for words in words {
        assert!(message.contains(words), "{words}: {message}");
    }
}

/// Rules that allow an edge only between a node with an odd label and a node with an even label.
struct ByLabel;

impl GraphRules for ByLabel {
    fn restrict(&self, _: &GraphState, moves: &mut MoveMask<'_>) {
        if moves.type_name() == "add_edge" {
            moves.retain(|edge| (edge.a + edge.b) % 2 == 1);
        }
    }
}

/// Rules that allow the exit of graphs with two or three nodes only if there is an edge between nodes 0 and
/// 1.
struct ExitByLabel;

impl GraphRules for ExitByLabel {
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() < 2 || graph.has_edge(0, 1) || graph.n_nodes() >= 4
    }
}

/// Rules that allow the removal of node 0 only if it is the only node.
struct KeepsFirst;

impl GraphRules for KeepsFirst {
    fn restrict_backward(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        if moves.type_name() == "add_node" && graph.n_nodes() > 1 {
            moves.retain(|node| node.a > 0);
        }
    }
}

#[test]
fn rules_that_see_labels_are_refused_by_name() {
    let checked = |result: Result<_>| result.map(|_| ());
    for max_nodes in [4, 9] {
        let edges = env_with_rules(ByLabel, Semantics::UpToIsomorphism, max_nodes);
        let exits = env_with_rules(ExitByLabel, Semantics::UpToIsomorphism, max_nodes);
        let back = env_with_rules(KeepsFirst, Semantics::UpToIsomorphism, max_nodes)
            .with_backward(BackwardRule::ByType);
        let rules = "in the rules";
        check_refused(
            edges.check_laws(),
            &[rules, "forward slot", "add_edge", "but the same move isn't legal"],
        );
        check_refused(
            checked(check_graph_env(&edges, Budget::thorough().with_walks(30), &mut Rng::seeded(0))),
            &[rules, "add_edge"],
        );
        check_refused(exits.check_laws(), &[rules, "exit"]);
        check_refused(
            checked(check_graph_env(&exits, Budget::thorough().with_walks(30), &mut Rng::seeded(0))),
            &[rules, "exit"],
        );
        check_refused(
            checked(check_graph_env(&back, Budget::thorough().with_walks(30), &mut Rng::seeded(0))),
            &[rules, "backward slot", "add_node"],
        );
    }
    // Rules may use labels if the labels have a meaning.
    env_with_rules(ByLabel, Semantics::Labelled, 9).check_laws().unwrap();
    env_with_rules(ExitByLabel, Semantics::Labelled, 9).check_laws().unwrap();
    env_with_rules(Free, Semantics::UpToIsomorphism, 9).check_laws().unwrap();
}

/// Tests rules that use the initial nodes 0 and 1. Rules may do so if the initial nodes are
/// distinguishable.
#[test]
fn rules_may_use_distinguished_nodes() {
    let actions =
        || ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 4)).with(AddEdge::new(1));
    let schema = GraphSchema::plain(GraphKind::Undirected, 9);
    let start = GraphState::with_nodes(GraphKind::Undirected, 2);
    let env = || {
        let env = GraphEnv::new(ExitByLabel, actions(), start.clone())
            .and_then(|env| env.with_schema(schema.clone()))
            .unwrap();
        env.with_scaffold(Scaffold::ToldApart).unwrap()
    };
    env().check_laws().unwrap();
    check_graph_env(&env(), Budget::thorough().with_walks(30), &mut Rng::seeded(0)).unwrap();
    // If the initial nodes are interchangeable, rules may still use them symmetrically. Rules that single out
    // node 0 then depend on a label and must be errors.
    let alike = env().with_scaffold(Scaffold::Alike).unwrap();
    alike.check_laws().unwrap();
    struct First;
    impl GraphRules for First {
        fn can_exit(&self, graph: &GraphState) -> bool {
            // The exit of a complete graph is allowed, because the graph has no other action.
            graph.degree(0) < 2 || graph.n_edges() == 6
        }
    }
    let first = env().with_rules(|_| First);
    first.check_laws().unwrap();
    check_refused(
        env().with_rules(|_| First).with_scaffold(Scaffold::Alike).unwrap().check_laws(),
        &["in the rules", "exit"],
    );
}

fn first_step(reward: impl gfn::env::Reward<GraphStates> + 'static, semantics: Semantics) -> Result<()> {
    let env = env_with_rules(Free, semantics, 9);
    // The initial policy rarely exits, so trajectories are long. That is needed because labels don't matter
    // in graphs with one or two nodes.
    let config = GraphNetConfig { embedding: 8, initial_exit_bias: -3.0, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0))?;
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, Rng::seeded(0))?;
    trainer.step()?;
    // Repeated reward calls for the check must not count as calls for new objects.
    assert_eq!(trainer.reward_calls(), 32);
    trainer.step().map(|_| ())
}

#[test]
fn rewards_that_see_labels_are_refused() {
    let by_label = || PerGraph(|graph: &GraphState| if graph.has_edge(0, 1) { 3.0 } else { 0.0 });
    let words = ["a reward doesn't depend on labels", "log R of", "under other labels", "nodes"];
    check_refused(first_step(by_label(), Semantics::UpToIsomorphism), &words);
    first_step(by_label(), Semantics::Labelled).unwrap();
    first_step(PerGraph(|graph: &GraphState| graph.n_edges() as f64), Semantics::UpToIsomorphism).unwrap();
}

/// Tests a reward that is the number of edges at node 0. Relabelling rarely changes this reward in small
/// graphs, but the check for dependence on labels must detect it at every seed.
#[test]
fn rewards_that_see_labels_are_refused_at_every_seed() {
    tch::set_num_threads(1);
    let config = GraphBuildingConfig {
        growth: Growth::Attached,
        ..GraphBuildingConfig::new(GraphKind::Undirected, 3)
    };
    for seed in 0..20 {
        let env = GraphBuilding::new(config.clone()).unwrap().into_env();
        let net = GraphNetConfig { embedding: 16, ..GraphNetConfig::default() };
        let net = GraphNet::new(&env, net, Device::Cpu, Kind::Float, &mut Rng::seeded(seed)).unwrap();
        let reward =
            PerGraph(|graph: &GraphState| if graph.n_nodes() > 0 { graph.degree(0) as f64 } else { 0.0 });
        let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
        let policy = GraphPolicy(net);
        let rng = Rng::seeded(seed);
        let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, rng).unwrap();
        let refusal = (0..101).find_map(|_| trainer.step().err());
        let refusal = refusal.unwrap_or_else(|| panic!("seed {seed}: 101 steps without a word"));
        check_refused(Err(refusal), &["a reward doesn't depend on labels"]);
    }
}

/// Tests a reward that uses labels only in later batches. The check for dependence on labels is repeated in
/// later steps, so it must detect that.
#[test]
fn rewards_that_see_labels_of_later_batches_are_refused() {
    static LARGE: AtomicBool = AtomicBool::new(false);
    let reward =
        PerGraph(|graph: &GraphState| if LARGE.load(Relaxed) && graph.has_edge(0, 1) { 3.0 } else { 0.0 });
    let env = env_with_rules(Free, Semantics::UpToIsomorphism, 9);
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    let mut trainer =
        Trainer::new(env, reward, UniformPolicy, LogPartitionVariance, config, Rng::seeded(0)).unwrap();
    for _ in 0..5 {
        trainer.step().unwrap();
    }
    LARGE.store(true, Relaxed);
    let refusal = (0..20).find_map(|_| trainer.step().err()).unwrap();
    assert_eq!(trainer.steps_done(), 10);
    check_refused(Err(refusal), &["a reward doesn't depend on labels"]);
}

#[test]
fn rewards_that_change_from_call_to_call_are_not_blamed_on_labels() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let noisy = |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        let call = CALLS.fetch_add(1, Relaxed) as f64;
        Ok(vec![0.1 * call; states.graphs().len()])
    };
    first_step(noisy, Semantics::UpToIsomorphism).unwrap();
    // The reward is called four times: once in each of the two steps, once for relabelled objects, and once
    // more for the same relabelled objects.
    assert_eq!(CALLS.load(Relaxed), 4);
}

#[test]
fn networks_of_another_initial_graph_are_refused() {
    let from = |n: usize| {
        let actions =
            ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 4)).with(AddEdge::new(1));
        let kind = GraphKind::Undirected;
        let env = GraphEnv::new(Free, actions, GraphState::with_nodes(kind, n))
            .and_then(|env| env.with_schema(GraphSchema::plain(kind, 9)))
            .unwrap();
        env.with_scaffold(Scaffold::ToldApart).unwrap()
    };
    let evaluate = |net: &GraphNet, env: &GraphEnv| {
        Sampler::new(env, &GraphPolicy(net)).forward(2, &mut Rng::seeded(0))?;
        GraphPolicy(net).evaluate(env, &env.initial(&[0]), None, Quantities::PF).map(|_| ())
    };
    let config = GraphNetConfig { embedding: 8, ..GraphNetConfig::default() };
    let net = |n: usize| {
        GraphNet::new(&from(n), config.clone(), Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap()
    };
    let words = [
        "the network distinguishes nodes",
        "but in this environment they are interchangeable",
        "another initial graph",
    ];
    check_refused(evaluate(&net(2), &from(0)), &words);
    check_refused(evaluate(&net(3), &from(2)), &words);
    evaluate(&net(2), &from(2)).unwrap();
    // A policy must be accepted if it uses less information than the environment has, or if it is built for
    // more nodes than graphs can have.
    evaluate(&net(0), &from(2)).unwrap();
    let fixed = |semantics, n: usize| {
        let kind = GraphKind::Undirected;
        let actions = ActionSet::new(semantics).with(AddEdge::new(1));
        GraphEnv::new(Free, actions, GraphState::with_nodes(kind, n)).unwrap()
    };
    for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
        let net = GraphNet::new(
            &fixed(semantics, 5),
            config.clone(),
            Device::Cpu,
            Kind::Float,
            &mut Rng::seeded(0),
        );
        evaluate(&net.unwrap(), &fixed(semantics, 3)).unwrap();
    }
    let alike = from(2).with_scaffold(Scaffold::Alike).unwrap();
    check_refused(
        GraphPolicy(net(2)).evaluate(&alike, &alike.initial(&[0]), None, Quantities::PF).map(|_| ()),
        &words,
    );
}

/// Rules whose count of automorphisms is always 1, which is wrong for symmetric graphs.
struct NoSymmetry;

impl GraphRules for NoSymmetry {
    fn log_automorphisms(&self, _: &GraphState, _: usize) -> Result<f64> {
        Ok(0.0)
    }
}

fn train(env: GraphEnv) -> Result<()> {
    let reward = PerGraph(|_: &GraphState| 0.0);
    Trainer::new(env, reward, UniformPolicy, LogPartitionVariance, TrainerConfig::default(), Rng::seeded(0))
        .map(|_| ())
}

#[test]
fn automorphisms_counted_wrong_are_found_before_training() {
    for max_nodes in [4, 9] {
        let env = env_with_rules(NoSymmetry, Semantics::UpToIsomorphism, max_nodes);
        check_refused(
            train(env),
            &[
                "N_forward |Aut(child)| = N_backward |Aut(parent)|",
                "`GraphRules::log_automorphisms` doesn't return",
            ],
        );
    }
    train(env_with_rules(Free, Semantics::UpToIsomorphism, 9)).unwrap();
    // |Aut| isn't used without the symmetry correction, so a wrong count must be accepted.
    train(env_with_rules(NoSymmetry, Semantics::UpToIsomorphism, 9).with_symmetry_correction(false)).unwrap();
}

#[test]
fn nodes_of_the_initial_graph_are_not_taken_away() {
    let kind = GraphKind::Undirected;
    let start = |edges: &[(u32, u32)]| {
        let mut graph = GraphState::with_nodes(kind, 4);
        for &(a, b) in edges {
            graph.add_edge(a, b, Edge::default()).unwrap();
        }
        graph
    };
    let of = |semantics, actions: fn(ActionSet) -> ActionSet, edges: &[(u32, u32)]| {
        GraphEnv::new(Free, actions(ActionSet::new(semantics)), start(edges)).unwrap()
    };
    let loose: fn(ActionSet) -> ActionSet = |set| set.with(Reverse(AddNode::free(1, 4)));
    let both: fn(ActionSet) -> ActionSet =
        |set| set.with(Reverse(AddEdge::new(1))).with(Reverse(AddNode::free(1, 4)));
    let hanging: fn(ActionSet) -> ActionSet = |set| set.with(Reverse(AddNode::attached(1, 1, 4)));
    let all = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    for (actions, edges) in [(loose, &all[..0]), (both, &all[..]), (hanging, &all[..3])] {
        let words =
            ["up to isomorphism no move removes a node of the initial graph", "SetNodeAttr", "removes node"];
        let env = of(Semantics::UpToIsomorphism, actions, edges);
        check_refused(train(env.clone()), &words);
        check_refused(train(env.with_scaffold(Scaffold::Alike).unwrap()), &words);
    }
    // Both environments must be accepted. In the first, nodes are labelled and are removed in a fixed order,
    // the last node first. In the second, only edges are removed, which is always possible.
    train(of(Semantics::Labelled, loose, &[])).unwrap();
    train(of(Semantics::UpToIsomorphism, |set| set.with(Reverse(AddEdge::new(1))), &all)).unwrap();
}
