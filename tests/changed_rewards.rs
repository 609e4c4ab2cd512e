//! Tests of a reward whose values for replayed objects change during training. The change must be detected.
//! Noisy rewards must not be reported as changed. Neither must rewards that differ because the trainer
//! changes their exponent or their condition.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::watched::WarningRecorder;
use crate::words::{count, fresh, policy, says, with_flow, words};
use gfn::env::{Rows, VectorEnv, VectorStates};
use gfn::error::Warning;
use gfn::nn::EstimatorsConfig;
use gfn::objective::TrajectoryBalance;
use gfn::optim::Schedule;
use gfn::policy::{MlpPolicyConfig, UniformPolicy};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Sampler, Trajectories};
use gfn::run::OnWarning;
use gfn::train::{BatchRequest, Context, Persist, Source, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::Tensor;

type Learner = WarningRecorder<VectorEnv>;

/// Returns a configuration in which half of each batch of 32 trajectories is replayed.
fn config() -> TrainerConfig {
    let source = DataSource::new(0.5, 0.5, 0.0).unwrap();
    TrainerConfig { source, replay_after: 2, ..fresh(32) }
}

fn buffer() -> ReplayBuffer<VectorEnv> {
    ReplayBuffer::new(ReplayConfig { capacity: 2_000, eviction: Eviction::Fifo, draw: Draw::Uniform })
        .unwrap()
}

/// Counters of a reward's calls, and of the objects that were passed to these calls.
#[derive(Clone, Default)]
struct Counter {
    calls: Arc<AtomicUsize>,
    objects: Arc<AtomicUsize>,
}

/// Builds a trainer whose log-reward is the number of occurrences of the first letter in a word, plus
/// `change(call, row)`. `call` is the number of earlier calls of the reward, and `row` is the index of the
/// word in this call.
fn trainer(
    change: impl Fn(usize, usize) -> f64 + Send + Sync + 'static,
    config: TrainerConfig,
) -> (Learner, Counter) {
    let counter = Counter::default();
    let Counter { calls, objects } = counter.clone();
    let reward = move |states: &VectorStates, conditions: Option<&Tensor>| -> Result<Vec<f64>> {
        let call = calls.fetch_add(1, Relaxed);
        objects.fetch_add(states.len(), Relaxed);
        Ok(count(states, conditions)?.into_iter().enumerate().map(|(row, r)| r + change(call, row)).collect())
    };
    let made = Trainer::new(words(), reward, with_flow(), TrajectoryBalance, config, Rng::seeded(1));
    (WarningRecorder::new(made.unwrap().with_replay(buffer())), counter)
}

fn steps(trainer: &mut Learner, n: usize) {
    trainer.steps(n).unwrap();
}

fn changes(trainer: &Learner) -> Vec<&Warning> {
    trainer.warnings().iter().filter(|warning| matches!(warning, Warning::RewardChanged { .. })).collect()
}

#[test]
fn a_reward_that_changes_is_noticed_once() {
    for (last_step_before, noticed_at) in [(5, 10), (50, 100), (150, 200)] {
        let shift = Arc::new(AtomicUsize::new(0));
        let by = shift.clone();
        let (mut trainer, _) = trainer(move |_, _| by.load(Relaxed) as f64, config());
        steps(&mut trainer, last_step_before);
        shift.store(3, Relaxed);
        steps(&mut trainer, noticed_at - 1 - last_step_before);
        assert!(changes(&trainer).is_empty());
        steps(&mut trainer, 1);
        let [Warning::RewardChanged { step, object, before, now }] = changes(&trainer)[..] else {
            panic!("{last_step_before}: {:?}", trainer.warnings())
        };
        assert_eq!((*step, *now), (noticed_at, before + 3.0));
        assert!(object.contains('['), "the object is described: {object}");
        let text = changes(&trainer)[0].to_string();
        let values = format!("is {now} now, but {before} in the replay buffer");
        for words in [object.as_str(), values.as_str(), "mix two targets", "`reward_exponent`"] {
            assert!(text.contains(words), "`{text}` lacks {words}");
        }
        assert!(!text.contains("  "), "{text}");
        shift.store(9, Relaxed);
        steps(&mut trainer, 200);
        assert_eq!(changes(&trainer).len(), 1, "once");
    }
}

/// Tests a reward that drifts slowly with the number of its calls. Two consecutive calls differ little, but
/// the drift must be detected.
#[test]
fn a_reward_that_drifts_with_its_calls_is_noticed() {
    let (mut trainer, _) = trainer(|call, _| 0.01 * call as f64, config());
    steps(&mut trainer, 100);
    assert_eq!(changes(&trainer).len(), 1);
}

#[test]
fn a_change_is_an_error_where_warnings_are() {
    let shift = Arc::new(AtomicUsize::new(0));
    let by = shift.clone();
    let (made, _) = trainer(move |_, _| by.load(Relaxed) as f64, config());
    let mut trainer = WarningRecorder::with_action(made.trainer, OnWarning::Fail);
    steps(&mut trainer, 50);
    shift.store(3, Relaxed);
    steps(&mut trainer, 49);
    let error = trainer.steps(1).unwrap_err();
    assert!(matches!(error, Error::Warned(Warning::RewardChanged { step: 100, .. })), "{error:?}");
    says(&error, &["the reward has changed"]);
    assert_eq!(trainer.trainer.steps_done(), 100, "the step is made");
    steps(&mut trainer, 1);
}

#[test]
fn noise_is_no_change() {
    for seed in 0..2 {
        let noise = move |call: usize, row: usize| {
            let bits = [seed, call as u64, row as u64]
                .iter()
                .fold(7, |hash, &x| Rng::mix64(hash ^ Rng::mix64(x + 1)));
            Rng::seeded(bits).normal()
        };
        let (mut trainer, _) = trainer(noise, config());
        steps(&mut trainer, 1_000);
        assert!(changes(&trainer).is_empty(), "{:?}", trainer.warnings());
    }
}

#[test]
fn schedules_and_conditions_of_the_trainer_are_no_change() {
    let reward_exponent = Schedule::Linear { from: 0.1, to: 1.0, steps: 100 };
    let (mut annealed, _) = trainer(|_, _| 0.0, TrainerConfig { reward_exponent, ..config() });
    steps(&mut annealed, 200);
    assert!(annealed.warnings().is_empty(), "{:?}", annealed.warnings());

    let reward = |states: &VectorStates, conditions: Option<&Tensor>| -> Result<Vec<f64>> {
        let conditions = Vec::<f64>::try_from(conditions.unwrap().to_kind(tch::Kind::Double).reshape([-1]))?;
        Ok(count(states, None)?.iter().zip(conditions).map(|(count, condition)| count * condition).collect())
    };
    let draw = |n: usize, rng: &mut Rng| {
        let drawn: Vec<f32> = (0..n).map(|_| rng.uniform() as f32).collect();
        Ok(Tensor::from_slice(&drawn).view([-1, 1]))
    };
    let estimators = EstimatorsConfig::conditional(1);
    for share in [0.0, 0.5] {
        let policy = policy(MlpPolicyConfig { estimators: estimators.clone(), ..MlpPolicyConfig::default() });
        let made =
            Trainer::new(words(), reward, policy, TrajectoryBalance, config(), Rng::seeded(1)).unwrap();
        let with_buffer = made.with_conditions(draw).with_replay(buffer());
        let conditional = with_buffer
            .with_hindsight(|_: &VectorStates, conditions: &Tensor, _: &mut Rng| Ok(1.0 - conditions), share);
        let mut conditional = WarningRecorder::new(conditional.unwrap());
        steps(&mut conditional, 200);
        assert!(changes(&conditional).is_empty(), "{:?}", conditional.warnings());
    }
}

/// A source of objects with recorded log-rewards, which differ from those of the trainer's reward.
struct RecordedObjects;

impl Persist<VectorEnv> for RecordedObjects {
    fn name(&self) -> &str {
        "measured"
    }
}

impl Source<VectorEnv> for RecordedObjects {
    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<VectorEnv>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<VectorEnv>>> {
        let drawn = Sampler::new(&context.env, &UniformPolicy).forward(request.max, rng)?;
        let n = drawn.len();
        drawn.with_log_rewards(vec![7.0; n]).map(Some)
    }
}

#[test]
fn log_rewards_from_elsewhere_are_not_compared() {
    let (trainer, counter) = trainer(|_, _| 0.0, config());
    let mut trainer = WarningRecorder::new(trainer.trainer.with_fresh(RecordedObjects).unwrap());
    steps(&mut trainer, 200);
    assert!(changes(&trainer).is_empty());
    assert_eq!(counter.calls.load(Relaxed), 0, "the reward isn't asked at all");
}

#[test]
fn a_custom_loop_notices_it_too() {
    let shift = Arc::new(AtomicUsize::new(0));
    let by = shift.clone();
    let (mut trainer, _) = trainer(move |_, _| by.load(Relaxed) as f64, config());
    let mut own = |trainer: &mut Trainer<VectorEnv>| {
        shift.store(usize::from(trainer.steps_done() >= 5), Relaxed);
        let mut batch = trainer.draw()?;
        let scores = trainer.score(&mut batch)?;
        trainer.loss(&scores)?.backward();
        trainer.advance(batch, &scores)
    };
    trainer.steps_by(10, &mut own).unwrap();
    assert_eq!(changes(&trainer).len(), 1);
    // The trainer doesn't know which trajectories of a user-supplied batch are replayed, so it must not
    // compare their log-rewards with those of earlier steps.
    let (mut trainer, _) = self::trainer(move |_, _| 0.0, config());
    steps(&mut trainer, 9);
    let mut given = |trainer: &mut Trainer<VectorEnv>| {
        let drawn = Sampler::new(&words(), &UniformPolicy).forward(32, &mut Rng::seeded(0))?;
        let mut batch = drawn.with_log_rewards(vec![7.0; 32])?.into();
        let scores = trainer.score(&mut batch)?;
        trainer.advance(batch, &scores)
    };
    trainer.steps_by(1, &mut given).unwrap();
    assert_eq!((trainer.trainer.steps_done(), changes(&trainer).len()), (10, 0));
}

#[test]
fn the_check_costs_less_than_a_percent_of_calls_and_objects() {
    let (mut trainer, counter) = trainer(|_, _| 0.0, config());
    steps(&mut trainer, 1_000);
    // The reward is called once per step. The check makes one more call with 8 objects after step 10 and
    // after every hundredth step.
    assert_eq!(counter.calls.load(Relaxed), 1_000 + 11);
    assert_eq!(counter.objects.load(Relaxed) as u64, trainer.trainer.reward_calls() + 8 * 11);
    assert_eq!(trainer.trainer.reward_calls(), 2 * 32 + 998 * 16, "they aren't counted");
}
