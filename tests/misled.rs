//! Tests that settings that would train nothing, or train towards another target, are refused with a typed
//! error.

use crate::words::{count, fresh, policy, says, trainer, with_flow, words};
use gfn::distribution::GraphActionCategorical;
use gfn::env::StateGraph;
use gfn::env::{Reward, Rows, VectorEnv, VectorStates};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EstimatorsConfig, Parameters};
use gfn::objective::score;
use gfn::objective::{
    Advantage, DetailedBalance, LogPartitionVariance, MaximumEntropyBackward, ModifiedDetailedBalance,
    Objective, PolicyGradient, ProximalPolicy, Regression, RelativeLogPartitionVariance, StateFlow,
    TrajectoryBalance, TrajectoryLikelihood, WithBackward,
};
use gfn::objective::{Quantities, Quantity};
use gfn::optim::AdamConfig;
use gfn::policy::{Evaluation, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy, WithPrior};
use gfn::replay::{DataSource, Draw, Eviction, RankBy, ReplayBuffer, ReplayConfig};
use gfn::rollout::Sampler;
use gfn::train::{ReplayPath, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Kind, Tensor};

/// A reward whose partial log-reward is `share` times the log-reward plus `shift`. For finished objects the
/// partial log-reward differs from the log-reward, which [`Reward::partial_log_reward`] permits.
struct Split {
    share: f64,
    shift: f64,
}

impl Reward<VectorStates> for Split {
    fn log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        count(states, conditions)
    }
    fn partial_log_reward(
        &self,
        states: &VectorStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        Ok(Some(
            count(states, conditions)?.into_iter().map(|log_r| self.share * log_r + self.shift).collect(),
        ))
    }
}

#[test]
fn modified_detailed_balance_wants_partial_rewards_to_be_the_reward() {
    let step = |reward: Split, conditions: bool| {
        let n_conditions = i64::from(conditions);
        let policy = policy(MlpPolicyConfig {
            estimators: EstimatorsConfig::conditional(n_conditions),
            ..MlpPolicyConfig::default()
        });
        let objective = ModifiedDetailedBalance::default();
        let mut trainer =
            Trainer::new(words(), reward, policy, objective, fresh(32), Rng::seeded(1)).unwrap();
        if conditions {
            trainer = trainer.with_conditions(|n: usize, rng: &mut Rng| {
                let drawn: Vec<f32> = (0..n).map(|_| rng.uniform() as f32).collect();
                Ok(Tensor::from_slice(&drawn).view([-1, 1]))
            });
        }
        trainer.step()
    };
    for conditions in [false, true] {
        assert!(step(Split { share: 1.0, shift: 0.0 }, conditions).is_ok());
        assert!(step(Split { share: 1.0 + 1e-6, shift: 0.0 }, conditions).is_ok(), "rounding");
        for share in [0.0, 0.5] {
            let error = step(Split { share, shift: 0.0 }, conditions).unwrap_err();
            assert!(matches!(error, Error::Contract { .. }), "{error:?}");
            says(&error, &["partial_log_reward", "trajectory", "log R", "choose an objective"]);
        }
    }
    // The objective uses only changes of log R, in which a constant factor of R cancels.
    assert!(step(Split { share: 1.0, shift: 5.0 }, false).is_ok());
    // Forward-looking objectives accept any partial reward, because they learn its difference from the
    // reward.
    let looking = DetailedBalance { flow: StateFlow::ForwardLooking };
    let reward = Split { share: 0.0, shift: 0.0 };
    let config = TrainerConfig { adam: AdamConfig { lr: 1e-2, ..AdamConfig::default() }, ..fresh(64) };
    let mut trainer = Trainer::new(words(), reward, with_flow(), looking, config, Rng::seeded(1)).unwrap();
    for _ in 0..400 {
        trainer.step().unwrap();
    }
    let graph = StateGraph::build(&words(), 100).unwrap();
    let learned = graph.terminating_distribution(&words(), trainer.policy(), None).unwrap();
    let target = graph.target_distribution(&count, None).unwrap();
    assert!(Distances::between(&learned.probs, &target.probs).unwrap().tv < 0.05);
}

/// A reward that counts the states for which it is computed.
struct CountingReward<'a>(&'a std::sync::atomic::AtomicUsize);

impl Reward<VectorStates> for CountingReward<'_> {
    fn log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        count(states, conditions)
    }
    fn partial_log_reward(
        &self,
        states: &VectorStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.0.fetch_add(states.len(), std::sync::atomic::Ordering::Relaxed);
        count(states, conditions).map(Some)
    }
}

