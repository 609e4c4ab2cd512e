//! All graphs up to isomorphism, each as often as any other.

use clap::Parser;
use gfn::Result;
use gfn::graph::{GraphKind, GraphStates};
use gfn::nn::GraphNet;
use gfn::policy::GraphPolicy;
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig};
use tch::Tensor;

use super::colored_graphs::{SymmetryName, network};
use crate::flags::Common;
use crate::plot::{GraphDrawing, NodeLabels};
use crate::run::{Recipe, Run, sample};

/// Train a GNN policy to draw all graphs up to isomorphism equally often
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Most nodes of a graph; there are 1,253 graphs up to 7 nodes, 13,599 up to 8, 288,267 up to 9
    #[arg(long, default_value_t = 7)]
    max_nodes: usize,
    /// Way in which the network is told how many automorphisms graphs have, and how each move changes that
    #[arg(long, value_enum, default_value = "refined")]
    symmetry: SymmetryName,
    /// Lengths of closed walks that the network is told how many there are of, at each node
    #[arg(long)]
    closed_walks: Option<usize>,
    #[command(flatten)]
    common: Common,
}

/// Graphs on the sheet.
const SHOWN: usize = 24;

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let title = format!("all graphs of at most {} nodes", args.max_nodes);
    let recipe =
        Recipe { steps: 10_000, batch: 32, epsilon: 0.05, lr_end: 0.01, exact_up_to: 300_000, ..Recipe::default() };
    let run = Run::begin(common, "all_graphs", title, recipe)?;
    let env = GraphBuilding::new(GraphBuildingConfig::new(GraphKind::Undirected, args.max_nodes))?.into_env();
    let reward = |states: &GraphStates, _: Option<&Tensor>| Ok(vec![0.0; states.graphs().len()]);
    let (mut rng, (device, float)) = (run.rng(), run.tensors());
    let network = network(&run, args.symmetry, args.closed_walks);
    let policy = GraphPolicy(GraphNet::new(&env, network, device, float, &mut rng)?);
    let (objective, config) = (run.objective()?, run.config.clone());
    let trainer = run.replayed(Trainer::new(env, reward, policy, objective, config, rng)?, ReplayBuffer::distinct)?;
    let Some(mut learned) = run.learn(trainer, "graphs up to isomorphism", Vec::new())? else { return Ok(()) };
    let samples =
        sample(learned.trainer.env(), learned.trainer.policy(), SHOWN, &mut learned.trainer.evaluation_rng())?;
    learned.report.set("classes", learned.exact.as_ref().map(|exact| exact.graph.len()));
    let drawing = GraphDrawing { labels: NodeLabels::None, ..GraphDrawing::default() };
    learned.draw(&drawing, samples.graphs(), SHOWN)?;
    learned.print()
}
