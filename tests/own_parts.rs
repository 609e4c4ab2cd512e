//! Tests of user-defined sources of trajectories and of companions: drawing, learning, checkpoints, and
//! distinct names.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use gfn::env::{Env, Rows, Slots, VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::nn::{EstimatorsConfig, MlpConfig};
use gfn::objective::{AugmentedTrajectoryBalance, Objective, PolicyGradient, Scores, TrajectoryBalance};
use gfn::objective::{Quantity, Values};
use gfn::optim::Schedule;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Container, Trajectories};
use gfn::train::{
    AverageFor, BatchRequest, Companion, Context, Persist, Source, StepStats, Trainer, TrainerConfig,
};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Intrinsic, IntrinsicConfig};
use tch::{Device, Kind, Tensor};

type WordTrainer = Trainer<VectorEnv>;

fn trainer(objective: impl Objective + 'static, seed: u64) -> WordTrainer {
    trainer_of(objective, seed, DataSource::default())
}

fn trainer_of(objective: impl Objective + 'static, seed: u64, source: DataSource) -> WordTrainer {
    tch::set_num_threads(1);
    let env = word_env(2, 3);
    let mut rng = Rng::seeded(seed);
    let mlp = MlpConfig { hidden: vec![16], ..MlpConfig::default() };
    let config =
        MlpPolicyConfig { mlp, estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() };
    let policy = MlpPolicy::new(&env, KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let reward = |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| row.iter().filter(|&&x| x == 1).count() as f64).collect())
    };
    let config = TrainerConfig { batch: 12, source, ..TrainerConfig::default() };
    Trainer::new(env, reward, policy, objective, config, rng).unwrap()
}

/// A list with an entry for each batch: the range of the trajectories that came from the source, and the size
/// of the batch.
type SharedRows = Arc<Mutex<Vec<(std::ops::Range<usize>, usize)>>>;

/// A source whose trajectories all end in the word `1 1`. It returns `surplus` more trajectories than
/// requested, with the log-reward `log_reward` if this is set.
struct RepeatedWord {
    log_reward: Option<f64>,
    surplus: usize,
    shown: SharedRows,
}

impl RepeatedWord {
    fn new(log_reward: Option<f64>) -> Self {
        Self { log_reward, surplus: 0, shown: Arc::default() }
    }
}

impl<E: Env> Persist<E> for RepeatedWord {
    fn name(&self) -> &str {
        "same"
    }
}

impl Source<VectorEnv> for RepeatedWord {
    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<VectorEnv>,
        _: &mut Rng,
    ) -> Result<Option<Trajectories<VectorEnv>>> {
        let n = request.max + self.surplus;
        let offsets: Vec<usize> = (0..=n).map(|i| 3 * i).collect();
        let drawn = Trajectories::replay(&context.env, &Slots([0, 0, 2].repeat(n)), &offsets)?;
        self.log_reward
            .map_or(Ok(drawn.clone()), |log_reward| drawn.with_log_rewards(vec![log_reward; n]))
            .map(Some)
    }

    fn learn(
        &mut self,
        batch: &Trajectories<VectorEnv>,
        rows: std::ops::Range<usize>,
        scores: &Scores,
        _: &Context<VectorEnv>,
    ) -> Result<()> {
        assert_eq!(batch.len(), scores.len());
        self.shown.lock().unwrap().push((rows, scores.len()));
        Ok(())
    }
}

/// A companion that counts steps and updates, supplies an intrinsic reward per edge if `edges` is set, and
/// fails at the step `fails_at`.
#[derive(Default)]
struct Counts {
    steps: Arc<Mutex<i64>>,
    updates: i64,
    edges: Option<f64>,
    fails_at: Option<usize>,
}

impl<E: Env> Persist<E> for Counts {
    fn name(&self) -> &str {
        "counts"
    }
    fn state(&self, _: &E) -> Result<Vec<(String, Tensor)>> {
        Ok(vec![("counts".into(), Tensor::from_slice(&[*self.steps.lock().unwrap(), self.updates]))])
    }
    fn load_state(&mut self, _: &E, state: &[(String, Tensor)]) -> Result<()> {
        let [(_, counts)] = state else { return Err(Error::contract("counts are saved", "they aren't")) };
        (*self.steps.lock().unwrap(), self.updates) = (counts.int64_value(&[0]), counts.int64_value(&[1]));
        Ok(())
    }
}

