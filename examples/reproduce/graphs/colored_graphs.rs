//! Growth up to isomorphism: connected graphs of two-coloured nodes, with and without the correction for symmetry.

use clap::{Parser, ValueEnum};
use gfn::Result;
use gfn::nn::{ConvKind, GraphNet, GraphNetConfig, Symmetry};
use gfn::policy::GraphPolicy;
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};

use super::sample::Saved;
use crate::flags::{Common, words};
use crate::plot::{GraphDrawing, NodeLabels};
use crate::run::{Recipe, Run, sample};

/// Train a GNN policy to grow two-coloured graphs, up to isomorphism
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Most nodes of a graph; the distances are exact up to 7
    #[arg(long, default_value_t = 5)]
    max_nodes: usize,
    /// The reward
    #[arg(long, value_enum, default_value = "count")]
    reward: RewardName,
    /// Train on R(G) in place of |Aut(G)| R(G): samples R(G) / |Aut(G)|
    #[arg(long)]
    no_symmetry_correction: bool,
    /// Way in which the network is told how many automorphisms graphs have, and how each move changes that
    #[arg(long, value_enum, default_value = "seen")]
    symmetry: SymmetryName,
    /// Lengths of closed walks that the network is told how many there are of, at each node
    #[arg(long)]
    closed_walks: Option<usize>,
    #[command(flatten)]
    common: Common,
}

/// The reward by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum RewardName {
    /// Maximal cliques, best of size 4 and mostly of one colour
    Clique,
    /// Nodes with an even number of differently coloured neighbours
    Even,
    /// Numbers of nodes of each colour
    Count,
}

/// Symmetry as a network is told of it, by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SymmetryName {
    /// The number of automorphisms
    Seen,
    /// An upper bound by colour refinement
    Refined,
    /// Nothing
    Unseen,
}

impl SymmetryName {
    fn symmetry(self) -> Symmetry {
        match self {
            Self::Seen => Symmetry::Seen,
            Self::Refined => Symmetry::Refined,
            Self::Unseen => Symmetry::Unseen,
        }
    }
}

/// The network of growth up to isomorphism.
pub(super) fn network(run: &Run<'_>, symmetry: SymmetryName, closed_walks: Option<usize>) -> GraphNetConfig {
    GraphNetConfig {
        conv: ConvKind::Gin,
        layers: run.common.layers.unwrap_or(5),
        embedding: run.common.embedding.unwrap_or(64),
        identity: false,
        pair_walks: Some(3),
        closed_walks,
        global: true,
        backward: run.shared_backward(),
        symmetry: symmetry.symmetry(),
        estimators: run.common.objective.estimators(),
        ..GraphNetConfig::default()
    }
}

/// Final samples of which the share of valid graphs is reported.
const SAMPLES: usize = 10_000;
/// Graphs on the sheet.
const SHOWN: usize = 24;

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let title = format!("coloured graphs, at most {} nodes, reward {}", args.max_nodes, words(&args.reward));
    // Each action's probability must be right to a few per cent in every class, of which there are 4,303 up to six nodes and 72,297 up
    // to seven: many small steps, at a learning rate that falls to a hundredth.
    let steps = if args.max_nodes <= 6 { 10_000 } else { 40_000 };
    let recipe = Recipe { steps, batch: 32, epsilon: 0.05, lr_end: 0.01, ..Recipe::default() };
    let run = Run::begin(common, "colored_graphs", title, recipe)?;
    let env = ColoredGraphs::new(args.max_nodes)?.into_env().with_symmetry_correction(!args.no_symmetry_correction);
    let reward = match args.reward {
        RewardName::Clique => ColoredGraphReward::Clique,
        RewardName::Even => ColoredGraphReward::Even,
        RewardName::Count => ColoredGraphReward::Count,
    };
    let (mut rng, (device, float)) = (run.rng(), run.tensors());
    let network = network(&run, args.symmetry, args.closed_walks);
    let saved = Saved::ColoredGraphs { max_nodes: args.max_nodes, network: network.clone() };
    let policy = GraphPolicy(GraphNet::new(&env, network, device, float, &mut rng)?);
    let (objective, config) = (run.objective()?, run.config.clone());
    let trainer = Trainer::new(env, reward, policy, objective, config, rng)?.described_by(&saved)?;
    let trainer = run.replayed(trainer, ReplayBuffer::distinct)?;
    let Some(mut learned) = run.learn(trainer, "graphs up to isomorphism", Vec::new())? else { return Ok(()) };

    let trainer = &learned.trainer;
    let samples = sample(trainer.env(), trainer.policy(), SAMPLES, &mut trainer.evaluation_rng())?;
    // An independent look: petgraph's components in place of the environment's masks.
    let valid = samples.graphs().iter().filter(|graph| {
        let connected = graph.as_undirected().is_some_and(|g| petgraph::algo::connected_components(g) == 1);
        connected && graph.n_nodes() <= args.max_nodes
    });
    let report = &mut learned.report;
    report.set("valid_share", valid.count() as f64 / SAMPLES as f64);
    report.set("samples", SAMPLES);
    report.set("symmetry_corrected", !args.no_symmetry_correction);
    report.set("classes", learned.exact.as_ref().map(|exact| exact.graph.len()));
    if args.no_symmetry_correction {
        // log Z is that of R(G) / |Aut(G)|: there is nothing to compare it with.
        report.set("log_z_true", None::<f64>);
    }
    let drawing = GraphDrawing { labels: NodeLabels::None, ..GraphDrawing::default() };
    learned.draw(&drawing, samples.graphs(), SHOWN)?;
    learned.print()
}
