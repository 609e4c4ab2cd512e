//! Tests of environments with several initial graphs. Each instance must have separate trajectories, states
//! and a separate distribution.

use gfn::contract::{Budget, check_env, check_graph_env};
use gfn::env::{Direction, Env, Reward, StateGraph, VectorEnv, VectorRules, VectorStates};
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Edge, Free, GraphEnv, GraphKind, GraphSchema, GraphState, GraphStates, Node,
    Semantics, canonical_key, labelled_key,
};
use gfn::metrics::{Distances, estimate_log_z, pruned_distribution};
use gfn::nn::{EstimatorsConfig, GraphNet, GraphNetConfig};
use gfn::objective::{
    DetailedBalance, LogPartitionVariance, ModifiedDetailedBalance, Objective, TrajectoryBalance,
};
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::{TrainEnv, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

type Edges = GraphEnv;

/// Builds an environment that adds edges. The three instances start from graphs with two, three and four
/// nodes.
fn env() -> Edges {
    let kind = GraphKind::Undirected;
    let start = |n| GraphState::with_nodes(kind, n);
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::new(Free, actions, start(4)).unwrap();
    env.with_instances([2, 3, 4].map(start).into()).unwrap()
}

/// Returns the log-reward of each graph: 1 for each edge at node 0, and 0.5 for each other edge.
fn reward(states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    let of = |graph: &GraphState| graph.edges().map(|(a, _)| if a == 0 { 1.0 } else { 0.5 }).sum();
    Ok(states.graphs().iter().map(of).collect())
}

fn trainer(objective: impl Objective + 'static) -> Trainer<Edges> {
    let env = env();
    let mut rng = Rng::seeded(3);
    let network = GraphNetConfig {
        embedding: 32,
        estimators: EstimatorsConfig::with_flow(true),
        ..GraphNetConfig::default()
    };
    let net = GraphNet::new(&env, network, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    Trainer::new(env, reward, GraphPolicy(net), objective, config, rng).unwrap()
}

#[test]
fn instances_keep_their_numbers_all_the_way() {
    let env = env();
    check_graph_env(&env, Budget::thorough().with_walks(60), &mut Rng::seeded(0)).unwrap();
    let sampler = Sampler::new(&env, &UniformPolicy);
    let sampled = sampler.forward(64, &mut Rng::seeded(1)).unwrap();
    let instances = env.instances(sampled.terminal_states());
    assert!((0..3).all(|instance| instances.contains(&instance)), "all are drawn: {instances:?}");
    for (graph, &instance) in sampled.terminal_states().graphs().iter().zip(&instances) {
        assert_eq!(graph.n_nodes(), 2 + instance as usize);
    }
    let again = sampled.walks(&env).unwrap().replay(&env).unwrap();
    assert_eq!((again.states(), again.actions()), (sampled.states(), sampled.actions()));
    let back = sampler.backward(sampled.terminal_states(), &mut Rng::seeded(2)).unwrap();
    assert_eq!(env.instances(back.terminal_states()), instances);

    let requested = [2, 0, 2, 1];
    let given = sampler.forward_in(&requested, None, &mut Rng::seeded(4)).unwrap();
    assert_eq!(env.instances(given.terminal_states()), requested);
    let conditions = Tensor::zeros([4, 1], (Kind::Float, Device::Cpu));
    let given = sampler.forward_in(&requested, Some(&conditions), &mut Rng::seeded(4)).unwrap();
    assert_eq!(env.instances(given.terminal_states()), requested);
    assert!(given.conditions().is_some_and(|rows| rows.size() == [4, 1]));
    let unknown = sampler.forward_in(&[0, 3], None, &mut Rng::seeded(4)).unwrap_err();
    assert!(matches!(unknown, Error::OutOfRange { index: 3, len: 3 }), "{unknown}");

    let path = std::env::temp_dir().join(format!("gfn-instances-{}", std::process::id()));
    sampled.save(&env, &path).unwrap();
    let loaded = Trajectories::load(&env, &path).unwrap();
    assert_eq!((loaded.states(), loaded.terminal_states()), (sampled.states(), sampled.terminal_states()));
    let other = env.clone().with_instances(vec![GraphState::with_nodes(GraphKind::Undirected, 4)]).unwrap();
    assert!(Trajectories::load(&other, &path).is_err(), "of another environment");
    std::fs::remove_dir_all(&path).unwrap();

    let walks = sampled.walks(&env).unwrap();
    for buffer in [ReplayBuffer::distinct, ReplayBuffer::new] {
        for paths in [true, false] {
            let make = || {
                let buffer =
                    buffer(ReplayConfig { capacity: 100, eviction: Eviction::Fifo, draw: Draw::Uniform })
                        .unwrap();
                if paths { buffer } else { buffer.terminal_only() }
            };
            let mut buffer = make();
            let mut restored = make();
            buffer.add(&env, &walks, &sampled.log_rewards(&reward).unwrap()).unwrap();
            restored.load_state(&env, &buffer.state(&env).unwrap()).unwrap();
            let ends = |buffer: &ReplayBuffer<Edges>| buffer.draw(40, &mut Rng::seeded(5)).unwrap().terminal;
            assert_eq!(ends(&buffer), ends(&restored));
            assert!(env.instances(&ends(&restored)).iter().any(|&instance| instance > 0));
        }
    }
}

#[test]
fn states_of_instances_are_different_states() {
    let plain = GraphState::with_nodes(GraphKind::Directed, 3);
    let second = plain.clone().with_instance(1);
    assert_ne!(plain, second);
    assert_ne!(labelled_key(&plain), labelled_key(&second));
    assert_ne!(canonical_key(&plain), canonical_key(&second));
    assert_eq!(second.induced(&[2, 0]).instance(), 1);
    let mut smaller = second.clone();
    smaller.remove_node(0).unwrap();
    assert_eq!(smaller.instance(), 1);
}

#[test]
fn one_policy_learns_the_distribution_of_each_instance() {
    let mut trainer = trainer(DetailedBalance::default());
    for _ in 0..400 {
        trainer.step().unwrap();
    }
    for (instance, states) in [(0, 2), (1, 8), (2, 64)] {
        let space = StateGraph::build_of(trainer.env(), instance, 100).unwrap();
        assert_eq!(space.len(), states);
        let target = space.target_distribution(&reward, None).unwrap();
        let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
        let tv = Distances::between(&learned.probs, &target.probs).unwrap().tv;
        assert!(tv < 0.05, "instance {instance}: {tv}");
    }
}

#[test]
fn up_to_isomorphism_each_instance_has_its_exact_distribution() {
    let kind = GraphKind::Undirected;
    let start = |class| GraphState::from_parts(kind, &[Node::from_class(class)], &[]).unwrap();
    let actions = ActionSet::new(Semantics::UpToIsomorphism)
        .with(AddNode::attached(1, 1, 4))
        .with(AddEdge::new(1).keeping_connected());
    let schema = GraphSchema { node_classes: 2, ..GraphSchema::plain(kind, 4) };
    let env = GraphEnv::new(Free, actions, start(0)).and_then(|env| env.with_schema(schema)).unwrap();
    let env = env.with_instances(vec![start(0), start(1)]).unwrap();
    let lengths = [0, 1].map(|instance| {
        let space = StateGraph::build_of(&env, instance, 1_000).unwrap();
        let ended = space.terminating_distribution(&env, &UniformPolicy, None).unwrap();
        assert!((ended.probs.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        (space.len(), ended.mean_len)
    });
    assert_eq!(lengths[0].0, lengths[1].0);
    assert!((lengths[0].1 - lengths[1].1).abs() < 1e-12);
}

#[test]
fn instances_that_lead_to_the_same_graph_are_refused() {
    let kind = GraphKind::Undirected;
    let bare = GraphState::with_nodes(kind, 3);
    let mut joined = bare.clone();
    joined.add_edge(0, 1, Edge::default()).unwrap();
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::new(Free, actions, bare.clone()).unwrap();
    let env = env.with_instances(vec![bare, joined]).unwrap();
    let error = env.check_laws().unwrap_err().to_string();
    assert!(
        error.contains("instances 0 and 1 lead to") || error.contains("instances 1 and 0 lead to"),
        "{error}"
    );
}

/// Tests an instance from which the initial graph of another instance can be reached. The graphs are so
/// large that short random trajectories hardly ever reach it, but the error must occur nevertheless.
#[test]
fn an_instance_that_leads_to_where_another_starts_is_refused() {
    let kind = GraphKind::Undirected;
    for (n, most) in [(7, 21), (12, 4), (20, 4)] {
        let start = |class: u16, joined: bool| {
            let mut graph = GraphState::with_nodes(kind, n);
            graph.set_node(0, Node::from_class(class)).unwrap();
            if joined {
                graph.add_edge(0, 1, Edge::default()).unwrap();
            }
            graph
        };
        let check = |class| {
            let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1).at_most(most));
            let schema = GraphSchema { node_classes: 2, ..GraphSchema::plain(kind, n) };
            let env = GraphEnv::new(Free, actions, start(0, false))
                .and_then(|env| env.with_schema(schema))
                .unwrap();
            env.with_instances(vec![start(class, true), start(0, false)]).unwrap().check_laws()
        };
        check(1).unwrap();
        let error = check(0).unwrap_err().to_string();
        assert!(
            error.contains("instances 1 and 0 lead to") && error.contains("different classes"),
            "{error}"
        );
    }
}

/// A log-reward of 0.5 per node and 0.7 per edge, for finished and unfinished graphs.
struct Sizes;

impl Reward<GraphStates> for Sizes {
    fn log_reward(&self, states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states
            .graphs()
            .iter()
            .map(|graph| 0.5 * graph.n_nodes() as f64 + 0.7 * graph.n_edges() as f64)
            .collect())
    }
    fn partial_log_reward(
        &self,
        states: &GraphStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, conditions).map(Some)
    }
}

