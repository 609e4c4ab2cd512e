//! Tests of exact flows. Every objective's residual must be zero, and samples must follow R / Z. If P_B is
//! wrong, neither may be true.

use crate::spaces::ColouredGraphs;
use gfn::contract::{Budget, check_env};
use gfn::distribution::GraphActionCategorical;
use gfn::env::StateGraph;
use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, Step};
use gfn::examples::{Chain, Positions, Triangles};
use gfn::graph::{GraphEnv, GraphState, GraphStates};
use gfn::metrics::{Distances, ExactPolicy, NoiseFloor, estimate_log_z, eubo, pruned_distribution};
use gfn::objective::{
    DetailedBalance, FlowMatching, LogPartitionVariance, Objective, RelativeTrajectoryBalance,
    SubTrajectoryBalance, TrajectoryBalance, Weighting,
};
use gfn::objective::{Quantities, Quantity};
use gfn::objective::{Scores, score};
use gfn::policy::{Evaluation, Policy, UniformPolicy, WithPrior};
use gfn::rollout::Sampler;
use gfn::{Result, Rng};
use tch::Tensor;

fn chain_reward(states: &Positions, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(states.0.iter().map(|&x| (f64::from(x) * 1.7).sin()).collect())
}

/// Returns log-rewards that are high for graphs with many edges and few nodes of class 1. Isomorphic graphs
/// have equal rewards.
fn graph_reward(states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    let log_r = |graph: &GraphState| {
        let ones = graph.nodes().filter(|node| node.class == 1).count();
        graph.n_edges() as f64 * 0.4 - 0.3 * ones as f64
    };
    Ok(states.graphs().iter().map(log_r).collect())
}

fn objectives() -> Vec<Box<dyn Objective>> {
    let weightings = [
        Weighting::Db,
        Weighting::ModifiedDb,
        Weighting::Tb,
        Weighting::Equal,
        Weighting::EqualWithin,
        Weighting::Geometric { lambda: 0.9 },
        Weighting::GeometricWithin { lambda: 0.9 },
    ];
    let mut out: Vec<Box<dyn Objective>> = vec![
        Box::new(TrajectoryBalance),
        Box::new(LogPartitionVariance),
        Box::new(DetailedBalance::default()),
        Box::new(FlowMatching::default()),
    ];
    for weighting in weightings {
        out.push(Box::new(SubTrajectoryBalance::new(weighting).unwrap()));
    }
    out
}

/// Returns the largest absolute residual of each objective.
fn residuals(scores: &Scores) -> Vec<f64> {
    let largest = |objective: Box<dyn Objective>| {
        let residuals = objective.residuals(scores).unwrap();
        assert!(residuals.values.numel() > 0);
        residuals.values.abs().max().double_value(&[])
    };
    objectives().into_iter().map(largest).collect()
}