#[test]
fn equal_states_of_steps_are_rewarded_once() {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let trajectories = Sampler::new(&words(), &UniformPolicy).forward(500, &mut Rng::seeded(0)).unwrap();
    let needs = ModifiedDetailedBalance::default().needs();
    let scores = score(&words(), &CountingReward(&calls), &UniformPolicy, &trajectories, needs).unwrap();
    // There are 14 different steps that add a letter. Each needs the reward of the states before and after
    // it.
    assert_eq!(calls.into_inner(), 2 * 14);
    let change = scores.get(Quantity::LogRewardChange).unwrap();
    let steps = trajectories.states().rows().zip(trajectories.states().rows().skip(1));
    for (row, states) in steps.enumerate() {
        if !trajectories.is_exit()[row] {
            let ones = |word: &[u16]| word.iter().filter(|&&x| x == 1).count() as f64;
            assert_eq!(change.double_value(&[row as i64]), ones(states.1) - ones(states.0));
        }
    }
}

#[test]
fn a_missing_flow_names_the_objective_and_the_setting() {
    let error = trainer(policy(MlpPolicyConfig::default()), Box::new(DetailedBalance::default()), fresh(8))
        .unwrap_err();
    assert!(matches!(error, Error::Missing { .. }));
    says(&error, &["detailed balance needs a state-flow estimator", "`flow: true`"]);
    let config = TrainerConfig { chunk: Some(5), ..fresh(8) };
    let error = trainer(policy(MlpPolicyConfig::default()), Box::new(DetailedBalance::default()), config)
        .unwrap_err();
    says(&error, &["detailed balance needs", "`flow: true`"]);
    // Prefilling needs a replay buffer, which this trainer doesn't have. The error must say so.
    let mut trainer =
        trainer(policy(MlpPolicyConfig::default()), Box::new(TrajectoryBalance), fresh(8)).unwrap();
    assert_eq!(
        trainer.prefill(1).unwrap_err().to_string(),
        "prefilling needs a replay buffer: give the trainer one (`with_replay`)"
    );
}

#[test]
fn training_without_gradients_is_refused() {
    for chunk in [None, Some(5)] {
        let config = TrainerConfig { chunk, ..fresh(8) };
        let mut trainer =
            trainer(policy(MlpPolicyConfig::default()), Box::new(TrajectoryBalance), config).unwrap();
        let error = tch::no_grad(|| trainer.step()).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{error:?}");
        says(&error, &["trajectory balance needs a loss with a gradient", "no_grad"]);
        assert_eq!(trainer.steps_done(), 0);
        assert!(trainer.step().is_ok());
    }
    // A policy without parameters has no gradient, but needs no training and is accepted.
    let mut fixed = trainer(UniformPolicy, Box::new(LogPartitionVariance), fresh(8)).unwrap();
    assert!(fixed.step().is_ok());
}

/// A policy whose outputs are detached from autograd.
struct DetachedPolicy(MlpPolicy<KHot>);

impl Policy<VectorEnv> for DetachedPolicy {
    fn evaluate(
        &self,
        env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        tch::no_grad(|| self.0.evaluate(env, states, conditions, wants))
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.0.parameters())
    }
}

#[test]
fn policies_that_lose_their_gradient_are_refused() {
    for chunk in [None, Some(5)] {
        let config = TrainerConfig { chunk, ..fresh(8) };
        let cut = DetachedPolicy(policy(MlpPolicyConfig::default()));
        let error = trainer(cut, Box::new(LogPartitionVariance), config).unwrap().step().unwrap_err();
        says(
            &error,
            &[
                "log-partition variance needs a loss with a gradient",
                "neither the policy nor the objective detach",
            ],
        );
    }
}

#[test]
fn a_batch_of_one_has_no_mean_to_compare_with() {
    // Some of these objectives need log F, and others need a prior.
    let make = |objective: Box<dyn Objective>, batch| {
        let policy = WithPrior { policy: with_flow(), prior: UniformPolicy };
        trainer(policy, objective, fresh(batch)).map(|_| ())
    };
    let objectives: [fn() -> Box<dyn Objective>; 4] = [
        || Box::new(PolicyGradient::new(Advantage::Total).unwrap()),
        || Box::new(ProximalPolicy { advantage: Advantage::Total, ..ProximalPolicy::default() }),
        || Box::new(LogPartitionVariance),
        || Box::new(RelativeLogPartitionVariance::new(1.0).unwrap()),
    ];
    for objective in objectives {
        let error = make(objective(), 1).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{error:?}");
        says(&error, &[objective().name(), "at least two trajectories", "TrainerConfig::batch"]);
        make(objective(), 2).unwrap();
    }
    assert!(make(Box::new(TrajectoryBalance), 1).is_ok());
    assert!(make(Box::new(PolicyGradient::new(Advantage::RewardToGo).unwrap()), 1).is_ok());
}

fn buffer(draw: Draw) -> ReplayBuffer<VectorEnv> {
    let mut buffer =
        ReplayBuffer::new(ReplayConfig { capacity: 100, eviction: Eviction::Fifo, draw }).unwrap();
    let walks = Sampler::new(&words(), &UniformPolicy).walks(50, &mut Rng::seeded(3)).unwrap();
    let log_rewards = count(&walks.terminal, None).unwrap();
    buffer.add(&words(), &walks, &log_rewards).unwrap();
    buffer
}

