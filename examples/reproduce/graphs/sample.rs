//! Draws graphs from a checkpoint that `ring --save` or `colored_graphs --save` wrote, into a file of graphs.

use std::path::PathBuf;

use clap::Parser;
use gfn::env::{EnumerableEnv, Rows};
use gfn::graph::{GraphEnv, GraphRules, GraphState, GraphStates, read_graphs, write_graphs};
use gfn::nn::{GraphNet, GraphNetConfig, GraphNetwork};
use gfn::policy::GraphPolicy;
use gfn::rollout::Sampler;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::Checkpoint;
use gfn::{Error, Result, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::ring::Ring;
use serde_json::json;

use crate::cli::{Saved, try_file};

/// Draw graphs from a trained policy
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Folder that `--save` of `ring` or `colored_graphs` wrote
    #[arg(long)]
    checkpoint: PathBuf,
    /// Graphs to draw
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    /// File to write: `.g6` and `.d6` are graph6 and digraph6 (no classes), any other is an edge list
    #[arg(long)]
    out: PathBuf,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads of rayon and of libtorch; each number rounds libtorch's products differently, so another one is another run
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Where tensors live: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    device: DeviceKind,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

/// Graphs drawn at once.
const CHUNK: usize = 4_096;

pub(crate) fn run(args: &Args) -> Result<()> {
    try_file(&args.out)?;
    let runtime = Runtime::new(args.threads, args.device)?;
    let checkpoint = Checkpoint::load(&args.checkpoint)?;
    // The checkpoint says what it is of: the flags of the run that wrote it needn't be given again.
    match checkpoint.description()? {
        Saved::Ring { nodes, kind, network } => draw(args, &runtime, &checkpoint, &Ring::new(nodes, kind)?, network),
        Saved::ColoredGraphs { max_nodes, network } => {
            draw(args, &runtime, &checkpoint, &ColoredGraphs::new(max_nodes)?, network)
        }
    }
}

fn draw<R: GraphRules>(
    args: &Args,
    runtime: &Runtime,
    checkpoint: &Checkpoint,
    env: &GraphEnv<R>,
    network: GraphNetConfig,
) -> Result<()> {
    let mut rng = Rng::seeded(args.seed);
    let net = GraphNet::new(env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    checkpoint.restore(net.parameters())?;
    let policy = GraphPolicy(net);
    let sampler = Sampler::new(env, &policy);
    let mut graphs: Vec<GraphState> = Vec::with_capacity(args.samples);
    while graphs.len() < args.samples {
        let drawn = sampler.forward(CHUNK.min(args.samples - graphs.len()), &mut rng)?;
        graphs.extend_from_slice(drawn.terminal_states().graphs());
    }
    write_graphs(&args.out, &graphs)?;
    if read_graphs(&args.out)? != graphs {
        return Err(Error::file(
            args.out.clone(),
            "what was written isn't what is read back",
            "check the disk, and that no other program writes to the file",
        ));
    }
    let states = GraphStates::from(graphs);
    let distinct: std::collections::HashSet<_> = env.keys(&states).into_iter().collect();
    let (count, distinct, step) = (states.len(), distinct.len(), checkpoint.manifest().step);
    eprintln!("{count} graphs, {distinct} distinct, of a policy after {step} steps, in {}", args.out.display());
    if args.json {
        println!(
            "{}",
            json!({ "example": "sample", "seed": args.seed, "count": count, "distinct": distinct, "step": step,
            "out": args.out })
        );
    }
    Ok(())
}