/// Tests objectives that use changes of the log-reward. The log-rewards of the initial states differ
/// between instances, so changes must be summed within each instance separately.
#[test]
fn changes_of_log_r_add_up_instance_by_instance() {
    let env = env();
    let mut rng = Rng::seeded(3);
    let network = GraphNetConfig { embedding: 16, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, network, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let objective = ModifiedDetailedBalance::default();
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env, Sizes, GraphPolicy(net), objective, config, rng).unwrap();
    trainer.step().unwrap();
}

#[test]
fn parts_for_one_log_z_or_one_distribution_refuse_several_instances() {
    let refused = |error: Error, words: &str| assert!(error.to_string().contains(words), "{error}");
    refused(trainer(TrajectoryBalance).step().unwrap_err(), "log Z of each instance");
    refused(trainer(LogPartitionVariance).step().unwrap_err(), "one instance for the whole batch");
    let env = env();
    refused(StateGraph::build(&env, 100).unwrap_err(), "build_of");
    refused(StateGraph::build_of(&env, 7, 100).unwrap_err(), "7");
    refused(pruned_distribution(&env, &UniformPolicy, 1e-3, 100).map(|_| ()).unwrap_err(), "instances");
    refused(estimate_log_z(&env, &UniformPolicy, &reward, 10, &mut Rng::seeded(0)).unwrap_err(), "instances");
    let edges = |n| GraphState::with_nodes(GraphKind::Undirected, n);
    refused(env.clone().with_instances(Vec::new()).unwrap_err(), "one initial graph for each instance");
    refused(
        env.with_instances(vec![GraphState::directed(4)]).unwrap_err(),
        "is Directed, but must be Undirected",
    );
    let grown = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 4)).with(AddEdge::new(1));
    let grown = GraphEnv::new(Free, grown, edges(0)).unwrap();
    refused(grown.with_instances(vec![edges(1), edges(2)]).unwrap_err(), "[1, 2]");
    // A graph of 100,000 nodes has more pairs of nodes, and therefore more slots, than 32 bits can number.
    let labelled = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let labelled = GraphEnv::new(Free, labelled, edges(4)).unwrap();
    assert!(labelled.with_instances(vec![edges(100_000)]).is_err());
}

