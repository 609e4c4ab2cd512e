//! Tests that policies learn environments without an exit action. Distances from the target are exact, so
//! they have no sampling noise.

use gfn::Rng;
use gfn::env::{EnumerableEnv, Reward, StateGraph, VectorEnv};
use gfn::metrics::Distances;
use gfn::nn::EstimatorsConfig;
use gfn::objective::{DetailedBalance, Objective, TrajectoryBalance};
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::train::{Trainer, TrainerConfig};
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use tch::{Device, Kind};

/// Trains a policy with 16,000 trajectories on 4 spins with all couplings 1. Returns the exact L1 distance
/// from the target.
///
/// Two of the 16 objects have a reward of e^16, and the others have e^4 or less. On-policy sampling would
/// stay at the first of the two that it finds, at an L1 distance of 1.0. Therefore exploration starts with
/// uniform actions.
fn train(objective: impl Objective + 'static, flow: bool) -> f64 {
    let env = DiscreteEbm::new(4).unwrap().env();
    let config =
        MlpPolicyConfig { estimators: EstimatorsConfig::with_flow(flow), ..MlpPolicyConfig::default() };
    let rng = &mut Rng::seeded(1);
    let policy = MlpPolicy::new(&env, KHot::new(4, 3), config, Device::Cpu, Kind::Float, rng).unwrap();
    train_spins(policy, objective, AdamConfig { lr: 1e-3, log_z_lr: 1e-1, ..AdamConfig::default() }, 1000)
}

/// Trains a policy on 4 spins for a number of steps with 16 trajectories each. Returns the exact L1 distance
/// from the target.
pub(crate) fn train_spins<P>(
    policy: P,
    objective: impl Objective + 'static,
    adam: AdamConfig,
    steps: usize,
) -> f64
where
    P: Policy<VectorEnv> + Send + 'static,
{
    let env = DiscreteEbm::new(4).unwrap().env();
    let reward = IsingReward::with_equal_couplings(4, 1.0).unwrap();
    let config = TrainerConfig {
        batch: 16,
        adam,
        epsilon: Some(Schedule::Linear { from: 1.0, to: 0.1, steps }),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.02, steps },
        ..TrainerConfig::default()
    };
    let mut trainer =
        Trainer::new(env.clone(), reward.clone(), policy, objective, config, Rng::seeded(2)).unwrap();
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    distances(&env, trainer.policy(), &reward).l1
}

/// Returns the exact distances between a policy's distribution and the target.
pub(crate) fn distances<E: EnumerableEnv>(
    env: &E,
    policy: &dyn Policy<E>,
    reward: &dyn Reward<E::States>,
) -> Distances {
    let graph = StateGraph::build(env, 1_000).unwrap();
    let sampled = graph.terminating_distribution(env, policy, None).unwrap();
    let target = graph.target_distribution(reward, None).unwrap();
    Distances::between(&sampled.probs, &target.probs).unwrap()
}

#[test]
fn trajectory_balance_learns_spins() {
    let l1 = train(TrajectoryBalance, false);
    assert!(l1 <= 0.05, "L1 {l1}");
}

#[test]
fn detailed_balance_learns_spins() {
    let l1 = train(DetailedBalance::default(), true);
    assert!(l1 <= 0.05, "L1 {l1}");
}
