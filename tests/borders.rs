//! What a user's policy, objective, reward and source of conditions give is checked where it comes in; what would train nothing, or
//! towards something else than was asked for, is refused with a typed error.

use gfn::dist::GraphActionCategorical;
use gfn::env::{Reward, Rows, VectorStates};
use gfn::metrics::{Distances, StateGraph};
use gfn::nn::{BackwardPolicy, MlpConfig, Parameters};
use gfn::objective::{
    Advantage, Balance, DetailedBalance, LogPartitionVariance, MaximumEntropyBackward, ModifiedDetailedBalance,
    Objective, PolicyGradient, ProximalPolicy, RegressionLoss, RelativeLogPartitionVariance, Residuals,
    SubTrajectoryBalance, TrajectoryBalance, TrajectoryLikelihood, Weighting, WithBackward,
};
use gfn::policy::{Evaluation, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy, Wants};
use gfn::replay::{DataSource, Draw, Eviction, RankBy, ReplayBuffer, ReplayConfig};
use gfn::sampler::Sampler;
use gfn::score::{Needs, Scores, score};
use gfn::testing::Words;
use gfn::train::{AdamConfig, ReplayPath, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

fn words() -> Words {
    Words::new(2, 3)
}

/// log R is the number of first letters.
fn count(states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(states.rows().map(|row| row.iter().filter(|&&x| x == 1).count() as f64).collect())
}

fn policy(config: MlpPolicyConfig) -> MlpPolicy<KHot> {
    tch::set_num_threads(1);
    let config = MlpPolicyConfig { mlp: MlpConfig { hidden: vec![16], ..MlpConfig::default() }, ..config };
    MlpPolicy::new(&words(), KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap()
}

fn with_flow() -> MlpPolicy<KHot> {
    policy(MlpPolicyConfig { flow: true, ..MlpPolicyConfig::default() })
}

fn fresh(batch: usize) -> TrainerConfig {
    TrainerConfig { batch, source: DataSource::default(), ..TrainerConfig::default() }
}

fn trainer<P: Policy<Words>>(
    policy: P,
    objective: Box<dyn Objective>,
    config: TrainerConfig,
) -> Result<Trainer<Words, P>> {
    Trainer::boxed(words(), Box::new(count), policy, objective, config, Rng::seeded(1))
}

fn says(error: &Error, words: &[&str]) {
    let message = error.to_string();
    words.iter().for_each(|word| assert!(message.contains(word), "`{message}` lacks `{word}`"));
}

/// A policy whose estimators come as a linear layer gives them, `[n, 1]`.
struct Column {
    inner: MlpPolicy<KHot>,
    flow: bool,
    log_z: bool,
}

impl Policy<Words> for Column {
    type Dist = GraphActionCategorical;

    fn evaluate(
        &self,
        env: &Words,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Wants,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let mut out = self.inner.evaluate(env, states, conditions, wants)?;
        let column = |tensor: Tensor| if self.flow { tensor.unsqueeze(-1) } else { tensor };
        out.log_flow = out.log_flow.map(column);
        out.log_paths = out.log_paths.map(column);
        Ok(out)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        let log_z = Policy::<Words>::log_z(&self.inner, conditions, n)?;
        Some(if self.log_z { log_z.unsqueeze(-1) } else { log_z })
    }

    fn parameters(&self) -> Option<&Parameters> {
        Policy::<Words>::parameters(&self.inner)
    }
}

#[test]
fn columns_of_a_policy_are_refused() {
    let step = |flow, log_z, objective: Box<dyn Objective>| {
        let config = MlpPolicyConfig {
            flow: true,
            paths: true,
            backward: BackwardPolicy::SharedTorso,
            ..MlpPolicyConfig::default()
        };
        trainer(Column { inner: policy(config), flow, log_z }, objective, fresh(8)).unwrap().step()
    };
    assert!(step(false, false, Box::new(TrajectoryBalance)).is_ok());
    assert!(step(true, true, Box::new(LogPartitionVariance)).is_ok(), "what isn't asked for isn't looked at");
    let error = step(false, true, Box::new(TrajectoryBalance)).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }), "{error:?}");
    says(&error, &["log Z of trajectories", "[8, 1]", "expected [8]", "squeeze_dim"]);
    let subtb = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
    let of_flow: [Box<dyn Objective>; 4] = [
        Box::new(DetailedBalance::default()),
        Box::new(subtb),
        Box::new(PolicyGradient::new(Advantage::Baseline).unwrap()),
        Box::new(ProximalPolicy::default()),
    ];
    for objective in of_flow {
        let error = step(true, false, objective).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{error:?}");
        says(&error, &["log F of states", ", 1]", "squeeze_dim"]);
    }
    let error = step(true, false, Box::new(MaximumEntropyBackward)).unwrap_err();
    says(&error, &["log n of states", ", 1]"]);
}

