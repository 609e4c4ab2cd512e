//! Molecules atom by atom, up to isomorphism, in proportion to a descriptor; `molecule_external` asks a program for the score.

use clap::Parser;
use gfn::Result;

use super::atoms::AtomArgs;
use super::train::{RewardName, RunArgs, score};
use crate::flags::{Common, words};

/// Train a GNN policy to build molecules atom by atom
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// The reward
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

pub(crate) fn run(args: &Args) -> Result<()> {
    let (rewarded, score) = (words(&args.reward), score(args.reward)?);
    args.atoms.train("molecule", &rewarded, (&args.run, &args.common), EXACT_LIMIT, score, Vec::new)
}