/// Checks the properties of the exact policy for an environment and a reward.
fn check<E: EnumerableEnv + DiscreteEnv<Actions = Slots>>(
    env: &E,
    reward: impl Fn(&E::States, Option<&Tensor>) -> Result<Vec<f64>> + Send + Sync,
) {
    let graph = StateGraph::build(env, 10_000).unwrap();
    let target = graph.target_distribution(&reward, None).unwrap();
    let exact = ExactPolicy::new(&graph, env, &UniformPolicy, &reward).unwrap();
    assert!((exact.flows().log_z - target.log_z).abs() < 1e-9);
    let sampled = graph.terminating_distribution(env, &exact, None).unwrap();
    let distances = Distances::between(&sampled.probs, &target.probs).unwrap();
    assert!(distances.l1 < 1e-9, "{distances:?}");

    // The residuals are checked on forward trajectories of another policy, and on backward trajectories.
    let mut rng = Rng::seeded(1);
    let needs = Quantity::LogFlow | Quantity::LogZ | Quantity::LogInflow;
    let forward = Sampler::new(env, &UniformPolicy).forward(64, &mut rng).unwrap();
    let backward = Sampler::new(env, &exact).backward(forward.terminal_states(), &mut rng).unwrap();
    for trajectories in [&forward, &backward] {
        let mut scores = score(env, &reward, &exact, trajectories, needs).unwrap();
        for residual in residuals(&scores) {
            // The tolerance allows for a uniform P_B, which is scored in single precision.
            assert!(residual < 1e-5, "{residual}");
        }
        // The negative control sets P_B = 1 and multiplies the reward by e. Every objective must then have
        // a residual. For flow matching only the reward matters, and for the variance of the log-ratios
        // only P_B does.
        scores.log_pb = scores.log_pb.zeros_like();
        scores.log_reward += 1.0;
        for residual in residuals(&scores) {
            assert!(residual > 0.1, "{residual}");
        }
    }

    // The prior samples in proportion to R, and the policy in proportion to R^2. Relative to the prior, the
    // policy's reward is then R, with or without symmetry correction.
    let squared = |states: &E::States, conditions: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(reward(states, conditions)?.into_iter().map(|r| 2.0 * r).collect())
    };
    let posterior = ExactPolicy::new(&graph, env, &UniformPolicy, &squared).unwrap();
    let log_z = posterior.flows().log_z - exact.flows().log_z;
    let prior = ExactPolicy::new(&graph, env, &UniformPolicy, &reward).unwrap();
    let pair = WithPrior { policy: posterior, prior };
    let needs = Quantities::from(Quantity::LogPrior);
    let mut scores = score(env, &reward, &pair, &forward, needs).unwrap();
    scores.set(Quantity::LogZ, Tensor::full_like(&scores.log_reward, log_z)).unwrap();
    let relative = RelativeTrajectoryBalance::new(1.0).unwrap();
    let largest = relative.residuals(&scores).unwrap().values.abs().max().double_value(&[]);
    assert!(largest < 1e-9, "{largest}");

    // The importance weight of every trajectory must equal Z, because the policy is exact.
    let estimate = estimate_log_z(env, &exact, &reward, 200, &mut rng).unwrap();
    assert!((estimate.log_z - target.log_z).abs() < 1e-5 && (estimate.elbo.mean - target.log_z).abs() < 1e-5);
    assert!((estimate.effective_samples - 200.0).abs() < 1e-3);
    let objects = graph.states().select(&draw(&target.probs, 500, &mut rng));
    let upper = eubo(env, &exact, &reward, &objects, &mut rng).unwrap();
    assert!((upper.mean - target.log_z).abs() < 1e-5);

    // The uniform policy is inexact. The bounds that its trajectories give must lie on both sides of log Z,
    // and the estimate of Z must be unbiased.
    let estimate = estimate_log_z(env, &UniformPolicy, &reward, 20_000, &mut rng).unwrap();
    let upper = eubo(env, &UniformPolicy, &reward, &objects, &mut rng).unwrap();
    assert!(estimate.elbo.mean < target.log_z - 0.02 && upper.mean > target.log_z + 0.02);
    let half = (estimate.interval.1 - estimate.interval.0) / 2.0;
    assert!((estimate.log_z - target.log_z).abs() < 2.0 * half, "{estimate:?} {}", target.log_z);

    // Samples of the exact policy must be as far from the target as samples of a perfect sampler.
    let samples = Sampler::new(env, &exact).forward(4000, &mut rng).unwrap();
    let shares = graph.empirical(env, samples.terminal_states()).unwrap();
    let tv = Distances::between(&shares, &target.probs).unwrap().tv;
    let floor = NoiseFloor::simulate(&target.probs, 4000, 100, &mut rng).unwrap();
    assert!((tv - floor.tv).abs() < 4.0 * floor.tv_sd, "{tv} {floor:?}");

    // A pruned distribution drops states that have a probability below the threshold tau. With tau = 0, no
    // probability may be lost. With tau = 0.17 some is lost, and the bound on the divergence from the target
    // must hold nevertheless.
    let whole = pruned_distribution(env, &UniformPolicy, 0.0, 100_000).unwrap();
    let uniform = graph.terminating_distribution(env, &UniformPolicy, None).unwrap();
    let places: Vec<usize> = graph.indices(env, &whole.states).into_iter().map(Option::unwrap).collect();
    assert_eq!(whole.dropped, 0.0);
    assert_eq!(places.len(), graph.ends().len());
    for (&state, p) in places.iter().zip(&whole.probs) {
        assert!((uniform.probs[state] - p).abs() < 1e-12);
    }
    let jsd = Distances::between(&uniform.probs, &target.probs).unwrap().jsd;
    let of_target = |states: &E::States| -> Vec<f64> {
        graph.indices(env, states).into_iter().map(|state| target.probs[state.unwrap()]).collect()
    };
    assert!((whole.jsd_bound(&of_target(&whole.states)).unwrap() - jsd).abs() < 1e-12);
    let pruned = pruned_distribution(env, &UniformPolicy, 0.17, 100_000).unwrap();
    assert!(pruned.dropped > 0.0 && pruned.n_expanded < whole.n_expanded);
    assert!((pruned.probs.iter().sum::<f64>() + pruned.dropped - 1.0).abs() < 1e-12);
    let bound = pruned.jsd_bound(&of_target(&pruned.states)).unwrap();
    assert!(bound >= jsd && bound < jsd + 0.5, "{bound} {jsd}");
    assert!(pruned_distribution(env, &UniformPolicy, 0.0, 3).is_err());
}

