//! A second thread that draws the next batch: what it draws by, that it is the same each time, and how its errors reach the trainer.

mod shares;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gfn::collective::replicate;
use gfn::env::{Rows, StateGraph, VectorStates};
use gfn::nn::MlpConfig;
use gfn::objective::{Advantage, Objective, PolicyGradient, TrajectoryBalance};
use gfn::optim::AdamConfig;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Trajectories;
use gfn::testing::Words;
use gfn::train::{AverageFor, BatchSource, Context, Persist, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

type WordTrainer = Trainer<Words, MlpPolicy<KHot>>;

struct How {
    seed: u64,
    lr: f64,
    noise: bool,
}

const PLAIN: How = How { seed: 3, lr: 0.01, noise: false };

fn log_rewards(states: &VectorStates) -> Vec<f64> {
    states.rows().map(|row| row.iter().filter(|&&x| x == 1).count() as f64).collect()
}

fn with_reward(
    how: &How,
    objective: impl Objective + 'static,
    reward: impl Fn(&VectorStates) -> Result<Vec<f64>> + Send + 'static,
) -> WordTrainer {
    tch::set_num_threads(1);
    let (env, mut rng) = (Words::new(2, 3), Rng::seeded(how.seed));
    let noise = how.noise.then_some(0.1);
    let mlp = MlpConfig { hidden: vec![16], noise, ..MlpConfig::default() };
    let config = MlpPolicyConfig { mlp, ..MlpPolicyConfig::default() };
    let policy = MlpPolicy::new(&env, KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let adam = AdamConfig { lr: how.lr, log_z_lr: how.lr * 10.0, ..AdamConfig::default() };
    let config = TrainerConfig { batch: 12, adam, ..TrainerConfig::default() };
    let reward = move |states: &VectorStates, _: Option<&Tensor>| reward(states);
    Trainer::new(env, reward, policy, objective, config, rng).unwrap()
}

fn trainer(how: &How) -> WordTrainer {
    with_reward(how, TrajectoryBalance, |states| Ok(log_rewards(states)))
}

fn ahead(how: &How) -> WordTrainer {
    trainer(how).with_ahead(trainer(how)).unwrap()
}

fn losses(trainer: &mut WordTrainer, steps: usize) -> Vec<f64> {
    (0..steps).map(|_| trainer.step().unwrap().loss).collect()
}

fn weights(trainer: &WordTrainer) -> Vec<Vec<f32>> {
    let parameters = Policy::<Words>::parameters(trainer.policy()).unwrap().iter();
    parameters.map(|one| Vec::try_from(one.tensor.detach().reshape([-1])).unwrap()).collect()
}

/// The actions of the latest batch.
fn drawn(trainer: &WordTrainer) -> Vec<u32> {
    trainer.latest().unwrap().actions().0.clone()
}

#[test]
fn a_run_is_the_same_each_time_and_not_the_one_without() {
    let (mut one, mut other) = (ahead(&PLAIN), ahead(&PLAIN));
    let (a, b) = (losses(&mut one, 20), losses(&mut other, 20));
    assert_eq!(a, b);
    assert_eq!(weights(&one), weights(&other));
    assert_ne!(a, losses(&mut trainer(&PLAIN), 20));
    assert_eq!((one.reward_calls(), one.n_fresh()), (240, 12));
}

#[test]
fn each_batch_is_drawn_by_the_parameters_before_the_last_update() {
    // With its own parameters throughout, the batches are b0, b1, b2, ...
    let mut still = ahead(&How { lr: 0.0, ..PLAIN });
    let of_the_start: Vec<_> = (0..4).map(|_| still.step().map(|_| drawn(&still)).unwrap()).collect();
    // An update so large that it shows in the first batch after it.
    let mut moved = ahead(&How { lr: 3.0, ..PLAIN });
    let batches: Vec<_> = (0..4).map(|_| moved.step().map(|_| drawn(&moved)).unwrap()).collect();
    assert_eq!(batches[..2], of_the_start[..2], "both were ordered before the first update");
    assert_ne!(batches[2], of_the_start[2], "ordered after it");
}

#[test]
fn what_resumes_goes_on_bit_for_bit() {
    let folder = std::env::temp_dir().join(format!("gfn-ahead-{}", std::process::id()));
    for noise in [false, true] {
        let how = How { noise, ..PLAIN };
        let mut whole = ahead(&how);
        losses(&mut whole, 7);
        whole.save(&folder).unwrap();
        let expected = losses(&mut whole, 9);
        let mut resumed = ahead(&how);
        // What it has ordered by itself is of no use any more.
        losses(&mut resumed, 2);
        resumed.resume(&folder).unwrap();
        assert_eq!(losses(&mut resumed, 9), expected);
        assert_eq!(weights(&resumed), weights(&whole));
        let refused = trainer(&how).resume(&folder).unwrap_err().to_string();
        assert!(refused.contains("a thread that draws ahead"), "{refused}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn replicas_with_threads_of_their_own_stay_equal_and_resume() {
    let folder = std::env::temp_dir().join(format!("gfn-ahead-replicas-{}", std::process::id()));
    let run = |resumes: bool| {
        let made = replicate(2, |replica| {
            let mut one = trainer(&PLAIN).with_collective(replica)?.with_ahead(trainer(&PLAIN))?;
            if resumes {
                one.resume(&folder)?;
            } else {
                (0..5).try_for_each(|_| one.step().map(drop))?;
                one.save(&folder)?;
            }
            (0..5).try_for_each(|_| one.step().map(drop))?;
            // Fails where parameters differ.
            Ok((
                weights(&one),
                one.evaluator().terminating_distribution(&StateGraph::build(one.env(), 100)?, one.policy(), None)?,
            ))
        });
        made.unwrap().0
    };
    assert_eq!(run(false), run(true));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn it_learns_the_same_distribution() {
    let distance = |mut trainer: WordTrainer| {
        losses(&mut trainer, 600);
        let space = StateGraph::build(trainer.env(), 100).unwrap();
        let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap();
        let target: Vec<f64> = log_rewards(space.states()).into_iter().map(f64::exp).collect();
        let terminal: f64 = learned.probs.iter().zip(&target).filter(|(p, _)| **p > 0.0).map(|(_, r)| r).sum();
        let off = learned.probs.iter().zip(&target).map(|(p, r)| if *p > 0.0 { (p - r / terminal).abs() } else { 0.0 });
        0.5 * off.sum::<f64>()
    };
    let (with, without) = (distance(ahead(&PLAIN)), distance(trainer(&PLAIN)));
    let untrained = distance(ahead(&How { lr: 0.0, ..PLAIN }));
    assert!(with < 0.02 && without < 0.02 && untrained > 0.1, "{with} {without} {untrained}");
}

#[test]
fn a_buffer_works_with_it() {
    let config = ReplayConfig { capacity: 1_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let half = || {
        let mut one = trainer(&PLAIN);
        one = one.with_replay(ReplayBuffer::new(config).unwrap());
        one
    };
    let mut replayed = half().with_ahead(half()).unwrap();
    losses(&mut replayed, 12);
    assert_eq!((replayed.latest().unwrap().len(), replayed.replay().unwrap().is_empty()), (12, false));
    let refused = replayed.check_sees_all("this test").unwrap_err().to_string();
    assert!(refused.contains("some go into the replay buffer alone"), "{refused}");
}

/// A trainer whose drawer's reward does this at its third batch.
fn with_drawer(at_third: impl Fn() -> Result<Vec<f64>> + Send + 'static) -> WordTrainer {
    let calls = Arc::new(AtomicUsize::new(0));
    let drawer = with_reward(&PLAIN, TrajectoryBalance, move |states| match calls.fetch_add(1, Ordering::Relaxed) {
        // One batch was to compare rewards.
        3 => at_third(),
        _ => Ok(log_rewards(states)),
    });
    trainer(&PLAIN).with_ahead(drawer).unwrap()
}

#[test]
fn an_error_of_the_drawer_is_the_step_s_and_the_next_one_goes_on() {
    let mut failing = with_drawer(|| Err(Error::external("the scorer", "no licence")));
    let steps: Vec<_> = (0..5).map(|_| failing.step().map_err(|error| error.to_string())).collect();
    let failed: Vec<usize> = (0..5).filter(|&k| steps[k].is_err()).collect();
    assert_eq!(failed, [2]);
    assert!(steps[2].as_ref().unwrap_err().contains("no licence"));
    assert_eq!(failing.steps_done(), 4);
}

#[test]
#[should_panic(expected = "the drawer's own")]
fn a_panic_of_the_drawer_is_the_step_s() {
    let mut panicking = with_drawer(|| panic!("the drawer's own"));
    losses(&mut panicking, 5);
}

#[test]
fn others_than_the_trainer_s_twin_and_what_draws_by_itself_are_refused() {
    let refused = |made: Result<WordTrainer>, says: &str| {
        let error = made.and_then(|mut one| one.step().map(drop)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    refused(
        trainer(&PLAIN).with_ahead(trainer(&How { seed: 4, ..PLAIN })),
        "isn't the one that it draws for: it has another",
    );
    let conditional = trainer(&PLAIN)
        .with_conditions(|n: usize, _: &mut Rng| Ok(Tensor::zeros([n as i64, 1], (Kind::Float, Device::Cpu))));
    refused(conditional.with_ahead(trainer(&PLAIN)), "has another source of conditions");
    let other = with_reward(&PLAIN, TrajectoryBalance, |states| Ok(vec![1.5; states.len()]));
    refused(trainer(&PLAIN).with_ahead(other), "it has another reward: log R of ");
    let on_policy =
        || with_reward(&PLAIN, PolicyGradient::new(Advantage::Total).unwrap(), |states| Ok(log_rewards(states)));
    refused(on_policy().with_ahead(on_policy()), "policy of an earlier step");
    let by_average = trainer(&PLAIN).with_average(0.9, AverageFor::Sampling).unwrap();
    refused(by_average.with_ahead(trainer(&PLAIN)), "sampling by the average");
    let two = ahead(&PLAIN).with_source(0.5, Named).map(drop).unwrap_err().to_string();
    assert!(two.contains("no other part"), "{two}");
}

/// A source of the drawer's name.
struct Named;

impl Persist<Words> for Named {
    fn name(&self) -> &str {
        "ahead"
    }
}

impl<P> BatchSource<Words, P> for Named {
    fn draw(&mut self, _: usize, _: &Context<Words, P>, _: &mut Rng) -> Result<Trajectories<Words>> {
        Err(Error::config("this source", "asked", "nobody who asks it"))
    }
}