impl<E: Env> Companion<E> for Counts {
    fn supply(&self, batch: &Trajectories<E>, _: &Context<E>, supplied: &mut Values) -> Result<()> {
        if let Some(reward) = self.edges {
            let edges: Vec<f64> =
                batch.is_exit().iter().map(|&exit| if exit { 0.0 } else { reward }).collect();
            let terminal = Tensor::zeros([batch.len() as i64], (Kind::Double, Device::Cpu));
            supplied.insert(Quantity::IntrinsicEdge, Tensor::from_slice(&edges));
            supplied.insert(Quantity::IntrinsicTerminal, terminal);
        }
        Ok(())
    }
    fn before_update(&mut self, context: &Context<E>) -> Result<()> {
        self.updates += 1;
        match self.fails_at == Some(context.step) {
            true => Err(Error::contract("all processes have gradients", "one has none")),
            false => Ok(()),
        }
    }
    fn after_step(&mut self, _: &Trajectories<E>, _: &Context<E>) -> Result<()> {
        *self.steps.lock().unwrap() += 1;
        Ok(())
    }
}

fn losses(trainer: &mut WordTrainer, n: usize) -> Vec<u64> {
    (0..n).map(|_| trainer.step().map(|StepStats { loss, .. }| loss.to_bits()).unwrap()).collect()
}

