//! The Ising model on a periodic square lattice: spins set one by one, in any order.

use clap::Parser;
use gfn::Result;
use gfn::nn::BackwardPolicy;
use gfn::policy::KHot;
use gfn::replay::ReplayBuffer;
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use serde_json::json;

use super::perceptron;
use crate::flags::Common;
use crate::run::{Recipe, Run, sampled};

/// Train a perceptron to sample spins of a lattice
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Spins along each side of the lattice
    #[arg(long, default_value_t = 3)]
    side: usize,
    /// Coupling of neighbours: positive for aligned spins
    #[arg(long, default_value_t = 0.22)]
    coupling: f64,
    #[command(flatten)]
    common: Common,
}

/// Samples for the estimate of log Z.
const SAMPLES: usize = 10_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let n = args.side * args.side;
    let reward = IsingReward::lattice(args.side, args.coupling, 1.0)?;
    let title = format!("Ising model, {0} x {0} spins, coupling {1}", args.side, args.coupling);
    let training = Recipe { steps: 4_000, batch: 64, epsilon: 0.5, lr: 2e-3, ..Recipe::default() };
    let run = Run::begin(&args.common, "ising", title, Recipe { exact_up_to: 20_000, samples: 0, ..training })?;
    let task = json!({ "side": args.side, "coupling": args.coupling });
    // Lattices of up to 9 x 9 are summed exactly, row by row.
    let (log_z, env) = (reward.log_z(), DiscreteEbm::new(n)?.env());
    let trainer = perceptron(&run, env, KHot::new(n, 3), reward, BackwardPolicy::Uniform, &task)?;
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let Some(mut learned) = run.learn(trainer, "objects", Vec::new())? else { return Ok(()) };
    log_z.iter().for_each(|log_z| learned.report.set("log_z_true", log_z));
    learned.report.extend(sampled(&learned.trainer, SAMPLES)?);
    learned.print()
}
