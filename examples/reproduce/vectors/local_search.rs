//! Local search on a grid whose modes are far apart: the same training with and without it, exact distances beside each other.

use clap::Parser;
use gfn::Result;
use gfn::policy::KHot;
use gfn::rollout::{Acceptance, LocalSearch};
use gfn_gym::hypergrid::{GridReward, HyperGrid, OriginalReward};
use serde_json::json;

use crate::cli::{BufferName, Common, Defaults, VectorTask};

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

/// States up to which the distribution is exact.
const EXACT_LIMIT: usize = 160_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let env = HyperGrid::new(args.ndim, args.height)?;
    let reward = OriginalReward::new(&env, 1e-2, 0.5, 2.0)?;
    let acceptance = if args.greedy { Acceptance::Greedy } else { Acceptance::MetropolisHastings };
    let search = LocalSearch { rounds: args.rounds, max_back: args.max_back, acceptance };
    let search = (args.rounds > 0).then_some(search);
    let task = VectorTask {
        example: "local_search",
        title: format!("grid of {}^{} with local search", args.height, args.ndim),
        env,
        features: KHot::new(args.ndim, args.height),
        defaults: Defaults {
            steps: 1_000,
            batch: 16,
            buffer: BufferName::Fifo,
            epsilon: 0.1,
            lr: 2e-3,
            ..Defaults::default()
        },
        exact_limit: EXACT_LIMIT,
        log_z_true: GridReward::log_z(&reward),
        reward: reward.clone(),
        description: json!({ "ndim": args.ndim, "height": args.height, "search": search }),
        adjust: Box::new(move |config| gfn::train::TrainerConfig { local_search: search, ..config }),
        diverse: None,
        is_mode: Some(Box::new(move |points| reward.is_mode(points))),
    };
    task.run(&args.common, |run| {
        let mut extra = run.modes()?;
        extra.push(("local_search", json!(search)));
        Ok((extra, Vec::new()))
    })
}