/// Trajectory balance, misshapen.
#[derive(Debug)]
enum Misshapen {
    Values,
    Weights,
}

impl Balance for Misshapen {
    fn name(&self) -> &'static str {
        "misshapen balance"
    }
    fn needs(&self) -> Needs {
        Balance::needs(&TrajectoryBalance)
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let Residuals { values, weights } = TrajectoryBalance.residuals(scores)?;
        Ok(match self {
            Self::Values => Residuals { values: values.unsqueeze(-1), weights },
            Self::Weights => Residuals { values, weights: weights.unsqueeze(-1) },
        })
    }
}

/// A loss for each trajectory.
#[derive(Debug)]
struct Each;

impl Objective for Each {
    fn name(&self) -> &'static str {
        "a loss for each"
    }
    fn needs(&self) -> Needs {
        Balance::needs(&TrajectoryBalance)
    }
    fn loss(&self, scores: &Scores, _: RegressionLoss) -> Result<Tensor> {
        Ok(TrajectoryBalance.residuals(scores)?.values.square())
    }
}

#[test]
fn columns_of_an_objective_are_refused() {
    let step = |objective: Box<dyn Objective>| {
        trainer(policy(MlpPolicyConfig::default()), objective, fresh(8)).unwrap().step().unwrap_err()
    };
    let error = step(Box::new(Misshapen::Values));
    assert!(matches!(error, Error::Shape { .. }), "{error:?}");
    says(&error, &["residuals of misshapen balance", "[8, 1]", "expected [8]", "squeeze_dim"]);
    let error = step(Box::new(Misshapen::Weights));
    assert!(matches!(error, Error::Shape { .. }), "{error:?}");
    says(&error, &["weights of misshapen balance", "[8, 1]", "expected [8]", "squeeze_dim"]);
    let error = step(Box::new(Each));
    assert!(matches!(error, Error::Shape { .. }), "{error:?}");
    says(&error, &["the loss of a loss for each", "[8]", "expected []", "one number"]);
}

#[test]
fn conditions_have_a_row_for_each_trajectory() {
    let run = |shape: fn(i64) -> Vec<i64>| {
        let config = MlpPolicyConfig { n_conditions: 1, ..MlpPolicyConfig::default() };
        let mut trainer = trainer(policy(config), Box::new(TrajectoryBalance), fresh(8)).unwrap().with_conditions(
            move |n: usize, _: &mut Rng| Ok(Tensor::zeros(shape(n as i64), (Kind::Float, Device::Cpu))),
        );
        trainer.step().map(|_| trainer.latest().unwrap().len())
    };
    assert_eq!(run(|n| vec![n, 1]).unwrap(), 8);
    let others: [fn(i64) -> Vec<i64>; 6] =
        [|n| vec![n / 2, 1], |n| vec![2 * n, 1], |_| vec![1, 1], |n| vec![n], |_| vec![], |_| vec![0, 1]];
    for shape in others {
        let error = run(shape).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{error:?}");
        says(&error, &["conditions", "one condition vector"]);
    }
    let (env, policy) = (words(), policy(MlpPolicyConfig { n_conditions: 1, ..MlpPolicyConfig::default() }));
    let sampler = Sampler::new(&env, &policy);
    let rng = &mut Rng::seeded(0);
    let scalar = Tensor::from(1f32);
    assert!(matches!(sampler.forward_conditional(&scalar, rng), Err(Error::Shape { .. })));
    let objects = VectorStates::from_rows([[1u16, 2, 0], [2, 0, 0]]);
    let one = Tensor::zeros([1, 1], (Kind::Float, Device::Cpu));
    assert!(matches!(sampler.backward_conditional(&objects, &one, rng), Err(Error::Shape { .. })));
}

/// Partial rewards that aren't the reward, which [`Reward::partial_log_reward`] permits.
struct Split {
    share: f64,
    shift: f64,
}

impl Reward<VectorStates> for Split {
    fn log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        count(states, conditions)
    }
    fn partial_log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        Ok(Some(count(states, conditions)?.into_iter().map(|log_r| self.share * log_r + self.shift).collect()))
    }
}

