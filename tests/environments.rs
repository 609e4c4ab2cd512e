//! General checks of all gym environments in several variants. The environment checkers must pass, P_B must
//! be a distribution, exact flows must leave no residual, and backward trajectories must be valid forward
//! trajectories.

use crate::gallery::{Check, each_graph_env, grid, log_r};
use gfn::contract::{Budget, check_env, check_graph_env};
use gfn::distribution::GraphActionCategorical;
use gfn::env::{Block, Direction, EnumerableEnv, Masks, Rows, VectorEnv};
use gfn::env::{Child, StateGraph};
use gfn::graph::{GraphEnv, GraphKind, GraphStates};
use gfn::metrics::{Distances, ExactPolicy};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, GraphNet, GraphNetConfig, MlpConfig};
use gfn::objective::score;
use gfn::objective::{
    DetailedBalance, LogPartitionVariance, Objective, SubTrajectoryBalance, TrajectoryBalance, Weighting,
};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy};
use gfn::rollout::Sampler;
use gfn::rollout::Trajectories;
use gfn::{Result, Rng};
use gfn_gym::hypergrid::HyperGrid;
use gfn_gym::ring::Ring;
use tch::{Device, Kind, Tensor};

/// The largest number of states of an enumerated state graph.
const LIMIT: usize = 5000;

/// Creates a network with random weights in double precision. The network has node-identity features only
/// if node labels matter in the environment.
fn network(env: &GraphEnv) -> GraphPolicy<GraphNet> {
    let config = GraphNetConfig {
        embedding: 12,
        pair_walks: Some(2),
        backward: BackwardPolicy::Separate,
        estimators: EstimatorsConfig::with_flow(true),
        ..GraphNetConfig::default()
    };
    GraphPolicy(GraphNet::new(env, config, Device::Cpu, Kind::Double, &mut Rng::seeded(5)).unwrap())
}

fn grid_network(env: &VectorEnv, ndim: usize, height: usize) -> MlpPolicy<KHot> {
    let mlp = MlpConfig { hidden: vec![16], ..MlpConfig::default() };
    let config =
        MlpPolicyConfig { mlp, estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() };
    MlpPolicy::new(env, KHot::new(ndim, height), config, Device::Cpu, Kind::Double, &mut Rng::seeded(5))
        .unwrap()
}

struct Checkers;