/// Checks that user-supplied trajectories can be drawn by their losses, like replayed trajectories, and that
/// the losses survive a checkpoint.
#[test]
fn given_data_can_be_drawn_by_loss() {
    let folder = std::env::temp_dir().join(format!("gfn-data-by-loss-{}", std::process::id()));
    let make = |draw| {
        let config = TrainerConfig { source: DataSource::new(0.5, 0.0, 0.5).unwrap(), ..fresh(8) };
        let trainer =
            trainer(policy(MlpPolicyConfig::default()), Box::new(TrajectoryBalance), config).unwrap();
        trainer.with_data(buffer(draw))
    };
    let by_rank = Draw::RankPrioritised { by: RankBy::Loss, exponent: 1.0 };
    let by_loss = Draw::LossPrioritised { exponent: 1.0 };
    for draw in [Draw::Uniform, Draw::RewardPrioritised { exponent: 1.0 }, by_loss, by_rank] {
        let mut whole = make(draw);
        (0..4).try_for_each(|_| whole.step().map(drop)).unwrap();
        whole.save(&folder).unwrap();
        let mut resumed = make(draw);
        resumed.resume(&folder).unwrap();
        for _ in 0..4 {
            let losses = [&mut whole, &mut resumed].map(|trainer| trainer.step().unwrap().loss);
            assert!(losses[0] == losses[1], "{draw:?}: {losses:?}");
        }
    }
    let run = |draw| {
        let mut trainer = make(draw);
        (0..20).map(|_| trainer.step().unwrap().loss.to_bits()).collect::<Vec<_>>()
    };
    assert!(run(by_loss) != run(Draw::Uniform), "losses have a say");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Checks that the objective `TrajectoryLikelihood` is refused on trajectories of uniform backward steps,
/// because it would only train P_B to be uniform.
#[test]
fn backward_policies_do_not_learn_from_uniform_ways() {
    let step = |objective: Box<dyn Objective>, replay_path, replayed: bool| {
        let backward = BackwardPolicy::SharedTorso;
        let policy = policy(MlpPolicyConfig { backward, paths: true, ..MlpPolicyConfig::default() });
        let half = DataSource::new(0.5, 0.5, 0.0).unwrap();
        let given = DataSource::new(0.5, 0.0, 0.5).unwrap();
        let source = if replayed { half } else { given };
        let config = TrainerConfig { replay_path, replay_after: 0, source, ..fresh(8) };
        let trainer = trainer(policy, objective, config).unwrap();
        let data = buffer(Draw::Uniform);
        if replayed { trainer.with_replay(data).step() } else { trainer.with_data(data).step() }
    };
    let likelihood =
        || -> Box<dyn Objective> { Box::new(WithBackward::new(TrajectoryBalance, TrajectoryLikelihood)) };
    for replayed in [true, false] {
        let error = step(likelihood(), ReplayPath::UniformBackward, replayed).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{error:?}");
        says(
            &error,
            &["an objective of P_B needs paths that a policy sampled", "uniform", "ReplayPath::Stored"],
        );
        assert!(step(likelihood(), ReplayPath::Stored, replayed).is_ok());
        assert!(step(likelihood(), ReplayPath::PolicyBackward, replayed).is_ok());
        // At the optimum of `MaximumEntropyBackward` the residuals are zero on any path, so uniform paths are
        // accepted.
        let entropy = WithBackward::new(TrajectoryBalance, MaximumEntropyBackward);
        assert!(step(Box::new(entropy), ReplayPath::UniformBackward, replayed).is_ok());
    }
}

/// Checks that losses and gradients of large log-rewards are as precise as those of small ones.
#[test]
fn large_log_rewards_are_not_rounded() {
    let policy = policy(MlpPolicyConfig::default());
    let trajectories = Sampler::new(&words(), &policy).forward(32, &mut Rng::seeded(0)).unwrap();
    let gradient = |shift: f64| {
        let reward = move |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
            Ok(count(states, None)?.into_iter().map(|log_r| shift + 0.1 * log_r).collect())
        };
        let scores = score(&words(), &reward, &policy, &trajectories, Quantities::NONE).unwrap();
        let loss = LogPartitionVariance.loss(&scores, &Regression::Squared).unwrap();
        loss.backward();
        let parameters = policy.parameters();
        let mut gradients = vec![loss.double_value(&[])];
        for parameter in parameters {
            let mut tensor = parameter.tensor.shallow_clone();
            if tensor.grad().defined() {
                gradients.push(tensor.grad().norm().double_value(&[]));
                tensor.zero_grad();
            }
        }
        (gradients, scores.log_pf.kind())
    };
    let (near, kind) = gradient(0.0);
    assert_eq!(kind, Kind::Float);
    // At 3e6 neighbouring numbers in single precision differ by 0.25, so scores must be computed in double
    // precision.
    let (far, kind) = gradient(3e6);
    assert_eq!(kind, Kind::Double);
    for (near, far) in near.iter().zip(&far) {
        assert!((near - far).abs() < 1e-5 * near.abs().max(1.0), "{near} {far}");
    }
}
