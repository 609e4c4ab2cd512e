//! Tests that a custom loop, which calls the methods that `Trainer::step` consists of, makes the same steps
//! bit for bit.

use gfn::env::{VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::nn::{MlpConfig, Parameters};
use gfn::objective::{Objective, TrajectoryBalance};
use gfn::optim::{Adam, Optimizer, Schedule};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Container, Sampler};
use gfn::train::{AverageFor, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

type Learner = Trainer<VectorEnv>;

fn trainer(config: TrainerConfig) -> Learner {
    tch::set_num_threads(1);
    let env = word_env(2, 3);
    let mlp = MlpConfig { hidden: vec![16], ..MlpConfig::default() };
    let config_of_policy = MlpPolicyConfig { mlp, ..MlpPolicyConfig::default() };
    let policy = MlpPolicy::new(
        &env,
        KHot::new(3, 3),
        config_of_policy,
        Device::Cpu,
        Kind::Float,
        &mut Rng::seeded(0),
    );
    let reward = |words: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(words.rows().map(|word| word.iter().filter(|&&letter| letter == 1).count() as f64).collect())
    };
    let objective: Box<dyn Objective> = Box::new(TrajectoryBalance);
    Trainer::new(env, reward, policy.unwrap(), objective, config, Rng::seeded(1)).unwrap()
}

/// Builds a trainer that uses everything that a step depends on: replay by loss, decreasing exploration, and
/// averaged parameters for sampling.
fn full_trainer() -> Learner {
    let source = DataSource::new(0.5, 0.5, 0.0).unwrap();
    let epsilon = Some(Schedule::Linear { from: 0.5, to: 0.0, steps: 10 });
    let trainer =
        trainer(TrainerConfig { batch: 8, source, epsilon, replay_after: 2, ..TrainerConfig::default() });
    let draw = Draw::LossPrioritised { exponent: 1.0 };
    let buffer = ReplayBuffer::new(ReplayConfig { capacity: 50, eviction: Eviction::Fifo, draw }).unwrap();
    trainer.with_replay(buffer).with_average(0.9, AverageFor::Sampling).unwrap()
}

fn parameters(trainer: &Learner) -> &Parameters {
    Policy::<VectorEnv>::parameters(trainer.policy()).unwrap()
}

fn values(trainer: &Learner) -> Vec<Tensor> {
    parameters(trainer).iter().map(|parameter| parameter.tensor.detach().copy()).collect()
}

fn custom_step(trainer: &mut Learner, adam: &mut Adam) -> f64 {
    let mut batch = trainer.draw().unwrap();
    let scores = trainer.score(&mut batch).unwrap();
    let loss = trainer.loss(&scores).unwrap();
    loss.backward();
    adam.scale_lr(trainer.context().config.lr_scale.at(trainer.steps_done())).unwrap();
    adam.step().unwrap();
    trainer.advance(batch, &scores).unwrap().loss
}

#[test]
fn a_custom_loop_makes_the_same_steps() {
    let mut ours = full_trainer();
    let mut own = full_trainer();
    let mut adam = Adam::new(parameters(&own), own.context().config.adam).unwrap();
    for step in 1..=8 {
        assert_eq!(
            ours.step().unwrap().loss.to_bits(),
            custom_step(&mut own, &mut adam).to_bits(),
            "step {step}"
        );
        assert_eq!(values(&ours), values(&own), "step {step}");
        assert_eq!((own.steps_done(), own.reward_calls()), (step, ours.reward_calls()));
    }
    // The same objects are drawn from both buffers, so the custom loop has updated the replay priorities,
    // too.
    let drawn = |trainer: &Learner| trainer.latest().map(|batch| batch.terminal_states().clone());
    assert_eq!(drawn(&ours), drawn(&own));
}

/// Makes a step by calling the five methods that a step consists of.
fn step_by_hand(trainer: &mut Learner) -> f64 {
    let mut batch = trainer.draw().unwrap();
    let scores = trainer.score(&mut batch).unwrap();
    let loss = trainer.loss(&scores).unwrap();
    trainer.apply(&loss, &scores).unwrap();
    trainer.advance(batch, &scores).unwrap().loss
}

#[test]
fn the_five_methods_are_the_step_also_in_chunks() {
    for chunk in [None, Some(5)] {
        let make = || trainer(TrainerConfig { batch: 8, chunk, ..TrainerConfig::default() });
        let mut whole = make();
        let mut by_hand = make();
        for step in 1..=4 {
            assert_eq!(
                whole.step().unwrap().loss.to_bits(),
                step_by_hand(&mut by_hand).to_bits(),
                "step {step}"
            );
            assert_eq!(values(&whole), values(&by_hand), "step {step}");
        }
    }
}