impl Check for Checkers {
    fn check(&self, name: &str, env: &GraphEnv) {
        check_graph_env(env, Budget::thorough().with_walks(40), &mut Rng::seeded(0))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn checkers_pass() {
    each_graph_env(&Checkers);
    for (ndim, height) in [(1, 2), (2, 5), (3, 4)] {
        check_env(
            &HyperGrid::new(ndim, height).unwrap().env(),
            Budget::thorough().with_walks(40),
            &mut Rng::seeded(0),
        )
        .unwrap();
    }
}

/// Checks that the probabilities P_B of the backward actions of each state sum to 1 and are positive. The
/// initial state, which has no backward actions, is skipped.
fn check_backward<E: EnumerableEnv>(name: &str, env: &E, graph: &StateGraph<E>, policy: &dyn Policy<E>) {
    let evaluation = tch::no_grad(|| policy.evaluate(env, graph.states(), None, Quantities::PB)).unwrap();
    let pb = evaluation.pb.unwrap();
    let masks = env.masks(Direction::Backward, graph.states());
    assert_eq!(pb.masks().legal, masks.legal, "{name}");
    let log_probs = pb.host_log_probs().unwrap();
    let initial = env.is_initial(graph.states());
    assert_eq!(initial.iter().filter(|&&initial| initial).count(), 1, "{name}");
    for (row, ends) in pb.legal_offsets().windows(2).enumerate() {
        let sum: f64 = log_probs[ends[0]..ends[1]].iter().map(|p| p.exp()).sum();
        let expected = if initial[row] { 0.0 } else { 1.0 };
        assert!((sum - expected).abs() < 1e-9, "{name}: P_B of state {row} sums to {sum}");
        assert!(log_probs[ends[0]..ends[1]].iter().all(|p| *p > -50.0), "{name}: {log_probs:?}");
    }
}

fn objectives() -> Vec<Box<dyn Objective>> {
    let subtb = |weighting| Box::new(SubTrajectoryBalance::new(weighting).unwrap());
    vec![
        Box::new(TrajectoryBalance),
        Box::new(LogPartitionVariance),
        Box::new(DetailedBalance::default()),
        subtb(Weighting::Db),
        subtb(Weighting::ModifiedDb),
        subtb(Weighting::Tb),
        subtb(Weighting::Equal),
        subtb(Weighting::EqualWithin),
        subtb(Weighting::Geometric { lambda: 0.5 }),
        subtb(Weighting::GeometricWithin { lambda: 0.9 }),
    ]
}

/// Checks that the policy with exact flows for a given P_B samples the target distribution. Also checks
/// that every objective's residuals are zero on forward and backward trajectories.
fn check_exact<E: EnumerableEnv>(
    name: &str,
    env: &E,
    graph: &StateGraph<E>,
    backward: &dyn Policy<E>,
    reward: &(impl Fn(&E::States, Option<&Tensor>) -> Result<Vec<f64>> + Send),
) {
    let exact = ExactPolicy::new(graph, env, backward, reward).unwrap();
    let target = graph.target_distribution(reward, None).unwrap();
    let sampled = graph.terminating_distribution(env, &exact, None).unwrap();
    let distance = Distances::between(&sampled.probs, &target.probs).unwrap();
    // The tolerance allows for a uniform P_B, which is computed in single precision.
    assert!(distance.l1 < 1e-5, "{name}: {distance:?}");
    assert!((exact.flows().log_z - target.log_z).abs() < 1e-5, "{name}");
    let mut rng = Rng::seeded(2);
    let forward = Sampler::new(env, &UniformPolicy).forward(48, &mut rng).unwrap();
    let back = Sampler::new(env, &exact).backward(forward.terminal_states(), &mut rng).unwrap();
    for trajectories in [&forward, &back] {
        let needs = Quantity::LogFlow | Quantity::LogZ;
        let scores = tch::no_grad(|| score(env, reward, &exact, trajectories, needs)).unwrap();
        for objective in objectives() {
            let residuals = objective.residuals(&scores).unwrap();
            let largest = residuals.values.abs().max().double_value(&[]);
            assert!(largest < 1e-5, "{name}, {}: {largest}", objective.name());
        }
    }
}

/// Checks that each action of a backward trajectory leads from its state to the next state. Replaying the
/// actions must give the same objects, and the same step probabilities under a policy that ignores labels.
fn check_conversion<E: EnumerableEnv>(
    name: &str,
    env: &E,
    policy: &dyn Policy<E>,
    reward: &(impl Fn(&E::States, Option<&Tensor>) -> Result<Vec<f64>> + Send),
) {
    let mut rng = Rng::seeded(3);
    let objects = Sampler::new(env, &UniformPolicy).walks(64, &mut rng).unwrap().terminal;
    let uniform = Sampler::new(env, &UniformPolicy).backward(&objects, &mut rng).unwrap();
    let learned = Sampler::new(env, policy).backward(&objects, &mut rng).unwrap();
    for trajectories in [&uniform, &learned] {
        check_rows(name, env, trajectories);
        assert_eq!(env.keys(trajectories.terminal_states()), env.keys(&objects), "{name}");
        let walks = trajectories.walks(env).unwrap();
        let replayed = walks.replay(env).unwrap_or_else(|error| panic!("{name}: {error}"));
        check_rows(name, env, &replayed);
        assert_eq!(replayed.offsets(), trajectories.offsets(), "{name}");
        assert_eq!(env.keys(replayed.terminal_states()), env.keys(&objects), "{name}");
        assert_eq!(env.keys(&walks.terminal), env.keys(&objects), "{name}");
        assert_eq!(env.keys(replayed.states()), env.keys(trajectories.states()), "{name}");
        let scores = [trajectories, &replayed].map(|trajectories| {
            let needs = Quantity::LogFlow | Quantity::LogZ;
            tch::no_grad(|| score(env, reward, policy, trajectories, needs)).unwrap()
        });
        let apart = |a: &Tensor, b: &Tensor| (a - b).abs().max().double_value(&[]);
        let [walked, again] = &scores;
        assert!(apart(&walked.log_pf, &again.log_pf) < 1e-5, "{name}: log P_F");
        assert!(apart(&walked.log_pb, &again.log_pb) < 1e-5, "{name}: log P_B");
        assert!(apart(&walked.log_reward, &again.log_reward) < 1e-9, "{name}: log R");
        assert!(
            apart(walked.get(Quantity::LogFlow).unwrap(), again.get(Quantity::LogFlow).unwrap()) < 1e-5,
            "{name}: log F"
        );
    }
}

/// Checks that each action is legal and leads to the next state or to the terminal state. The reverse
/// action must be legal in that state and must lead back.
fn check_rows<E: EnumerableEnv>(name: &str, env: &E, trajectories: &Trajectories<E>) {
    let transitions = trajectories.transitions();
    let states = transitions.states();
    let actions = transitions.actions();
    let next_states = transitions.next_states();
    let is_exit = transitions.is_exit();
    let n = trajectories.n_transitions();
    let starts: Vec<usize> = trajectories.offsets()[..trajectories.len()].to_vec();
    assert!(env.is_initial(&states.select(&starts)).iter().all(|initial| *initial), "{name}");
    let masks = env.masks(Direction::Forward, &states);
    let before = env.keys(&states);
    let next = env.keys(&next_states);
    let mut after = states.clone();
    let step = env.step(Direction::Forward, &mut after, &actions).unwrap();
    assert_eq!(step.exit, is_exit, "{name}");
    assert_eq!(step.done, transitions.is_last(), "{name}");
    assert_eq!(env.keys(&after), next, "{name}");
    assert!((0..n).all(|t| masks.row(t)[actions.0[t] as usize]), "{name}");
    let inner: Vec<usize> = (0..n).filter(|&t| !is_exit[t]).collect();
    let mut back = next_states.select(&inner);
    let reverse = trajectories.reverse_actions().select(&inner);
    let masks = env.masks(Direction::Backward, &back);
    assert!((0..inner.len()).all(|k| masks.row(k)[reverse.0[k] as usize]), "{name}");
    env.step(Direction::Backward, &mut back, &reverse).unwrap();
    let parents: Vec<_> = inner.iter().map(|&t| before[t].clone()).collect();
    assert_eq!(env.keys(&back), parents, "{name}");
}

struct Exactness;

impl Check for Exactness {
    fn check(&self, name: &str, env: &GraphEnv) {
        let reward = |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(log_r(states)) };
        let graph = StateGraph::build(env, LIMIT).unwrap_or_else(|error| panic!("{name}: {error}"));
        let network = network(env);
        check_backward(name, env, &graph, &UniformPolicy);
        check_backward(name, env, &graph, &network);
        check_exact(name, env, &graph, &UniformPolicy, &reward);
        check_exact(name, env, &graph, &network, &reward);
    }
}

struct Conversion;

impl Check for Conversion {
    fn check(&self, name: &str, env: &GraphEnv) {
        let reward = |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(log_r(states)) };
        check_conversion(name, env, &network(env), &reward);
    }
}