fn message<T>(result: Result<T>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_source_supplies_its_share_and_learns_from_it() {
    let buffer = ReplayConfig { capacity: 100, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let source = RepeatedWord::new(None);
    let shown = source.shown.clone();
    let mut new = trainer(TrajectoryBalance, 1)
        .with_replay(ReplayBuffer::new(buffer).unwrap())
        .with_source(0.25, source)
        .unwrap();
    losses(&mut new, 2);
    assert_eq!((new.n_fresh(), new.reward_calls(), new.replay().unwrap().len()), (9, 24, 24));
    let latest = new.latest().unwrap();
    assert!(latest.terminal_states().rows().skip(9).all(|row| *row == [1, 1, 0]));
    assert!(
        latest.recorded_log_rewards().unwrap()[9..].iter().all(|&log_reward| log_reward == 2.0),
        "asked for"
    );
    assert_eq!(*shown.lock().unwrap(), [(9..12, 12), (9..12, 12)]);

    let mut known = trainer(TrajectoryBalance, 1).with_source(0.25, RepeatedWord::new(Some(-3.0))).unwrap();
    losses(&mut known, 2);
    assert_eq!(known.reward_calls(), 18);
    assert!(known.latest().unwrap().recorded_log_rewards().unwrap()[9..].iter().all(|&x| x == -3.0), "taken");
}

/// A source that returns a given number of trajectories of the word `1 1` in each step, but at least as many
/// as the request's minimum. The source records all requests.
struct Trickle(usize, Arc<Mutex<Vec<BatchRequest>>>);

impl<E: Env> Persist<E> for Trickle {
    fn name(&self) -> &str {
        "trickle"
    }
}

impl Source<VectorEnv> for Trickle {
    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<VectorEnv>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<VectorEnv>>> {
        self.1.lock().unwrap().push(request);
        match self.0.max(request.min) {
            0 => Ok(None),
            n => RepeatedWord::new(Some(2.0)).draw(BatchRequest::exactly(n), context, rng),
        }
    }
}

/// A `Trickle` source whose trajectories have conditions.
struct UnderConditions(Trickle);

impl<E: Env> Persist<E> for UnderConditions {
    fn name(&self) -> &str {
        "under_conditions"
    }
}

impl Source<VectorEnv> for UnderConditions {
    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<VectorEnv>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<VectorEnv>>> {
        let drawn = self.0.draw(request, context, rng)?;
        let zeros = |n: usize| Tensor::zeros([n as i64, 2], (Kind::Float, Device::Cpu));
        drawn.map(|drawn| drawn.clone().with_conditions(zeros(drawn.len()))).transpose()
    }
}

#[test]
fn external_fresh_trajectories_are_counted_stored_and_supplemented_by_replay() {
    let config = ReplayConfig { capacity: 1_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let request = Arc::default();
    let mut half = trainer_of(TrajectoryBalance, 1, DataSource::HALF_REPLAYED)
        .with_replay(ReplayBuffer::new(config).unwrap())
        .with_fresh(Trickle(2, Arc::clone(&request)))
        .unwrap();
    for step in 0..12 {
        half.step().unwrap();
        let fresh = if step < 10 { 12 } else { 2 };
        assert_eq!((half.n_fresh(), half.latest().map(Trajectories::len)), (fresh, Some(12)), "step {step}");
    }
    let requests: Vec<_> =
        request.lock().unwrap()[9..11].iter().map(|w| (w.min, w.max, w.allow_more)).collect();
    assert_eq!(requests, [(12, 12, true), (0, 6, true)], "the buffer is drawn from after ten steps");
    assert_eq!((half.reward_calls(), half.replay().unwrap().len()), (124, 124));
    assert!(
        half.latest().unwrap().recorded_log_rewards().unwrap().iter().all(|&x| x == 2.0),
        "taken as given"
    );
    let mut none = trainer_of(TrajectoryBalance, 1, DataSource::HALF_REPLAYED)
        .with_replay(ReplayBuffer::new(config).unwrap())
        .with_fresh(Trickle(0, Arc::default()))
        .unwrap();
    losses(&mut none, 12);
    assert_eq!((none.n_fresh(), none.reward_calls()), (0, 120), "a batch of replayed ones alone");
    let mut many = trainer_of(TrajectoryBalance, 1, DataSource::HALF_REPLAYED)
        .with_replay(ReplayBuffer::new(config).unwrap())
        .with_fresh(Trickle(30, Arc::default()))
        .unwrap();
    losses(&mut many, 12);
    assert_eq!((many.n_fresh(), many.latest().map(Trajectories::len)), (6, Some(12)));
    assert_eq!(
        (many.reward_calls(), many.replay().unwrap().len()),
        (360, 360),
        "the rest is kept for replay"
    );
}

/// Checks that a source of fresh trajectories is called in every step, even if none is requested. An external
/// source needs the parameters of every step, and may communicate with the sources of other replicas.
#[test]
fn a_fresh_source_without_a_share_is_called_in_every_step() {
    let config = ReplayConfig { capacity: 1_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let request = Arc::default();
    let source = DataSource::new(0.02, 0.98, 0.0).unwrap();
    assert_eq!(source.counts(12).on_policy, 0);
    let mut trainer = trainer_of(TrajectoryBalance, 1, source)
        .with_replay(ReplayBuffer::new(config).unwrap())
        .with_fresh(Trickle(2, Arc::clone(&request)))
        .unwrap();
    losses(&mut trainer, 15);
    let requests: Vec<_> = request.lock().unwrap().iter().map(|w| (w.min, w.max, w.allow_more)).collect();
    // The trainer draws from the buffer once the buffer has enough objects, which takes ten steps. Afterwards
    // no fresh trajectory is requested.
    assert_eq!(requests, [vec![(12, 12, true); 10], vec![(0, 0, true); 5]].concat());
    assert_eq!((trainer.n_fresh(), trainer.latest().map(Trajectories::len)), (0, Some(12)));
    assert_eq!(
        (trainer.reward_calls(), trainer.replay().unwrap().len()),
        (130, 130),
        "what it gives is kept"
    );
}

#[test]
fn sources_that_need_every_trajectory_are_refused_if_some_are_only_stored() {
    let config = ReplayConfig { capacity: 1_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let replayed = || trainer(TrajectoryBalance, 1).with_replay(ReplayBuffer::new(config).unwrap());
    let fresh = || Trickle(2, Arc::default());
    let refused = replayed().with_fresh(fresh()).unwrap().check_sees_all("this test");
    assert!(matches!(refused, Err(Error::Missing { .. })), "{refused:?}");
    assert!(message(refused).contains("this test needs all fresh trajectories"));
    // `check_sees_all` accepts a trainer without a buffer, and a trainer whose policy samples all fresh
    // trajectories, because every fresh trajectory enters their batches.
    trainer(TrajectoryBalance, 1).with_fresh(fresh()).unwrap().check_sees_all("this test").unwrap();
    replayed().check_sees_all("this test").unwrap();
}

#[test]
fn settings_without_effect_on_external_trajectories_are_refused() {
    let fresh = |n| Trickle(n, Arc::default());
    let says = |mut trainer: WordTrainer, words: &str| {
        let error = trainer.step().unwrap_err();
        assert!(matches!(error, Error::Missing { .. }) && error.to_string().contains(words), "{error}");
    };
    let on_policy = PolicyGradient::new(gfn::objective::Advantage::Total).unwrap();
    says(trainer(on_policy, 1).with_fresh(fresh(0)).unwrap(), "trajectories of the policy itself");
    let average = trainer(TrajectoryBalance, 1).with_average(0.9, AverageFor::Sampling).unwrap();
    says(
        average.with_fresh(fresh(0)).unwrap(),
        "sampling by the average needs a trainer that samples from its policy",
    );
    let zeros = |n: usize, _: &mut Rng| Ok(Tensor::zeros([n as i64, 2], (Kind::Float, Device::Cpu)));
    says(
        trainer(TrajectoryBalance, 1).with_conditions(zeros).with_fresh(fresh(0)).unwrap(),
        "a batch from outside of the trainer needs conditions if the trainer draws conditions",
    );
    says(
        trainer(TrajectoryBalance, 1).with_fresh(UnderConditions(fresh(0))).unwrap(),
        "a batch from outside of the trainer needs conditions if the trainer draws conditions, and no",
    );
    let twice =
        trainer(TrajectoryBalance, 1).with_fresh(fresh(0)).unwrap().with_fresh(UnderConditions(fresh(0)));
    assert!(message(twice).contains("the second source"));
    let surplus = trainer(TrajectoryBalance, 1).with_fresh(fresh(13)).unwrap().step();
    assert!(matches!(surplus, Err(Error::Shape { .. })), "{surplus:?}");
}

#[test]
fn invalid_sources_are_refused() {
    let with = |share| trainer(TrajectoryBalance, 1).with_source(share, RepeatedWord::new(None));
    for share in [0.0, 1.5, f64::NAN] {
        assert!(message(with(share)).contains("the share of a source"));
    }
    assert!(message(with(0.01).unwrap().step()).contains("the shares of sources"), "no trajectory");
    assert!(
        message(with(0.5).unwrap().with_source(0.5, RepeatedWord::new(None))).contains("`same`"),
        "one name twice"
    );
    let mut surplus = trainer(TrajectoryBalance, 1)
        .with_source(0.5, RepeatedWord { surplus: 1, ..RepeatedWord::new(None) })
        .unwrap();
    assert!(matches!(surplus.step(), Err(Error::Shape { .. })));
    let on_policy = PolicyGradient::new(gfn::objective::Advantage::Total).unwrap();
    let mut on_policy = trainer(on_policy, 1).with_source(0.5, RepeatedWord::new(None)).unwrap();
    assert!(matches!(on_policy.step(), Err(Error::Missing { .. })));
}

#[test]
fn a_companion_changes_nothing_and_goes_on_from_a_checkpoint() {
    let folder: PathBuf = std::env::temp_dir().join(format!("gfn-companion-{}", std::process::id()));
    let mut plain = trainer(TrajectoryBalance, 1);
    let expected = losses(&mut plain, 6);
    let mut whole = trainer(TrajectoryBalance, 1).with_companion(Counts::default()).unwrap();
    assert_eq!(losses(&mut whole, 3), expected[..3]);
    whole.save(&folder).unwrap();
    assert!(message(plain.resume(&folder)).contains("one of the two runs has a part named `counts`"));
    let counts = Counts::default();
    let steps = counts.steps.clone();
    let mut resumed = trainer(TrajectoryBalance, 2).with_companion(counts).unwrap();
    resumed.resume(&folder).unwrap();
    assert_eq!(losses(&mut resumed, 3), expected[3..]);
    assert_eq!(*steps.lock().unwrap(), 6);
    plain.save(&folder).unwrap();
    assert!(message(resumed.resume(&folder)).contains("the other has none"));
    assert_eq!((*steps.lock().unwrap(), resumed.steps_done()), (6, 6));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_companion_supplies_what_the_objective_asks_for() {
    let mut own = trainer(AugmentedTrajectoryBalance, 1)
        .with_companion(Counts { edges: Some(0.5), ..Counts::default() })
        .unwrap();
    let novelty = |states: &VectorStates| -> Result<Vec<f64>> { Ok(vec![1.0; states.len()]) };
    let config = IntrinsicConfig::edge_based(Schedule::Constant(0.5));
    let mut built_in = trainer(AugmentedTrajectoryBalance, 1)
        .with_companion(Intrinsic::new(novelty, config).unwrap())
        .unwrap();
    assert_eq!(losses(&mut own, 4), losses(&mut built_in, 4));
    assert!(message(trainer(AugmentedTrajectoryBalance, 1).step()).contains("intrinsic"));
}

#[test]
fn an_update_that_a_companion_stops_leaves_the_parameters_and_no_gradient() {
    let mut trainer = trainer(TrajectoryBalance, 1)
        .with_companion(Counts { fails_at: Some(1), ..Counts::default() })
        .unwrap();
    losses(&mut trainer, 1);
    let values = |trainer: &WordTrainer| -> Vec<Tensor> {
        let parameters = Policy::<VectorEnv>::parameters(trainer.policy()).unwrap();
        parameters.iter().map(|parameter| parameter.tensor.detach().copy()).collect()
    };
    let before = values(&trainer);
    assert!(message(trainer.step()).contains("one has none"));
    assert_eq!(values(&trainer), before);
    let parameters = Policy::<VectorEnv>::parameters(trainer.policy()).unwrap();
    let cleared =
        |gradient: Tensor| !gradient.defined() || gradient.abs().sum(Kind::Float).double_value(&[]) == 0.0;
    assert!(parameters.iter().all(|parameter| cleared(parameter.tensor.grad())));
    assert_eq!(trainer.steps_done(), 1);
}