/// Checks that the gradients of an earlier backward call don't count twice. If a batch is scored in chunks,
/// the scores are leaves of the autograd graph, which accumulate gradients.
#[test]
fn a_stray_gradient_doesn_t_count_twice() {
    let make = || trainer(TrainerConfig { batch: 8, chunk: Some(5), ..TrainerConfig::default() });
    let norm = |is_stray: bool| {
        let mut trainer = make();
        let mut batch = trainer.draw().unwrap();
        let scores = trainer.score(&mut batch).unwrap();
        if is_stray {
            trainer.loss(&scores).unwrap().backward();
        }
        let loss = trainer.loss(&scores).unwrap();
        trainer.apply(&loss, &scores).unwrap();
        trainer.advance(batch, &scores).unwrap().grad_norm
    };
    assert!(norm(false) > 0.0);
    assert_eq!(norm(true), norm(false));
}

#[test]
fn a_custom_loss_is_recorded() {
    let mut trainer = trainer(TrainerConfig { batch: 8, ..TrainerConfig::default() });
    let mut batch = trainer.draw().unwrap();
    let scores = trainer.score(&mut batch).unwrap();
    let loss = trainer.loss(&scores).unwrap() * 2.0;
    trainer.record_loss(7.5);
    trainer.apply(&loss, &scores).unwrap();
    assert_eq!(trainer.advance(batch, &scores).unwrap().loss, 7.5);
}

#[test]
fn a_user_supplied_batch_updates_no_priorities() {
    let mut trainer = full_trainer();
    let env = word_env(2, 3);
    let others = Sampler::new(&env, &UniformPolicy).forward(5, &mut Rng::seeded(3)).unwrap();
    assert_eq!(trainer.remember(&others).unwrap(), 5);
    assert_eq!((trainer.replay().unwrap().len(), trainer.reward_calls()), (5, 5));
    let mut batch = others.into();
    let scores = trainer.score(&mut batch).unwrap();
    let loss = trainer.loss(&scores).unwrap();
    loss.backward();
    trainer.advance(batch, &scores).unwrap();
    assert_eq!((trainer.steps_done(), trainer.n_fresh()), (1, 0));
    assert_eq!(trainer.latest().unwrap().len(), 5);
    // Each step must record its own loss and gradient, also for trajectories that the trainer hasn't drawn.
    for _ in 0..2 {
        let others = Sampler::new(&env, &UniformPolicy).forward(5, &mut Rng::seeded(4)).unwrap();
        let mut batch = others.into();
        let scores = trainer.score(&mut batch).unwrap();
        let loss = trainer.loss(&scores).unwrap();
        trainer.apply(&loss, &scores).unwrap();
        let stats = trainer.advance(batch, &scores).unwrap();
        assert!(stats.loss == loss.double_value(&[]) && stats.grad_norm > 0.0, "{stats:?}");
    }
}

#[test]
fn unsupported_settings_of_custom_loops_are_refused() {
    let mut chunked = trainer(TrainerConfig { batch: 4, chunk: Some(3), ..TrainerConfig::default() });
    let mut batch = chunked.draw().unwrap();
    let scores = chunked.score(&mut batch).unwrap();
    chunked.loss(&scores).unwrap().backward();
    assert!(matches!(chunked.update(), Err(Error::Missing { .. })));
    assert!(matches!(chunked.advance(batch, &scores), Err(Error::Missing { .. })));
    let mut one = trainer(TrainerConfig { batch: 4, ..TrainerConfig::default() });
    let mut first = one.draw().unwrap();
    let mut second = one.draw().unwrap();
    assert!(matches!(one.remember(&first.trajectories), Err(Error::Missing { .. })));
    let scores = one.score(&mut first).unwrap();
    one.score(&mut second).unwrap();
    let part = second.trajectories.select(0..2).unwrap();
    let error = one.advance(part.into(), &scores).unwrap_err().to_string();
    assert!(error.contains("a batch with its own scores"), "{error}");
    assert_eq!(one.steps_done(), 0);
}

/// Checks that an update without `advance` makes the next `draw` fail, once, and that draws without an update
/// and steps with several updates are allowed.
#[test]
fn updates_need_an_advance() {
    let mut trainer = trainer(TrainerConfig { batch: 4, ..TrainerConfig::default() });
    trainer.draw().unwrap();
    let mut batch = trainer.draw().unwrap();
    for _ in 0..3 {
        let scores = trainer.score(&mut batch).unwrap();
        let loss = trainer.loss(&scores).unwrap();
        trainer.apply(&loss, &scores).unwrap();
    }
    let error = trainer.draw().map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("call `advance(batch, &scores)`"), "{error}");
    let mut batch = trainer.draw().unwrap();
    let scores = trainer.score(&mut batch).unwrap();
    let loss = trainer.loss(&scores).unwrap();
    trainer.apply(&loss, &scores).unwrap();
    let error = trainer.apply(&loss, &scores).unwrap_err();
    assert!(
        matches!(error, Error::Missing { .. }) && error.to_string().contains("score the batch again"),
        "{error}"
    );
    trainer.advance(batch, &scores).unwrap();
    trainer.draw().unwrap();
    assert_eq!(trainer.steps_done(), 1);
}