#[test]
fn exact_flows_leave_no_residual() {
    each_graph_env(&Exactness);
    for (ndim, height) in [(1, 3), (2, 5), (3, 4)] {
        let (env, reward) = grid(ndim, height);
        let graph = StateGraph::build(&env, LIMIT).unwrap();
        let network = grid_network(&env, ndim, height);
        check_backward("grid", &env, &graph, &UniformPolicy);
        check_backward("grid", &env, &graph, &network);
        check_exact("grid", &env, &graph, &UniformPolicy, &reward);
        check_exact("grid", &env, &graph, &network, &reward);
    }
}

#[test]
fn backward_walks_are_forward_trajectories() {
    each_graph_env(&Conversion);
    let (env, reward) = grid(2, 5);
    check_conversion("grid", &env, &grid_network(&env, 2, 5), &reward);
}

/// A forward policy that is computed from flows with P_B = 1 for every action. Each path to an object then
/// carries the object's whole reward.
struct Certain<'a, E: EnumerableEnv> {
    graph: &'a StateGraph<E>,
    log_rewards: Vec<f64>,
    log_flow: Vec<f64>,
    log_paths: Vec<f64>,
}

fn log_add(a: f64, b: f64) -> f64 {
    let max = a.max(b);
    if max == f64::NEG_INFINITY { max } else { max + ((a - max).exp() + (b - max).exp()).ln() }
}

