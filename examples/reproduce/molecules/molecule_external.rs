//! Molecules atom by atom with a program of your own as the reward: a line with a SMILES in, a line with a score out.

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use gfn::{Error, Result};
use gfn_molecules::ExternalScorer;
use serde_json::json;

use super::atoms::AtomArgs;
use super::train::{RunArgs, Shared};
use crate::flags::Common;

/// Train a GNN policy to build molecules that an external program scores
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Program: reads a SMILES per line, writes a score of 0 or more per line; words are parted at spaces
    #[arg(long, default_value = "python3 examples/heteroatom_scorer.py")]
    command: String,
    /// Longest wait for a line, start-up included, in seconds
    #[arg(long, default_value_t = 60.0)]
    timeout: f64,
    /// Most states for which the program is asked about all molecules, so that the distance is exact
    #[arg(long, default_value_t = 2_000)]
    exact_limit: usize,
    #[command(flatten)]
    atoms: AtomArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    common: Common,
}

fn scorer(args: &Args) -> Result<ExternalScorer> {
    let timeout = Duration::try_from_secs_f64(args.timeout)
        .map_err(|_| Error::config("--timeout", args.timeout, "a number of seconds above 0"))?;
    ExternalScorer::new(args.command.split_whitespace(), timeout)
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let scorer = Arc::new(scorer(args)?);
    let shared = Shared(scorer.clone());
    let also = || vec![("scorer_asked", json!(scorer.n_cached()))];
    let (run, common, limit) = (&args.run, &args.common, args.exact_limit);
    args.atoms.train("molecule_external", &args.command, (run, common), limit, shared, also)
}
