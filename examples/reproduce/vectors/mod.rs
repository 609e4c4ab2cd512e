//! Vectors of small integers: grids, bits, spins; and means of training that are compared on them.

pub(crate) mod bit_sequence;
pub(crate) mod compare_objectives;
pub(crate) mod conditional_hypergrid;
pub(crate) mod discrete_ebm;
pub(crate) mod exploration;
pub(crate) mod hypergrid;
pub(crate) mod ising;
pub(crate) mod local_search;
pub(crate) mod offline;
pub(crate) mod peaks;
pub(crate) mod tfbind8;

use gfn::Result;
use gfn::env::{Reward, VectorEnv, VectorStates};
use gfn::nn::BackwardPolicy;
use gfn::policy::{KHot, MlpPolicy};
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use serde_json::{Value, json};

use crate::run::Run;

/// A trainer of a perceptron without a replay buffer; `task` is what checkpoints know of the run.
pub(crate) fn perceptron(
    run: &Run<'_>,
    env: VectorEnv,
    features: KHot,
    reward: impl Reward<VectorStates> + 'static,
    backward: BackwardPolicy,
    task: &Value,
) -> Result<Trainer<VectorEnv>> {
    let (mut rng, network) = (run.rng(), run.common.perceptron(backward));
    let description = json!({ "example": run.example, "task": task, "network": network });
    let policy = MlpPolicy::new(&env, features, network, run.device, tch::Kind::Float, &mut rng)?;
    Trainer::new(env, reward, policy, run.objective()?, run.config.clone(), rng)?.described_by(&description)
}

/// Trains a perceptron with the replay buffer of the flags, and reports.
fn train(
    run: &Run<'_>,
    env: VectorEnv,
    features: KHot,
    reward: impl Reward<VectorStates> + 'static,
    log_z: Option<f64>,
    task: &Value,
) -> Result<()> {
    let trainer = perceptron(run, env, features, reward, BackwardPolicy::Uniform, task)?;
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let Some(mut learned) = run.learn(trainer, "objects", Vec::new())? else { return Ok(()) };
    log_z.iter().for_each(|log_z| learned.report.set("log_z_true", log_z));
    learned.print()
}
