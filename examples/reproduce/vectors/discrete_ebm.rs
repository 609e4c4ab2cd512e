//! A discrete energy-based model: binary vectors whose coordinates are set in any order, sampled in proportion to exp(-energy).

use clap::Parser;
use gfn::Result;
use gfn::policy::KHot;
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use serde_json::json;

use super::train;
use crate::flags::Common;
use crate::run::{Recipe, Run};

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

pub(crate) fn run(args: &Args) -> Result<()> {
    let reward = IsingReward::ones(args.ndim, args.alpha)?;
    let title = format!("{} spins, all coupled, alpha {}", args.ndim, args.alpha);
    // At first every vector is as likely to be built as any other: one with few neighbours of high reward is found, too.
    let recipe = Recipe { steps: 1_000, batch: 16, epsilon: 0.5, lr: 1e-3, exact_up_to: 60_000, ..Recipe::default() };
    let run = Run::begin(&args.common, "discrete_ebm", title, recipe)?;
    let task = json!({ "ndim": args.ndim, "alpha": args.alpha });
    let log_z = reward.log_z();
    train(&run, DiscreteEbm::new(args.ndim)?.env(), KHot::new(args.ndim, 3), reward, log_z, &task)
}
