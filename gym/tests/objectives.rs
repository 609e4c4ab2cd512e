//! Tests of every objective on every kind of environment. The residuals must be zero for exact flows. An
//! objective that isn't defined must return a typed error. The order and grouping of trajectories must have
//! no influence.

use gfn::env::StateGraph;
use gfn::env::{EnumerableEnv, Reward, VectorStates};
use gfn::metrics::ExactPolicy;
use gfn::nn::{BackwardPolicy, EstimatorsConfig};
use gfn::objective::{
    Advantage, DetailedBalance, FlowMatching, LogPartitionVariance, ModifiedDetailedBalance, NextExit,
    Objective, PolicyGradient, ProximalPolicy, Regression, RelativeLogPartitionVariance,
    RelativeTrajectoryBalance, StateFlow, SubTrajectoryBalance, TrajectoryBalance, TrajectoryLikelihood,
    TrustPcl, Weighting,
};
use gfn::objective::{Quantities, Quantity};
use gfn::objective::{Scores, score, score_target};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, UniformPolicy, WithPrior};
use gfn::rollout::Sampler;
use gfn::rollout::{Container, Trajectories};
use gfn::{Error, Result, Rng};
use gfn_gym::bit_sequence::{HammingReward, NonAutoregressiveBitSequence};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use gfn_gym::set_addition::{SetAddition, WeightReward};
use gfn_gym::toy_dag::{ToyDag, ToyReward};
use tch::Tensor;

/// The properties of an environment and its reward that some objectives require: a trajectory can end in
/// every state, and unfinished states have partial rewards.
#[derive(Clone, Copy)]
pub(crate) struct DefinedQuantities {
    every_state_terminates: bool,
    partial_rewards: bool,
}

/// Runs a check on four environments.
pub(crate) fn on_every_environment(check: impl Check) {
    let grid = HyperGrid::new(2, 4).unwrap();
    let whole = DefinedQuantities { every_state_terminates: true, partial_rewards: true };
    check.run(&grid.env(), &OriginalReward::standard(&grid).unwrap(), whole);
    let sets = SetAddition::new(5, 3, false).unwrap();
    check.run(&sets.env(), &WeightReward::new(&sets, 0.3, &[0.5, 1.4, 2.0, 0.1, 0.7]).unwrap(), whole);
    let none = DefinedQuantities { every_state_terminates: false, partial_rewards: false };
    check.run(&ToyDag.env(), &ToyReward::default(), none);
    let bits = NonAutoregressiveBitSequence::new(1, 4).unwrap();
    let modes = [vec![true, false, true, true], vec![false; 4]];
    check.run(&bits.env(), &HammingReward::with_temperature(bits.words(), &modes, 0.7).unwrap(), none);
}

pub(crate) trait Check {
    fn run<E, R>(&self, env: &E, reward: &R, defined: DefinedQuantities)
    where
        E: EnumerableEnv<States = VectorStates>,
        R: Reward<VectorStates> + Sync;
}

pub(crate) fn walks<E: EnumerableEnv>(env: &E, n: usize) -> Trajectories<E> {
    Sampler::new(env, &UniformPolicy).forward(n, &mut Rng::seeded(1)).unwrap()
}

/// Scores trajectories of the uniform policy by the policy of the exact flows.
pub(crate) fn exact_scores<E, R>(env: &E, reward: &R, n: usize, needs: impl Into<Quantities>) -> Scores
where
    E: EnumerableEnv<States = VectorStates>,
    R: Reward<VectorStates> + Sync,
{
    let graph = StateGraph::build(env, 1_000).unwrap();
    let exact = ExactPolicy::new(&graph, env, &UniformPolicy, reward).unwrap();
    score(env, reward, &exact, &walks(env, n), needs.into()).unwrap()
}

fn largest(objective: &dyn Objective, scores: &Scores) -> f64 {
    let values = objective.residuals(scores).unwrap().values;
    assert!(values.numel() > 0);
    values.abs().max().double_value(&[])
}

/// A check of objectives that need partial rewards or an exit in every state. If the environment has what an
/// objective needs, the residuals must vanish. Otherwise an error must report what is missing.
struct PartialStates;