fn draw(probs: &[f64], n: usize, rng: &mut Rng) -> Vec<usize> {
    let one = |rng: &mut Rng| {
        let mut rest = rng.uniform();
        probs.iter().position(|p| {
            rest -= p;
            rest < 0.0
        })
    };
    (0..n).map(|_| one(rng).unwrap_or(0)).collect()
}

#[test]
fn chain() {
    check(&Chain::new(7), chain_reward);
}

/// An environment without an exit. Each step adds one or two to a number, which begins at 0. Trajectories
/// end at 6 or 7.
struct Ladder;

impl Env for Ladder {
    type States = Positions;
    type Actions = Slots;
    type Dist = GraphActionCategorical;

    fn initial(&self, instances: &[u32]) -> Positions {
        Positions(vec![0; instances.len()])
    }
    fn step(&self, direction: Direction, states: &mut Positions, actions: &Slots) -> Result<Step<Slots>> {
        for (x, slot) in states.0.iter_mut().zip(&actions.0) {
            match direction {
                Direction::Forward => *x += slot + 1,
                Direction::Backward => *x -= slot + 1,
            }
        }
        let done =
            states.0.iter().map(|&x| if direction == Direction::Forward { x >= 6 } else { x == 0 }).collect();
        Ok(Step { reverse: actions.clone(), exit: vec![false; actions.len()], done })
    }
    fn is_initial(&self, states: &Positions) -> Vec<bool> {
        states.0.iter().map(|&x| x == 0).collect()
    }
    fn exit_actions(&self, _: &Positions) -> Option<Slots> {
        None
    }
}

impl DiscreteEnv for Ladder {
    fn masks(&self, direction: Direction, states: &Positions) -> Masks {
        let legal = states.0.iter().flat_map(|&x| match direction {
            Direction::Forward => [x < 6; 2],
            // The number 7 can only be reached from 5, because 6 is terminal.
            Direction::Backward => [x >= 1 && x != 7, x >= 2],
        });
        Masks::dense(direction, 2, legal.collect(), false).unwrap()
    }
    fn describe(&self, _: Direction, _: &Positions, _: usize, slot: u32) -> String {
        format!("{} up", slot + 1)
    }
}

impl EnumerableEnv for Ladder {
    type Key = u32;
    fn keys(&self, states: &Positions) -> Vec<u32> {
        states.0.clone()
    }
}

#[test]
fn states_without_a_way_on_keep_their_mass_where_nothing_exits() {
    check_env(&Ladder, Budget::thorough().with_walks(50), &mut Rng::seeded(0)).unwrap();
    check(&Ladder, chain_reward);
    let graph = StateGraph::build(&Ladder, 100).unwrap();
    let ends: Vec<u32> = graph.ends().iter().map(|&state| graph.states().0[state]).collect();
    assert_eq!(ends, [6, 7]);
}

#[test]
fn triangles() {
    check(&Triangles::env(), graph_reward);
}

#[test]
fn coloured_graphs_up_to_isomorphism() {
    for n in [2, 3, 4] {
        check(&ColouredGraphs::env(n), graph_reward);
    }
}

