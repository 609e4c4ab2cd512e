//! Molecules atom by atom, up to isomorphism, in proportion to a descriptor; `molecule_external` asks a program for the score.

use clap::Parser;
use gfn::Result;

use super::atoms::AtomArgs;
use super::train::{RewardArgs, RunArgs};
use crate::flags::Common;

/// Train a GNN policy to build molecules atom by atom
#[derive(Parser, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    reward: RewardArgs,
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
    let (rewarded, score, run) = (args.reward.rewarded(), args.reward.score()?, args.reward.noted(&args.run));
    args.atoms.train("molecule", &rewarded, (&run, &args.common), EXACT_LIMIT, score, Vec::new)
}
