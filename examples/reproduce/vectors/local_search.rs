//! Local search on a grid whose modes are far apart: the same training with and without it, exact distances beside each other.

use clap::Parser;
use gfn::Result;
use gfn::env::VectorStates;
use gfn::nn::BackwardPolicy;
use gfn::policy::KHot;
use gfn::replay::ReplayBuffer;
use gfn::rollout::{Acceptance, LocalSearch};
use gfn::run::{CountModes, Observer};
use gfn_gym::hypergrid::{GridReward, HyperGrid, OriginalReward};
use serde_json::json;

use super::perceptron;
use crate::flags::{BufferName, Common};
use crate::run::{Recipe, Run, members};

/// Train a perceptron on a grid, with local search around what it finds
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Dimensions
    #[arg(long, default_value_t = 2)]
    ndim: usize,
    /// Points along each dimension
    #[arg(long, default_value_t = 16)]
    height: usize,
    /// Proposals per object; 0 for no local search
    #[arg(long, default_value_t = 4)]
    rounds: usize,
    /// The most steps back
    #[arg(long, default_value_t = 8)]
    max_back: usize,
    /// Keep every proposal with a larger reward, in place of the Metropolis-Hastings rule
    #[arg(long)]
    greedy: bool,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let grid = HyperGrid::new(args.ndim, args.height)?;
    let env = grid.env();
    let reward = OriginalReward::new(&grid, 1e-2, 0.5, 2.0)?;
    let acceptance = if args.greedy { Acceptance::Greedy } else { Acceptance::MetropolisHastings };
    let search = LocalSearch { rounds: args.rounds, max_back: args.max_back, acceptance };
    let search = (args.rounds > 0).then_some(search);
    let training = Recipe { steps: 1_000, batch: 16, buffer: BufferName::Fifo, lr: 2e-3, ..Recipe::default() };
    let title = format!("grid of {}^{} with local search", args.height, args.ndim);
    let mut run = Run::begin(&args.common, "local_search", title, Recipe { exact_up_to: 160_000, ..training })?;
    run.config.local_search = search;
    let task = json!({ "ndim": args.ndim, "height": args.height, "search": search });
    let features = KHot::new(args.ndim, args.height);
    let trainer = perceptron(&run, env, features, reward.clone(), BackwardPolicy::Uniform, &task)?;
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let mut modes = members::sees_all().then(|| CountModes::new(|points: &VectorStates| reward.is_mode(points)));
    let observers = modes.iter_mut().map(|modes| modes as &mut dyn Observer<_>).collect();
    let Some(mut learned) = run.learn(trainer, "objects", observers)? else { return Ok(()) };
    GridReward::log_z(&reward).iter().for_each(|log_z| learned.report.set("log_z_true", log_z));
    learned.report.set("local_search", search);
    learned.print()
}