impl Check for PartialStates {
    fn run<E, R>(&self, env: &E, reward: &R, defined: DefinedQuantities)
    where
        E: EnumerableEnv<States = VectorStates>,
        R: Reward<VectorStates> + Sync,
    {
        let graph = StateGraph::build(env, 1_000).unwrap();
        let exact = ExactPolicy::new(&graph, env, &UniformPolicy, reward).unwrap();
        let trajectories = walks(env, 64);
        let subtb = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
        let looking: [&dyn Objective; 2] = [
            &DetailedBalance { flow: StateFlow::ForwardLooking },
            &subtb.with_flow(StateFlow::ForwardLooking),
        ];
        for objective in looking {
            let scores = score(env, reward, &exact, &trajectories, objective.needs());
            if !defined.partial_rewards {
                assert!(scores.unwrap_err().to_string().contains("partial states"));
                continue;
            }
            let mut scores = scores.unwrap();
            assert!(largest(objective, &scores) > 0.1, "log F itself isn't what is ahead");
            // The exact flow for a forward-looking objective is log F minus the partial log-reward of the
            // state.
            let ahead =
                scores.get(Quantity::LogFlow).unwrap() - scores.get(Quantity::StateLogReward).unwrap();
            scores.set(Quantity::LogFlow, ahead).unwrap();
            assert!(largest(objective, &scores) < 1e-5);
        }
        let modified = ModifiedDetailedBalance::default();
        let with_target = ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork };
        let target = Quantities::from(Quantity::TargetLogExit);
        let scores = score(env, reward, &exact, &trajectories, modified.needs());
        if defined.every_state_terminates {
            let mut scores = scores.unwrap();
            assert!(largest(&modified, &scores) < 1e-5);
            let message = with_target.residuals(&scores).unwrap_err().to_string();
            assert!(message.contains("target network"), "{message}");
            scores.set_all(score_target(env, &exact, &trajectories, target).unwrap()).unwrap();
            assert!(largest(&with_target, &scores) < 1e-5);
            scores.set_all(score_target(env, &UniformPolicy, &trajectories, target).unwrap()).unwrap();
            assert!(largest(&with_target, &scores) > 0.1, "another policy's exit");
            scores.log_pb = scores.log_pb.zeros_like();
            assert!(largest(&modified, &scores) > 0.1, "a wrong P_B");
        } else {
            let message = scores.unwrap_err().to_string();
            assert!(message.contains("exit") || message.contains("terminating"), "{message}");
        }
    }
}

#[test]
fn objectives_of_partial_states_vanish_or_say_what_is_missing() {
    on_every_environment(PartialStates);
}

/// A check of objectives relative to a prior, whose target is in proportion to prior(x) R(x). The prior
/// samples in proportion to R, and the policy in proportion to R^2. The policy therefore samples the target,
/// so the residuals must vanish.
struct Relative;

impl Check for Relative {
    fn run<E, R>(&self, env: &E, reward: &R, _: DefinedQuantities)
    where
        E: EnumerableEnv<States = VectorStates>,
        R: Reward<VectorStates> + Sync,
    {
        let squared = |states: &VectorStates, conditions: Option<&Tensor>| -> Result<Vec<f64>> {
            Ok(reward.log_reward(states, conditions)?.into_iter().map(|r| 2.0 * r).collect())
        };
        let graph = StateGraph::build(env, 1_000).unwrap();
        let prior = ExactPolicy::new(&graph, env, &UniformPolicy, reward).unwrap();
        let policy = ExactPolicy::new(&graph, env, &UniformPolicy, &squared).unwrap();
        let log_z = policy.flows().log_z - prior.flows().log_z;
        let pair = WithPrior { policy, prior };
        let needs = Quantities::from(Quantity::LogPrior);
        let mut scores = score(env, reward, &pair, &walks(env, 64), needs).unwrap();
        scores.set(Quantity::LogZ, Tensor::full_like(&scores.log_reward, log_z)).unwrap();
        let relative: [&dyn Objective; 3] = [
            &RelativeTrajectoryBalance::new(1.0).unwrap(),
            &RelativeLogPartitionVariance::new(1.0).unwrap(),
            &TrustPcl::new(1.0).unwrap(),
        ];
        for objective in relative {
            assert!(largest(objective, &scores) < 1e-5, "{}", objective.name());
        }
        assert!(largest(&RelativeTrajectoryBalance::new(2.0).unwrap(), &scores) > 0.1);
        let alone = score(env, reward, &pair.policy, &walks(env, 4), needs).unwrap_err();
        assert!(alone.to_string().contains("prior"), "{alone}");
    }
}