#[test]
fn modified_detailed_balance_wants_partial_rewards_to_be_the_reward() {
    let step = |reward: Split, conditions: bool| {
        let n_conditions = i64::from(conditions);
        let policy = policy(MlpPolicyConfig { n_conditions, ..MlpPolicyConfig::default() });
        let objective = ModifiedDetailedBalance::default();
        let mut trainer = Trainer::new(words(), reward, policy, objective, fresh(32), Rng::seeded(1)).unwrap();
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
    // A constant factor of R cancels in its changes.
    assert!(step(Split { share: 1.0, shift: 5.0 }, false).is_ok());
    // Forward-looking objectives learn what is left.
    let looking = DetailedBalance { flow: gfn::objective::StateFlow::ForwardLooking };
    let reward = Split { share: 0.0, shift: 0.0 };
    let config = TrainerConfig { adam: AdamConfig { lr: 1e-2, ..AdamConfig::default() }, ..fresh(64) };
    let mut trainer = Trainer::new(words(), reward, with_flow(), looking, config, Rng::seeded(1)).unwrap();
    (0..400).for_each(|_| {
        trainer.step().unwrap();
    });
    let graph = StateGraph::build(&words(), 100).unwrap();
    let learned = graph.terminating_distribution(&words(), trainer.policy(), None).unwrap();
    let target = graph.target_distribution(&count, None).unwrap();
    assert!(Distances::between(&learned.probs, &target.probs).unwrap().tv < 0.05);
}

/// A reward that says how many states it was asked about.
struct Counted<'a>(&'a std::sync::atomic::AtomicUsize);

impl Reward<VectorStates> for Counted<'_> {
    fn log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        count(states, conditions)
    }
    fn partial_log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.0.fetch_add(states.len(), std::sync::atomic::Ordering::Relaxed);
        count(states, conditions).map(Some)
    }
}

#[test]
fn steps_between_equal_states_are_asked_about_once() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let trajectories = Sampler::new(&words(), &UniformPolicy).forward(500, &mut Rng::seeded(0)).unwrap();
    let needs = Balance::needs(&ModifiedDetailedBalance::default());
    let scores = score(&words(), &Counted(&asked), &UniformPolicy, &trajectories, needs).unwrap();
    // 14 words have a word before them.
    assert_eq!(asked.into_inner(), 2 * 14);
    let change = scores.log_reward_change.unwrap();
    let mut row = 0;
    for states in trajectories.states().rows().zip(trajectories.states().rows().skip(1)) {
        if !trajectories.is_exit()[row] {
            let ones = |word: &[u16]| word.iter().filter(|&&x| x == 1).count() as f64;
            assert_eq!(change.double_value(&[row as i64]), ones(states.1) - ones(states.0));
        }
        row += 1;
    }
}

#[test]
fn a_missing_flow_names_the_objective_and_the_setting() {
    let error = trainer(policy(MlpPolicyConfig::default()), Box::new(DetailedBalance::default()), fresh(8))
        .unwrap()
        .step()
        .unwrap_err();
    assert!(matches!(error, Error::Missing { .. }));
    says(&error, &["detailed balance needs a state-flow estimator", "`flow: true`"]);
    let config = TrainerConfig { chunk: Some(5), ..fresh(8) };
    let error = trainer(policy(MlpPolicyConfig::default()), Box::new(DetailedBalance::default()), config)
        .unwrap()
        .step()
        .unwrap_err();
    says(&error, &["detailed balance needs", "`flow: true`"]);
    // What is missing isn't always the policy's to give.
    let mut trainer = trainer(policy(MlpPolicyConfig::default()), Box::new(TrajectoryBalance), fresh(8)).unwrap();
    assert_eq!(
        trainer.prefill(1).unwrap_err().to_string(),
        "prefilling needs a replay buffer: give the trainer one (`with_replay`)"
    );
}

#[test]
fn training_without_gradients_is_refused() {
    for chunk in [None, Some(5)] {
        let config = TrainerConfig { chunk, ..fresh(8) };
        let mut trainer = trainer(policy(MlpPolicyConfig::default()), Box::new(TrajectoryBalance), config).unwrap();
        let error = tch::no_grad(|| trainer.step()).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{error:?}");
        says(&error, &["trajectory balance needs a loss with a gradient", "no_grad"]);
        assert_eq!(trainer.steps_done(), 0);
        assert!(trainer.step().is_ok());
    }
    // Nothing is to be trained.
    let mut fixed = trainer(UniformPolicy, Box::new(LogPartitionVariance), fresh(8)).unwrap();
    assert!(fixed.step().is_ok());
}

/// A policy that hands out copies without a gradient.
struct Cut(MlpPolicy<KHot>);

impl Policy<Words> for Cut {
    type Dist = GraphActionCategorical;

    fn evaluate(
        &self,
        env: &Words,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Wants,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        tch::no_grad(|| self.0.evaluate(env, states, conditions, wants))
    }