impl<'a, E: EnumerableEnv> Certain<'a, E> {
    fn new(graph: &'a StateGraph<E>, log_rewards: Vec<f64>) -> Self {
        let mut log_flow = log_rewards.clone();
        let mut log_paths = vec![f64::NEG_INFINITY; graph.len()];
        log_paths[0] = 0.0;
        let children = |state| {
            graph.children(state).filter_map(|child| match child {
                Child::State(child) => Some(child),
                Child::Exit => None,
            })
        };
        // States are sorted such that parents come before their children.
        for state in 0..graph.len() {
            for child in children(state) {
                log_paths[child] = log_add(log_paths[child], log_paths[state]);
            }
        }
        for state in (0..graph.len()).rev() {
            log_flow[state] =
                children(state).fold(log_flow[state], |sum, child| log_add(sum, log_flow[child]));
        }
        Self { graph, log_rewards, log_flow, log_paths }
    }
}

impl<E: EnumerableEnv> Policy<E> for Certain<'_, E> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        _: Option<&Tensor>,
        _: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let masks = env.masks(Direction::Forward, states);
        let rows = self.graph.indices(env, states).into_iter().map(Option::unwrap).enumerate();
        let mut logits = vec![0.0; masks.legal.len()];
        for (row, state) in rows {
            for (slot, child) in masks.legal_slots(row).zip(self.graph.children(state)) {
                logits[masks.slot_ptr[row] + slot as usize] = match child {
                    Child::Exit => self.log_rewards[state],
                    Child::State(child) => self.log_flow[child],
                };
            }
        }
        // The flat list `logits` has one logit per slot. The blocks of the mask, one per action type, are
        // therefore replaced by a single block with a row of one logit for each slot. The softmax over a
        // state's slots stays the same.
        let block = Block { name: "slots".into(), width: 1, row_ptr: masks.slot_ptr.clone() };
        let masks = Masks { blocks: vec![block], ..masks };
        let dist = GraphActionCategorical::new(masks, &[Tensor::from_slice(&logits).view([-1, 1])])?;
        Ok(Evaluation { pf: Some(dist), ..Evaluation::default() })
    }
}

/// Checks a negative control. With P_B = 1, an object is sampled in proportion to its number of paths times
/// its reward, and the exactness test must notice that.
fn check_control<E: EnumerableEnv>(
    name: &str,
    env: &E,
    reward: &(impl Fn(&E::States, Option<&Tensor>) -> Result<Vec<f64>> + Send),
) {
    let graph = StateGraph::build(env, LIMIT).unwrap();
    let target = graph.target_distribution(reward, None).unwrap();
    let wrong = Certain::new(&graph, target.log_rewards.clone());
    assert!(
        wrong.log_paths.iter().any(|paths| (paths - wrong.log_paths[1]).abs() > 0.5),
        "{name}: paths differ"
    );
    let sampled = graph.terminating_distribution(env, &wrong, None).unwrap();
    let distance = Distances::between(&sampled.probs, &target.probs).unwrap();
    assert!(distance.tv > 0.1, "{name}: {distance:?}");
    let weights: Vec<f64> =
        target.probs.iter().zip(&wrong.log_paths).map(|(p, paths)| p * paths.exp()).collect();
    let total: f64 = weights.iter().sum();
    let by_paths: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
    assert!(Distances::between(&sampled.probs, &by_paths).unwrap().l1 < 1e-9, "{name}");

    // P_B = 1 must also leave a residual in every objective if all other scores are those of the exact
    // policy.
    let exact = ExactPolicy::new(&graph, env, &UniformPolicy, reward).unwrap();
    let trajectories = Sampler::new(env, &UniformPolicy).forward(64, &mut Rng::seeded(1)).unwrap();
    let mut scores = score(env, reward, &exact, &trajectories, Quantity::LogFlow | Quantity::LogZ).unwrap();
    scores.log_pb = scores.log_pb.zeros_like();
    for objective in objectives() {
        let largest = objective.residuals(&scores).unwrap().values.abs().max().double_value(&[]);
        assert!(largest > 0.1, "{name}, {}: {largest}", objective.name());
    }
}

#[test]
fn a_backward_policy_taken_for_certain_fails() {
    let (env, reward) = grid(2, 5);
    check_control("grid", &env, &reward);
    let reward = |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(log_r(states)) };
    for kind in [GraphKind::Directed, GraphKind::Undirected] {
        check_control("ring", &Ring::new(3, kind).unwrap().into_env(), &reward);
    }
}
