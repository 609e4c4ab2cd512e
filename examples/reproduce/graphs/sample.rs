//! Draws graphs from a checkpoint that `ring --save` or `colored-graphs --save` wrote, into a file of graphs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Parser;
use gfn::env::{EnumerableEnv, Rows};
use gfn::graph::{GraphEnv, GraphKind, GraphStates, write_graphs};
use gfn::nn::{GraphNet, GraphNetConfig, GraphNetwork};
use gfn::policy::GraphPolicy;
use gfn::rollout::Sampler;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::Checkpoint;
use gfn::{Result, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::ring::Ring;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::run::files::try_file;
use crate::run::lines::{print, tell};

/// Draw graphs from a trained policy
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Folder that `--save` of `ring` or `colored-graphs` wrote
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

/// The run that saved a checkpoint: its flags needn't be given again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "example", rename_all = "snake_case")]
pub(crate) enum Saved {
    Ring { nodes: usize, kind: GraphKind, network: GraphNetConfig },
    ColoredGraphs { max_nodes: usize, network: GraphNetConfig },
}

/// Graphs drawn at once.
const CHUNK: usize = 4_096;

pub(crate) fn run(args: &Args) -> Result<()> {
    try_file(&args.out)?;
    let runtime = Runtime::new(args.threads, args.device)?;
    let checkpoint = Checkpoint::load(&args.checkpoint)?;
    match checkpoint.description()? {
        Saved::Ring { nodes, kind, network } => {
            draw(args, &runtime, &checkpoint, &Ring::new(nodes, kind)?.into_env(), network)
        }
        Saved::ColoredGraphs { max_nodes, network } => {
            draw(args, &runtime, &checkpoint, &ColoredGraphs::new(max_nodes)?.into_env(), network)
        }
    }
}

fn draw(
    args: &Args,
    runtime: &Runtime,
    checkpoint: &Checkpoint,
    env: &GraphEnv,
    network: GraphNetConfig,
) -> Result<()> {
    let mut rng = Rng::seeded(args.seed);
    let net = GraphNet::new(env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    checkpoint.restore(net.parameters())?;
    let policy = GraphPolicy(net);
    let mut graphs = GraphStates::from(Vec::new());
    while graphs.len() < args.samples {
        let drawn = Sampler::new(env, &policy).forward(CHUNK.min(args.samples - graphs.len()), &mut rng)?;
        graphs.append(drawn.terminal_states().clone());
    }
    write_graphs(&args.out, graphs.graphs())?;
    let distinct: BTreeSet<_> = env.keys(&graphs).into_iter().collect();
    let (count, distinct, step) = (graphs.len(), distinct.len(), checkpoint.manifest().step);
    tell(format_args!(
        "{count} graphs, {distinct} distinct, of a policy after {step} steps, in {}",
        args.out.display()
    ));
    if args.json {
        let line = json!({ "example": "sample", "seed": args.seed, "count": count, "distinct": distinct, "step": step,
            "out": args.out });
        print(&line)?;
    }
    Ok(())
}