/// Rules for vectors with two entries. Actions increase the first entry if it started at 0, and decrease it
/// if it started at 3. The second entry stays constant and holds the index of the instance.
struct TwoStarts(Vec<Vec<u16>>);

impl VectorRules for TwoStarts {
    fn width(&self) -> usize {
        2
    }
    fn n_values(&self) -> usize {
        4
    }
    fn n_moves(&self, _: Direction) -> usize {
        1
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let up = (direction == Direction::Forward) == (row[1] == 0);
        let next = if up { Some(row[0] + 1) } else { row[0].checked_sub(1) };
        row[0] = next.filter(|&next| slot == 0 && next <= 3)?;
        Some(0)
    }
    fn starts(&self) -> &[Vec<u16>] {
        &self.0
    }
    fn instance(&self, row: &[u16]) -> u32 {
        row[1].into()
    }
}

#[test]
fn trajectories_start_where_the_rules_say() {
    let env = VectorEnv::new(TwoStarts(vec![vec![0, 0], vec![3, 1]]));
    let states = env.initial(&[1, 0, 1]);
    assert_eq!((states.values(), env.instances(&states)), ([3u16, 1, 0, 0, 3, 1].as_slice(), vec![1, 0, 1]));
    assert_eq!(env.is_initial(&VectorStates::from_rows([[3, 0], [3, 1], [0, 0]])), [false, true, true]);
    check_env(&env, Budget::thorough().with_walks(20), &mut Rng::seeded(0)).unwrap();
    env.check_laws().unwrap();
    for instance in 0..2 {
        assert_eq!(StateGraph::build_of(&env, instance, 10).unwrap().len(), 4);
    }
    assert!(matches!(StateGraph::build(&env, 10), Err(Error::Config { .. })));
}
