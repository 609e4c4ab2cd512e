//! A discrete energy-based model: binary vectors whose coordinates are set in any order, sampled in proportion to exp(-energy).

use clap::Parser;
use gfn::Result;
use gfn::policy::KHot;
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use serde_json::json;

use crate::cli::{Common, Defaults, VectorTask};

/// Train a perceptron to sample binary vectors of low energy
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Coordinates of each vector
    #[arg(long, default_value_t = 4)]
    ndim: usize,
    /// Inverse temperature: log R = alpha s^T J s, J all ones
    #[arg(long, default_value_t = 1.0)]
    alpha: f64,
    #[command(flatten)]
    common: Common,
}

/// States up to which the distribution is exact: 3^10.
const EXACT_LIMIT: usize = 60_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let env = DiscreteEbm::new(args.ndim)?;
    let reward = IsingReward::ones(args.ndim, args.alpha)?;
    let task = VectorTask {
        example: "discrete_ebm",
        title: format!("{} spins, all coupled, alpha {}", args.ndim, args.alpha),
        env,
        features: KHot::new(args.ndim, 3),
        // At first every vector is as likely to be built as any other: one with few neighbours of high reward is found, too.
        defaults: Defaults { steps: 1_000, batch: 16, epsilon: 0.5, lr: 1e-3, ..Defaults::default() },
        exact_limit: EXACT_LIMIT,
        log_z_true: reward.log_z(),
        reward,
        description: json!({ "ndim": args.ndim, "alpha": args.alpha }),
        adjust: Box::new(|config| config),
        diverse: None,
        is_mode: None,
    };
    task.run(&args.common, |run| Ok((run.modes()?, Vec::new())))
}
