//! Molecules atom by atom, up to isomorphism, in proportion to a descriptor; `molecule_external` asks a program for the score.

mod atoms;
#[path = "../cli/mod.rs"]
mod cli;

use atoms::AtomArgs;
use clap::Parser;
use cli::molecules::{self, RewardName, RunArgs};
use cli::{Common, main_of, value_words};
use gfn::Result;

/// Train a GNN policy to build molecules atom by atom
#[derive(Parser, Debug)]
struct Args {
    /// What is rewarded
    #[arg(long, value_enum, default_value = "heteroatoms")]
    reward: RewardName,
    #[command(flatten)]
    atoms: AtomArgs,
    #[command(flatten)]
    run: RunArgs,
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
    let rewarded = value_words(&args.reward);
    let run = args.atoms.run("molecule", &rewarded, (&args.run, &args.common), EXACT_LIMIT);
    args.atoms.train(&run, molecules::score(args.reward)?, Vec::new)
}
