//! Tests of backward policies that are trained by their own objectives. On a grid the P_B of maximum entropy
//! is known in closed form.

use gfn::Rng;
use gfn::nn::{BackwardPolicy, MlpConfig};
use gfn::objective::Quantities;
use gfn::objective::{
    MaximumEntropyBackward, Objective, TrajectoryBalance, TrajectoryLikelihood, WithBackward,
};
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::train::{Trainer, TrainerConfig};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use tch::{Device, Kind};

/// Trains P_B by the objective `backward`. Returns the coordinates of each state except the origin, and the
/// probability that P_B lowers the first coordinate.
fn train_backward_policy(backward: impl Objective + 'static) -> Vec<(f64, f64, f64)> {
    let grid = HyperGrid::new(2, 4).unwrap();
    let env = grid.env();
    let reward = OriginalReward::standard(&grid).unwrap();
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![64, 64], ..MlpConfig::default() },
        backward: BackwardPolicy::Separate,
        paths: true,
        ..MlpPolicyConfig::default()
    };
    let mut rng = Rng::seeded(0);
    let policy = MlpPolicy::new(&env, KHot::new(2, 4), config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let steps = 600;
    let config = TrainerConfig {
        batch: 16,
        adam: AdamConfig { lr: 5e-3, log_z_lr: 1e-1, ..AdamConfig::default() },
        epsilon: Some(Schedule::Constant(0.2)),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps },
        ..TrainerConfig::default()
    };
    let objective = WithBackward::new(TrajectoryBalance, backward);
    let mut trainer = Trainer::new(env.clone(), reward, policy, objective, config, rng).unwrap();
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    let states = grid.states_of(1..16).unwrap();
    let pb = trainer.policy().evaluate(&env, &states, None, Quantities::PB).unwrap().pb.unwrap();
    let log_probs = pb.host_log_probs().unwrap();
    let both = states.rows().enumerate().filter(|(_, row)| row[0] > 0 && row[1] > 0);
    both.map(|(k, row)| (f64::from(row[0]), f64::from(row[1]), log_probs[pb.legal_offsets()[k]].exp()))
        .collect()
}

/// Checks that maximum entropy makes all paths to a point equally probable: a share x / (x + y) of all paths
/// to (x, y) comes from (x - 1, y).
#[test]
fn most_entropy_makes_all_paths_alike() {
    for (x, y, p) in train_backward_policy(MaximumEntropyBackward) {
        assert!((p - x / (x + y)).abs() < 0.02, "({x}, {y}): {p}");
    }
}

/// Checks as a negative control that the likelihood objective converges to another P_B than maximum entropy.
#[test]
fn likelihood_does_not() {
    let largest = train_backward_policy(TrajectoryLikelihood)
        .iter()
        .map(|(x, y, p)| (p - x / (x + y)).abs())
        .fold(0.0, f64::max);
    assert!(largest > 0.05, "{largest}");
}
