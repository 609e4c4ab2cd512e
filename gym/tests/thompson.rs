//! Tests of Thompson sampling with the heads of a policy: each head learns from its share of a batch, and all
//! heads sample the target.

use gfn::env::VectorEnv;
use gfn::objective::{Advantage, LogPartitionVariance, PolicyGradient};
use gfn::policy::Policy;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Teacher, TeacherConfig};

use crate::behaviour::{
    GridTrainer, check_resume, grid, grid_reward, network, step, steps, trainer, tv, with_thompson,
};

#[test]
fn thompson_heads_all_sample_the_target() {
    let mut trainer = with_thompson(trainer(0, 3, 500), 0.5).unwrap();
    steps(&mut trainer, 500);
    assert_eq!(trainer.policy().heads().unwrap().head(), 0, "the head that was in use is in use again");
    for head in 0..3 {
        trainer.policy().heads().unwrap().use_head(head).unwrap();
        assert!(tv(&trainer) < 0.03, "head {head}: {}", tv(&trainer));
    }
}

#[test]
fn thompson_heads_resume_bit_for_bit() {
    check_resume("thompson", |seed| with_thompson(trainer(seed, 4, 100), 0.5).unwrap());
    let one = steps(&mut trainer(1, 4, 100), 3);
    assert_ne!(one, steps(&mut with_thompson(trainer(1, 4, 100), 0.5).unwrap(), 3), "other trajectories");
}

/// Checks that a head of the policy learns from the whole batch if its share of the batch is empty, like a
/// head with a share of 1.
#[test]
fn a_head_without_a_share_learns_from_the_whole_batch() {
    let weights = |share: f64| {
        let mut trainer = with_thompson(trainer(1, 2, 100), share).unwrap();
        step(&mut trainer).unwrap();
        let parameters = Policy::<VectorEnv>::parameters(trainer.policy()).unwrap();
        parameters.iter().map(|p| p.tensor.detach().copy()).collect::<Vec<_>>()
    };
    assert_eq!(weights(1e-12), weights(1.0));
    assert_ne!(weights(0.5), weights(1.0));
}

/// Checks that a head whose share is a single trajectory learns from the whole batch. The objective is a
/// variance, and the variance of one trajectory and its gradient are 0.
#[test]
fn a_head_whose_share_an_objective_cannot_learn_from_learns_from_the_whole_batch() {
    let env = grid();
    let mut rng = Rng::seeded(5);
    let policy = network(2, &mut rng);
    let reward = grid_reward();
    let config = TrainerConfig { batch: 3, ..TrainerConfig::default() };
    let trainer = Trainer::new(env.clone(), reward, policy, LogPartitionVariance, config, rng).unwrap();
    // With a share of 0.3, a head usually gets one of the three trajectories. If the head learned from this
    // trajectory alone, the loss would be 0.
    let mut trainer = with_thompson(trainer, 0.3).unwrap();
    let losses: Vec<f64> = (0..30).map(|_| step(&mut trainer).unwrap().loss).collect();
    let idle = losses.iter().filter(|loss| **loss == 0.0).count();
    assert!(idle < 3, "{losses:?}");
}

#[test]
fn invalid_settings_are_refused() {
    let refused = |trainer: Result<GridTrainer>| trainer.unwrap_err().to_string();
    assert!(refused(with_thompson(trainer(0, 1, 9), 0.5)).contains("at least 2 heads"));
    assert!(refused(with_thompson(trainer(0, 2, 9), 0.0)).contains("0 < share <= 1"));
    let teacher = |config| Teacher::new(&grid(), network(1, &mut Rng::seeded(0)), config);
    let message = teacher(TeacherConfig { epsilon: 0.0, ..TeacherConfig::default() })
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(message.contains("above 0"), "{message}");
    let both = with_thompson(trainer(0, 2, 9), 0.5).unwrap();
    let mut both = both.with_source(0.5, teacher(TeacherConfig::default()).unwrap()).unwrap();
    let refused = step(&mut both);
    assert!(
        matches!(refused, Err(Error::Missing { needed_by: "a source that learns from losses", .. })),
        "{refused:?}"
    );
    // An ordinary step must be refused, because it would train only the head that sampled the batch.
    let ordinary = with_thompson(trainer(0, 2, 9), 0.5).unwrap().step();
    assert!(matches!(ordinary, Err(Error::Missing { .. })), "{ordinary:?}");
    let on_policy = PolicyGradient::new(Advantage::Total).unwrap();
    let mut rng = Rng::seeded(0);
    let policy = network(2, &mut rng);
    let reward = grid_reward();
    let trainer = Trainer::new(grid(), reward, policy, on_policy, TrainerConfig::default(), rng).unwrap();
    let message = step(&mut with_thompson(trainer, 0.5).unwrap()).unwrap_err().to_string();
    assert!(message.contains("of the policy itself"), "{message}");
}