#[test]
fn relative_objectives_vanish_at_the_posterior() {
    on_every_environment(Relative);
}

/// A check that every advantage is zero for exact flows on any trajectories, so that the policy gets no
/// gradient.
struct Gradients;

impl Check for Gradients {
    fn run<E, R>(&self, env: &E, reward: &R, _: DefinedQuantities)
    where
        E: EnumerableEnv<States = VectorStates>,
        R: Reward<VectorStates> + Sync,
    {
        let scores = exact_scores(env, reward, 64, Quantity::LogFlow);
        let gae = Advantage::Gae { lambda: 0.7 };
        for advantage in [Advantage::Total, Advantage::Baseline, gae] {
            let proximal = ProximalPolicy { advantage, clip: 0.2, ..ProximalPolicy::default() };
            let objectives: [&dyn Objective; 2] = [&PolicyGradient::new(advantage).unwrap(), &proximal];
            for objective in objectives {
                let slope = |scores: &Scores| {
                    let log_pf = scores.log_pf.detach().set_requires_grad(true);
                    let mut leaf = Scores::new(
                        scores.offsets.clone(),
                        log_pf.shallow_clone(),
                        scores.log_pb.shallow_clone(),
                        scores.log_reward.shallow_clone(),
                    );
                    leaf.set(Quantity::LogFlow, scores.get(Quantity::LogFlow).unwrap().shallow_clone())
                        .unwrap();
                    objective.loss(&leaf, &Regression::HalfSquared).unwrap().backward();
                    log_pf.grad().abs().max().double_value(&[])
                };
                assert!(slope(&scores) < 1e-6, "{advantage:?}");
                let mut other = exact_scores(env, reward, 64, Quantity::LogFlow);
                let noise = Tensor::linspace(
                    -1.0,
                    1.0,
                    other.log_reward.numel() as i64,
                    (tch::Kind::Double, tch::Device::Cpu),
                );
                other.log_reward = &other.log_reward + noise;
                assert!(slope(&other) > 1e-3, "{advantage:?}: a wrong reward");
            }
        }
    }
}

#[test]
fn advantages_vanish_under_exact_flows() {
    on_every_environment(Gradients);
}

/// A check that losses don't depend on the order of trajectories. If a loss is a mean over trajectories, it
/// must not depend on their division into batches either.
struct Batches;

impl Check for Batches {
    fn run<E, R>(&self, env: &E, reward: &R, defined: DefinedQuantities)
    where
        E: EnumerableEnv<States = VectorStates>,
        R: Reward<VectorStates> + Sync,
    {
        // The policy samples in proportion to another reward than `reward`, so that the losses aren't 0.
        let tilted = |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
            Ok(states.rows().map(|row| row.iter().map(|&x| f64::from(x) * 0.3).sum()).collect())
        };
        let graph = StateGraph::build(env, 1_000).unwrap();
        let policy = ExactPolicy::new(&graph, env, &UniformPolicy, &tilted).unwrap();
        let all = walks(env, 24);
        let loss = |trajectories: &Trajectories<E>, objective: &dyn Objective| {
            let scores = score(env, reward, &policy, trajectories, objective.needs()).unwrap();
            objective.loss(&scores, &Regression::Squared).unwrap().double_value(&[])
        };
        let subtb = |weighting| SubTrajectoryBalance::new(weighting).unwrap();
        let mut objectives: Vec<(Box<dyn Objective>, bool)> = vec![
            (Box::new(TrajectoryBalance), true),
            (Box::new(LogPartitionVariance), false),
            (Box::new(DetailedBalance::default()), false),
            (Box::new(subtb(Weighting::EqualWithin)), true),
            (Box::new(subtb(Weighting::GeometricWithin { lambda: 0.9 })), true),
            (Box::new(subtb(Weighting::Geometric { lambda: 0.9 })), false),
            (Box::new(FlowMatching::default()), false),
            (Box::new(PolicyGradient::new(Advantage::Gae { lambda: 0.7 }).unwrap()), false),
        ];
        if defined.every_state_terminates {
            objectives.push((Box::new(ModifiedDetailedBalance::default()), false));
        }
        let order: Vec<usize> = (0..24).map(|i| (i * 7 + 3) % 24).collect();
        for (objective, mean) in &objectives {
            let whole = loss(&all, objective.as_ref());
            let shuffled = loss(&all.select(order.iter().copied()).unwrap(), objective.as_ref());
            assert!(whole > 1e-3 || !objective.name().contains("balance"), "{}: {whole}", objective.name());
            assert!(
                (whole - shuffled).abs() < 1e-6 * whole.abs().max(1.0),
                "{}: {whole} {shuffled}",
                objective.name()
            );
            if *mean {
                let parts = [0..5, 5..24].map(|range| {
                    let share = range.len() as f64 / 24.0;
                    share * loss(&all.select(range).unwrap(), objective.as_ref())
                });
                assert!(
                    (whole - parts.iter().sum::<f64>()).abs() < 1e-6 * whole.abs().max(1.0),
                    "{}",
                    objective.name()
                );
            }
        }
    }
}