    fn parameters(&self) -> Option<&Parameters> {
        Policy::<Words>::parameters(&self.0)
    }
}

#[test]
fn policies_that_lose_their_gradient_are_refused() {
    for chunk in [None, Some(5)] {
        let config = TrainerConfig { chunk, ..fresh(8) };
        let cut = Cut(policy(MlpPolicyConfig::default()));
        let error = trainer(cut, Box::new(LogPartitionVariance), config).unwrap().step().unwrap_err();
        says(&error, &["log-partition variance needs a loss with a gradient", "neither detach nor copy"]);
    }
}

#[test]
fn a_batch_of_one_has_no_mean_to_compare_with() {
    let make = |objective: Box<dyn Objective>, batch| {
        trainer(policy(MlpPolicyConfig::default()), objective, fresh(batch)).map(|_| ())
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
        assert!(make(objective(), 2).is_ok());
    }
    assert!(make(Box::new(TrajectoryBalance), 1).is_ok());
    assert!(make(Box::new(PolicyGradient::new(Advantage::RewardToGo).unwrap()), 1).is_ok());
}

fn buffer(draw: Draw) -> ReplayBuffer<Words> {
    let mut buffer = ReplayBuffer::new(ReplayConfig { capacity: 100, eviction: Eviction::Fifo, draw }).unwrap();
    let walks = Sampler::new(&words(), &UniformPolicy).walks(50, &mut Rng::seeded(3)).unwrap();
    let log_rewards = count(&walks.terminal, None).unwrap();
    buffer.add(&words(), &walks, &log_rewards).unwrap();
    buffer
}

#[test]
fn given_data_are_not_drawn_by_losses_that_nobody_tells() {
    let step = |draw| {
        let config = TrainerConfig { source: DataSource::new(0.5, 0.0, 0.5).unwrap(), ..fresh(8) };
        let trainer = trainer(policy(MlpPolicyConfig::default()), Box::new(TrajectoryBalance), config).unwrap();
        trainer.with_data(buffer(draw)).step()
    };
    for draw in [Draw::Uniform, Draw::RewardPrioritised { exponent: 1.0 }] {
        assert!(step(draw).is_ok());
    }
    for draw in [Draw::LossPrioritised { exponent: 1.0 }, Draw::RankPrioritised { by: RankBy::Loss, exponent: 1.0 }] {
        let error = step(draw).unwrap_err();
        assert!(matches!(error, Error::Config { .. }), "{error:?}");
        says(&error, &["the draw of given trajectories", "never told", "by reward"]);
    }
}

/// What trajectory likelihood makes of ways drawn by uniform steps back: a uniform P_B, whatever P_F does.
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
    let likelihood = || -> Box<dyn Objective> { Box::new(WithBackward::new(TrajectoryBalance, TrajectoryLikelihood)) };
    for replayed in [true, false] {
        let error = step(likelihood(), ReplayPath::UniformBackward, replayed).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{error:?}");
        says(&error, &["an objective of P_B needs paths that a policy took", "uniform", "ReplayPath::Stored"]);
        assert!(step(likelihood(), ReplayPath::Stored, replayed).is_ok());
        assert!(step(likelihood(), ReplayPath::PolicyBackward, replayed).is_ok());
        // Its residuals vanish on any path.
        let entropy = WithBackward::new(TrajectoryBalance, MaximumEntropyBackward);
        assert!(step(Box::new(entropy), ReplayPath::UniformBackward, replayed).is_ok());
    }
}

/// Log-rewards far from 0 have no fewer digits behind the point than others.
#[test]
fn large_log_rewards_are_not_rounded() {
    let policy = policy(MlpPolicyConfig::default());
    let trajectories = Sampler::new(&words(), &policy).forward(32, &mut Rng::seeded(0)).unwrap();
    let gradient = |shift: f64| {
        let reward = move |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
            Ok(count(states, None)?.into_iter().map(|log_r| shift + 0.1 * log_r).collect())
        };
        let scores = score(&words(), &reward, &policy, &trajectories, Needs::default()).unwrap();
        let loss = LogPartitionVariance.loss(&scores, RegressionLoss::Squared).unwrap();
        loss.backward();
        let parameters = Policy::<Words>::parameters(&policy).unwrap();
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
    // The spacing of single precision is 0.25 there.
    let (far, kind) = gradient(3e6);
    assert_eq!(kind, Kind::Double);
    for (near, far) in near.iter().zip(&far) {
        assert!((near - far).abs() < 1e-5 * near.abs().max(1.0), "{near} {far}");
    }
}