/// A forward policy that is computed from flows with P_B = 1 for every action. Each path to an object then
/// carries the object's whole reward.
struct UnitBackward<'a> {
    graph: &'a StateGraph<Chain>,
    log_rewards: Vec<f64>,
}

impl Policy<Chain> for UnitBackward<'_> {
    fn evaluate(
        &self,
        env: &Chain,
        states: &Positions,
        _: Option<&Tensor>,
        _: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let n = self.graph.len();
        // The position on the chain is the index of the state, so later states are children of earlier
        // ones.
        let mut flow: Vec<f64> = self.log_rewards.iter().map(|r| r.exp()).collect();
        for x in (0..n).rev() {
            flow[x] += flow.get(x + 1).unwrap_or(&0.0) + flow.get(x + 2).unwrap_or(&0.0);
        }
        let masks = env.masks(Direction::Forward, states);
        let mut logits = vec![0.0; masks.legal.len()];
        for (row, &x) in states.0.iter().enumerate() {
            let x = x as usize;
            logits[3 * row] = flow.get(x + 1).map_or(0.0, |f| f.ln());
            logits[3 * row + 1] = flow.get(x + 2).map_or(0.0, |f| f.ln());
            logits[3 * row + 2] = self.log_rewards[x];
        }
        let logits = Tensor::from_slice(&logits).view([-1, 3]);
        Ok(Evaluation { pf: Some(GraphActionCategorical::new(masks, &[logits])?), ..Evaluation::default() })
    }
}

#[test]
fn a_backward_policy_taken_for_one_samples_by_number_of_paths() {
    let env = Chain::new(7);
    let graph = StateGraph::build(&env, 100).unwrap();
    let target = graph.target_distribution(&chain_reward, None).unwrap();
    assert_eq!(graph.states().0, [0, 1, 2, 3, 4, 5, 6]);
    let wrong = UnitBackward { graph: &graph, log_rewards: target.log_rewards.clone() };
    let sampled = graph.terminating_distribution(&env, &wrong, None).unwrap();
    let distances = Distances::between(&sampled.probs, &target.probs).unwrap();
    assert!(distances.l1 > 0.2, "{distances:?}");
    let paths = [1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0];
    let weights: Vec<f64> = paths.iter().zip(&target.probs).map(|(n, p)| n * p).collect();
    let total: f64 = weights.iter().sum();
    for (weight, p) in weights.iter().zip(&sampled.probs) {
        assert!((weight / total - p).abs() < 1e-12);
    }
}

#[test]
fn a_policy_that_looks_at_labels_is_refused_up_to_isomorphism() {
    struct Labels;
    impl Policy<GraphEnv> for Labels {
        fn evaluate(
            &self,
            env: &GraphEnv,
            states: &GraphStates,
            _: Option<&Tensor>,
            _: Quantities,
        ) -> Result<Evaluation<GraphActionCategorical>> {
            let masks = env.masks(Direction::Forward, states);
            // An action type has a row of logits per node or pair of nodes. Each logit is the index of its
            // row within the graph, so that nodes with high labels are preferred. Such a policy depends on
            // node labels.
            let blocks: Vec<Tensor> = masks
                .blocks
                .iter()
                .map(|block| {
                    let of_rows =
                        block.row_ptr.windows(2).flat_map(|ends| (0..ends[1] - ends[0]).map(|k| k as f64));
                    let rows: Vec<f64> = of_rows.collect();
                    Tensor::from_slice(&rows).view([-1, 1]).repeat([1, block.width as i64])
                })
                .collect();
            Ok(Evaluation { pf: Some(GraphActionCategorical::new(masks, &blocks)?), ..Evaluation::default() })
        }
    }
    let env = ColouredGraphs::env(4);
    let graph = StateGraph::build(&env, 100).unwrap();
    let error = graph.terminating_distribution(&env, &Labels, None).unwrap_err();
    assert!(
        matches!(error, gfn::Error::Contract { .. }) && error.to_string().contains("equivariant"),
        "{error}"
    );
    graph.check_equivariance(&env, &UniformPolicy, None, 200, &mut Rng::seeded(0)).unwrap();
}
