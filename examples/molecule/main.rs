//! Molecules atom by atom, up to isomorphism, in proportion to a descriptor; `molecule_external` asks a program for the score.

#[path = "../cli/mod.rs"]
mod cli;
mod outputs;
mod run;
mod scores;

use clap::Parser;
use cli::{Common, main_of};
use gfn::Result;
use run::{Flags, Run};
use scores::RewardName;

/// Train a GNN policy to build molecules atom by atom
#[derive(Parser, Debug)]
struct Args {
    /// What is rewarded
    #[arg(long, value_enum, default_value = "heteroatoms")]
    reward: RewardName,
    #[command(flatten)]
    molecules: Flags,
    #[command(flatten)]
    common: Common,
}

/// States up to which the distribution is exact.
const EXACT_LIMIT: usize = 50_000;

fn main() -> std::process::ExitCode {
    let args = cli::parse::<Args>();
    main_of(|| run(&args))
}

fn run(args: &Args) -> Result<()> {
    let run = Run {
        example: "molecule",
        rewarded: format!("{:?}", args.reward).to_lowercase(),
        flags: &args.molecules,
        common: &args.common,
        steps: 4_000,
        exact_limit: EXACT_LIMIT,
    };
    run.train(scores::score(args.reward)?, Vec::new)
}
