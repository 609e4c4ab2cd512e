//! Molecules fragment by fragment: junction trees, up to isomorphism and the fragments' own symmetries, in proportion to a score.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use gfn::Result;
use gfn::graph::GraphState;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNetConfig};
use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};
use serde_json::json;

use super::train::{MoleculeTask, RewardArgs, RunArgs};
use crate::flags::Common;

/// Train a GNN policy to build molecules from fragments
#[derive(Parser, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    reward: RewardArgs,
    /// File of fragments, one per line: a SMILES, a blank, and the atoms that others can be attached to, counted from 0 as written, with
    /// commas between them; an atom is listed as often as it may have something attached, at most once per hydrogen
    #[arg(long)]
    library: Option<PathBuf>,
    /// The library's standard set of common rings and groups, in place of the eight that are exact
    #[arg(long, conflicts_with = "library")]
    all_fragments: bool,
    /// Most fragments
    #[arg(long, default_value_t = 3)]
    max_fragments: usize,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    common: Common,
}

/// The fragments if nothing else is asked for: 539 trees of at most three.
const FEW: &str = "\
c1ccccc1 0,1,2,3,4,5
N1CCNCC1 0,3
O=CN 1,2,2
C=O 0,0
C 0,0
N 0,0,0
O 0,0
F 0
";

/// States up to which the distribution is exact.
const EXACT_LIMIT: usize = 50_000;

fn library(args: &Args) -> Result<FragmentLibrary> {
    match &args.library {
        Some(path) => FragmentLibrary::read(path),
        None if args.all_fragments => FragmentLibrary::standard(),
        None => FragmentLibrary::parse(FEW),
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let library = library(args)?;
    let (rewarded, score, run) = (args.reward.rewarded(), args.reward.score()?, args.reward.noted(&args.run));
    let corrects = !args.run.no_symmetry_correction;
    let env = Fragments::new(&library, args.max_fragments)?.into_env().with_symmetry_correction(corrects);
    let network = GraphNetConfig {
        // Stems are attributes of arcs: `Gin` doesn't see them.
        conv: ConvKind::Gine,
        layers: common.layers.unwrap_or(2),
        embedding: common.embedding.unwrap_or(64),
        backward: common.backward(BackwardPolicy::SharedTorso),
        estimators: common.objective.estimators(),
        ..GraphNetConfig::default()
    };
    let fragments: Vec<String> = library.fragments().iter().map(|fragment| fragment.to_string()).collect();
    let task = MoleculeTask {
        example: "fragments",
        title: format!("trees of at most {} fragments, {}", args.max_fragments, rewarded),
        objects: "junction trees",
        args: &run,
        common,
        network,
        description: json!({ "max_fragments": args.max_fragments, "fragments": fragments }),
        exact_limit: EXACT_LIMIT,
    };
    let reader = library.clone();
    let read = Arc::new(move |graph: &GraphState| reader.molecule(graph));
    let reward = |score| FragmentReward::new(&library, score);
    task.train(env, score, reward, read, Vec::new)
}
