//! One policy for a family of rewards: actors draw the conditions, and send them with their walks.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use gfn::condition::{Condition, ConditionSource, ConditionedReward, Conditioning, Encoding, Temperature};
use gfn::env::{Reward, StateGraph, VectorStates};
use gfn::group::{Group, replicate};
use gfn::metrics::Distances;
use gfn::nn::{EstimatorsConfig, MlpConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::testing::Words;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_dist::actors::{Actor, ActorConfig, Learner, LearnerConfig};
use tch::{Device, Kind, Tensor};

use super::wire::{HEAD, WALKS, through};
use super::{Limit, env, learner, step_until};

/// R to a power between 0 and 2, as one number.
fn conditioning() -> Conditioning {
    let law = Temperature::Uniform { least: 0.0, most: 2.0 };
    Conditioning::new(1).unwrap().temperature(law, Encoding::Number).unwrap()
}

fn reward() -> ConditionedReward<VectorStates> {
    ConditionedReward::new(conditioning(), vec![Arc::new(super::reward)]).unwrap()
}

fn policy() -> MlpPolicy<KHot> {
    let mlp = MlpConfig { hidden: vec![32, 32], ..MlpConfig::default() };
    let estimators = EstimatorsConfig::conditional(1);
    let config = MlpPolicyConfig { mlp, estimators, ..MlpPolicyConfig::default() };
    MlpPolicy::new(&env(), KHot::new(4, 4), config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap()
}

/// One that never asks the reward itself.
fn trainer(learner: Learner<Words>, batch: usize) -> Trainer<Words, MlpPolicy<KHot>> {
    let never =
        |_: &VectorStates, _: Option<&Tensor>| Err(Error::contract("actors alone ask the reward", "the learner did"));
    let config = TrainerConfig { batch, source: DataSource::HALF_REPLAYED, ..TrainerConfig::default() };
    let replay = ReplayConfig { capacity: 1_000_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    Trainer::new(env(), never, policy(), TrajectoryBalance, config, Rng::seeded(0))
        .unwrap()
        .with_conditions(conditioning())
        .with_replay(ReplayBuffer::new(replay).unwrap())
        .with_fresh(learner)
        .unwrap()
}

/// An actor under conditions of this source, until it is refused or the end; what it ended with.
fn actor<S: ConditionSource + 'static>(address: std::net::SocketAddr, source: S) -> JoinHandle<Result<u64>> {
    std::thread::spawn(move || {
        tch::set_num_threads(1);
        let config = ActorConfig { batch: 8, timeout: Duration::from_secs(5), ..ActorConfig::default() };
        Actor::connect_conditional(address, env(), reward(), policy(), source, config)?.run()
    })
}

fn vector(beta: f64) -> Tensor {
    conditioning().encode(&[Condition { beta, preferences: vec![1.0], focus: None }]).unwrap()
}

/// The exact total variation under each of these powers.
fn total_variations(trainer: &Trainer<Words, MlpPolicy<KHot>>) -> Vec<f64> {
    let space = StateGraph::build(trainer.env(), 1_000).unwrap();
    let of = |beta| {
        let condition = vector(beta);
        let target = space.target_distribution(&reward(), Some(&condition)).unwrap();
        let learned = space.terminating_distribution(trainer.env(), trainer.policy(), Some(&condition)).unwrap();
        Distances::between(&learned.probs, &target.probs).unwrap().tv
    };
    [0.0, 0.5, 1.0, 2.0].map(of).to_vec()
}

/// What is held has the log-reward of its own condition: neither was mixed up on the way.
fn check_held(trainer: &Trainer<Words, MlpPolicy<KHot>>) {
    let held = trainer.replay().unwrap();
    let walks = held.walks().unwrap();
    let expected = reward().log_reward(&walks.terminal, walks.conditions()).unwrap();
    assert!(held.log_rewards().zip(&expected).all(|(held, expected)| (held - expected).abs() < 1e-6));
    let betas: Vec<f64> = conditioning().decode(walks.conditions().unwrap()).unwrap().iter().map(|c| c.beta).collect();
    assert!(betas.iter().any(|&beta| beta < 0.2) && betas.iter().any(|&beta| beta > 1.8), "of all powers");
}

#[test]
fn actors_under_conditions_train_a_learner_to_the_target_of_each() {
    let _limit = Limit::seconds(120);
    let learner = learner(LearnerConfig::default());
    let (address, monitor) = (learner.address(), learner.monitor());
    let actors = [actor(address, conditioning()), actor(address, conditioning())];
    let mut trainer = trainer(learner, 64);
    let untrained = total_variations(&trainer);
    step_until(&mut trainer, |trainer| trainer.steps_done() == 1_500);
    let (trained, counts) = (total_variations(&trainer), monitor.counts());
    println!("TV {untrained:.4?} to {trained:.4?}, {counts:?}");
    assert!(untrained[3] > 0.3 && trained.iter().all(|&tv| tv < 0.06), "{trained:?}");
    assert!(counts.refused == 0 && counts.joined == 2, "{counts:?}");
    check_held(&trainer);
    drop(trainer);
    let taken: u64 = actors.map(|actor| actor.join().unwrap().unwrap()).iter().sum();
    assert_eq!(taken, monitor.counts().received);
}

/// What one learner's actor sends goes to the other with its conditions.
#[test]
fn learners_that_share_walks_share_their_conditions() {
    let _limit = Limit::seconds(60);
    replicate(2, |replica| {
        let (rank, learner) = (replica.rank(), learner(LearnerConfig::default()).sharded());
        let actor = (rank == 0).then(|| actor(learner.address(), conditioning()));
        let mut trainer = trainer(learner, 32).with_group(replica)?;
        (0..40).try_for_each(|_| trainer.step().map(drop))?;
        check_held(&trainer);
        drop(trainer);
        actor.map_or(Ok(0), |actor| actor.join().unwrap()).map(drop)
    })
    .unwrap();
}

#[test]
fn conditions_that_the_learner_does_not_know_are_refused_and_counted() {
    let _limit = Limit::seconds(120);
    let learner = learner(LearnerConfig { max_reuse: f64::INFINITY, ..LearnerConfig::default() });
    let (address, monitor) = (learner.address(), learner.monitor());
    let good = actor(address, conditioning());
    let mut trainer = trainer(learner, 16);
    step_until(&mut trainer, |trainer| trainer.steps_done() > 10);
    let altered = |change: fn(&mut Vec<u8>)| {
        let through = through(address, move |kind, frame| {
            if kind == WALKS {
                change(frame);
            }
        });
        actor(through, conditioning())
    };
    let constant = |width: i64, kind: Kind| {
        move |n: usize, _: &mut Rng| Ok(Tensor::ones([n as i64, width], (kind, Device::Cpu)) * 0.5)
    };
    let without = std::thread::spawn(move || {
        Actor::connect(address, env(), super::reward, policy(), ActorConfig::default())?.run()
    });
    // Eight walks: conditions stand behind their lengths, instances and log-rewards.
    let cases = [
        (without, "other conditions (none, the learner's are 1 numbers in double precision)"),
        (actor(address, constant(2, Kind::Double)), "other conditions (2 numbers in double precision"),
        (actor(address, constant(1, Kind::Float)), "other conditions (1 numbers in single precision"),
        (
            actor(address, |n: usize, _: &mut Rng| Ok(Tensor::full([n as i64, 1], 2.5, (Kind::Double, Device::Cpu)))),
            "a condition vector is",
        ),
        (altered(|frame| frame[HEAD + 17] = 7), "conditions of unknown form 7"),
        (altered(|frame| frame[HEAD + 18] = 200), "shorter than it says"),
        (altered(|frame| frame[HEAD + 21] = 200), "shorter than it says"),
        // As one that there is none of, its bytes are taken for actions.
        (altered(|frame| frame[HEAD + 17..HEAD + 22].fill(0)), "actions in"),
        (altered(|frame| frame[HEAD + 22 + 8 * 16..][..8].copy_from_slice(&f64::NAN.to_le_bytes())), "a number of NaN"),
        (
            altered(|frame| frame[HEAD + 22 + 8 * 16..][..8].copy_from_slice(&2.5f64.to_le_bytes())),
            "a condition vector is",
        ),
    ];
    let n = cases.len() as u64;
    step_until(&mut trainer, |_| cases.iter().all(|(thread, _)| thread.is_finished()));
    for (thread, words) in cases {
        let problem = thread.join().unwrap().unwrap_err().to_string();
        assert!(problem.contains(words), "`{problem}` has no `{words}`");
    }
    let counts = monitor.counts();
    assert!(counts.refused >= n && counts.actors == 1, "{counts:?}");
    check_held(&trainer);
    drop(trainer);
    good.join().unwrap().unwrap();
}

/// Nor does a learner without conditions take any.
#[test]
fn conditions_that_nobody_asked_for_are_refused() {
    let _limit = Limit::seconds(60);
    let learner = learner(LearnerConfig::default());
    let (address, monitor) = (learner.address(), learner.monitor());
    let plain = std::thread::spawn(move || {
        Actor::connect(address, env(), super::reward, super::policy(), ActorConfig::default())?.run()
    });
    let conditional = std::thread::spawn(move || {
        let (config, source) = (ActorConfig::default(), conditioning());
        Actor::connect_conditional(address, env(), super::reward, super::policy(), source, config)?.run()
    });
    let mut trainer = super::trainer(learner, 16);
    step_until(&mut trainer, |_| conditional.is_finished());
    let refused = conditional.join().unwrap().unwrap_err().to_string();
    assert!(refused.contains("other conditions (1 numbers in double precision, the learner's are none)"), "{refused}");
    assert!(monitor.counts().refused == 1, "{:?}", monitor.counts());
    drop(trainer);
    plain.join().unwrap().unwrap();
}