#[test]
fn losses_depend_on_neither_order_nor_grouping() {
    on_every_environment(Batches);
}

#[test]
fn an_estimator_that_is_missing_is_named() {
    let grid = HyperGrid::new(2, 3).unwrap();
    let reward = OriginalReward::standard(&grid).unwrap();
    let trajectories = walks(&grid.env(), 4);
    for (needs, name) in [
        (Quantities::from(Quantity::LogFlow), "state-flow"),
        (Quantities::from(Quantity::LogZ), "log Z"),
        (Quantities::from(Quantity::LogPaths), "log n(s)"),
    ] {
        let error = score(&grid.env(), &reward, &UniformPolicy, &trajectories, needs).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }) && error.to_string().contains(name), "{error}");
    }
}

/// Checks that two combinations are refused. The first is an objective that estimates log Z as the mean over
/// a batch, on a batch with several conditions. The second is an objective for P_B without a learned P_B.
#[test]
fn pairs_that_would_teach_something_else_are_refused() {
    let grid = HyperGrid::new(2, 3).unwrap();
    let reward = OriginalReward::standard(&grid).unwrap();
    let network = |backward, n_conditions| {
        let config = MlpPolicyConfig {
            backward,
            estimators: EstimatorsConfig::conditional(n_conditions),
            paths: true,
            ..MlpPolicyConfig::default()
        };
        let rng = &mut Rng::seeded(0);
        MlpPolicy::new(&grid.env(), KHot::new(2, 3), config, tch::Device::Cpu, tch::Kind::Float, rng).unwrap()
    };
    let policy = network(BackwardPolicy::SharedTorso, 1);
    let env = grid.env();
    let sampler = Sampler::new(&env, &policy);
    let loss = |conditions: &[f32]| {
        let conditions = Tensor::from_slice(conditions).view([-1, 1]);
        let trajectories = sampler.forward_conditional(&conditions, &mut Rng::seeded(1)).unwrap();
        let scores = score(&grid.env(), &reward, &policy, &trajectories, Quantities::NONE).unwrap();
        Objective::loss(&LogPartitionVariance, &scores, &Regression::Squared)
    };
    assert!(loss(&[0.5, 0.5, 0.5]).is_ok());
    assert!(loss(&[0.5, 0.4, 0.5]).unwrap_err().to_string().contains("one condition"));

    let needs = TrajectoryLikelihood.needs();
    assert!(
        score(&grid.env(), &reward, &network(BackwardPolicy::Separate, 0), &walks(&grid.env(), 4), needs)
            .is_ok()
    );
    let fixed =
        score(&grid.env(), &reward, &network(BackwardPolicy::Uniform, 0), &walks(&grid.env(), 4), needs);
    assert!(fixed.unwrap_err().to_string().contains("backward policy that is learned"));

    let idle = ProximalPolicy { epochs: 0, ..ProximalPolicy::default() };
    assert!(idle.check().unwrap_err().to_string().contains("epochs"));
    assert!(ProximalPolicy { value_weight: f64::NAN, ..ProximalPolicy::default() }.check().is_err());
}
