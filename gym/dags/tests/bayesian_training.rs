//! Tests that training learns the posterior. Distances to the posterior are exact, so they have no sampling
//! noise.

use gfn::Rng;
use gfn::env::StateGraph;
use gfn::metrics::Distances;
use gfn::nn::MlpConfig;
use gfn::objective::{ModifiedDetailedBalance, Objective, TrajectoryBalance};
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::policy::{MlpPolicy, MlpPolicyConfig};
use gfn::train::{Trainer, TrainerConfig};
use gfn_dags::*;
use tch::{Device, Kind};

/// Trains a policy on 12,800 sampled graphs of three nodes. Returns the exact Jensen-Shannon divergence
/// between the policy and the posterior given 10 observations.
fn train(objective: impl Objective + 'static) -> f64 {
    // The matrix products are so small that threads don't make them faster. With other tests at the same
    // time, threads would make them slower.
    tch::set_num_threads(1);
    let rng = &mut Rng::seeded(1);
    let truth = GraphLaw::ErdosRenyi { edges: 2.0 }.draw(3, rng).unwrap();
    let data = Sem::draw(truth, SemConfig::LinearAwayFromZero { low: 0.5, high: 1.0 }, 1.0, rng).unwrap();
    let data = data.sample(10, rng).unwrap();
    let scores = CachedScores::ahead(Bge::new(&data, BgeConfig::default()).unwrap(), None).unwrap();
    let env = BayesianStructure::new(StructureConfig::new(3)).unwrap().into_env();
    let graph = StateGraph::build(&env, 100).unwrap();
    let reward = DagReward::new(scores, StructurePrior::Uniform)
        .unwrap()
        .relative_to(&graph.states().graphs()[0])
        .unwrap();
    let posterior = ExactPosterior::from_states(graph.states(), &reward).unwrap();
    let mlp = MlpConfig { hidden: vec![64, 64], ..MlpConfig::default() };
    let config = MlpPolicyConfig { mlp, ..MlpPolicyConfig::default() };
    let policy =
        MlpPolicy::new(&env, AdjacencyFeatures::new(3), config, Device::Cpu, Kind::Float, rng).unwrap();
    let steps = 800;
    let config = TrainerConfig {
        batch: 16,
        adam: AdamConfig { lr: 5e-3, log_z_lr: 1e-1, ..AdamConfig::default() },
        epsilon: Some(Schedule::Linear { from: 1.0, to: 0.1, steps }),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.02, steps },
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env.clone(), reward, policy, objective, config, Rng::seeded(2)).unwrap();
    let jsd = |trainer: &Trainer<_>| {
        let sampled = graph.terminating_distribution(&env, trainer.policy(), None).unwrap();
        Distances::between(&sampled.probs, posterior.probs()).unwrap().jsd
    };
    let before = jsd(&trainer);
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    let after = jsd(&trainer);
    assert!(after < before / 10.0, "{after} after {before}");
    after
}

#[test]
fn trajectory_balance_learns_a_posterior() {
    let jsd = train(TrajectoryBalance);
    assert!(jsd < 1e-3, "{jsd}");
}

#[test]
fn modified_detailed_balance_learns_a_posterior() {
    let jsd = train(ModifiedDetailedBalance::default());
    assert!(jsd < 1e-3, "{jsd}");
}
