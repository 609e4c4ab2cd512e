//! The Ising model on a periodic square lattice: spins set one by one, in any order.

use clap::Parser;
use gfn::Result;
use gfn::policy::KHot;
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use serde_json::json;

use crate::cli::{Common, Defaults, VectorTask, sampled};

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

/// States up to which the distribution is exact: 3^9.
const EXACT_LIMIT: usize = 20_000;
/// Samples for the estimate of log Z.
const SAMPLES: usize = 10_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let n = args.side * args.side;
    let env = DiscreteEbm::new(n)?;
    let reward = IsingReward::lattice(args.side, args.coupling, 1.0)?;
    let task = VectorTask {
        example: "ising",
        title: format!("Ising model, {0} x {0} spins, coupling {1}", args.side, args.coupling),
        env,
        features: KHot::new(n, 3),
        defaults: Defaults { steps: 4_000, batch: 64, epsilon: 0.5, lr: 2e-3, ..Defaults::default() },
        exact_limit: EXACT_LIMIT,
        // Lattices of up to 9 x 9 are summed exactly, row by row.
        log_z_true: reward.log_z(),
        reward,
        description: json!({ "side": args.side, "coupling": args.coupling }),
        adjust: Box::new(|config| config),
        diverse: None,
        is_mode: None,
    };
    task.run(&args.common, |run| {
        let mut extra = run.modes()?;
        extra.extend(sampled(&run.trainer, SAMPLES)?);
        Ok((extra, Vec::new()))
    })
}
