//! Growth up to isomorphism: connected graphs of two-coloured nodes, with and without the correction for symmetry.

use clap::{Parser, ValueEnum};
use gfn::metrics::sample_objects;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig, Symmetry};
use gfn::policy::GraphPolicy;
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn::{Result, Rng};
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use gfn_plot::{GraphSheet, Layout, NodeLabels};
use serde_json::json;

use crate::cli::{
    Common, Defaults, Distance, Exact, Report, SAMPLES as EVALUATED, Saved, draw_sheet, sampled, train_with_actors,
    value_words,
};

/// Train a GNN policy to grow two-coloured graphs, up to isomorphism
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Most nodes of a graph; the distances are exact up to 7
    #[arg(long, default_value_t = 5)]
    max_nodes: usize,
    /// What is rewarded
    #[arg(long, value_enum, default_value = "count")]
    reward: RewardName,
    /// Train on R(G) in place of |Aut(G)| R(G): samples R(G) / |Aut(G)|
    #[arg(long)]
    no_symmetry_correction: bool,
    /// Don't tell the network how many automorphisms graphs have, and how each move changes that
    #[arg(long)]
    blind_to_symmetry: bool,
    #[command(flatten)]
    common: Common,
}

/// What is rewarded.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum RewardName {
    /// Maximal cliques, best of size 4 and mostly of one colour
    Clique,
    /// Nodes with an even number of differently coloured neighbours
    Even,
    /// Numbers of nodes of each colour
    Count,
}

impl From<RewardName> for ColoredGraphReward {
    fn from(name: RewardName) -> Self {
        match name {
            RewardName::Clique => Self::Clique,
            RewardName::Even => Self::Even,
            RewardName::Count => Self::Count,
        }
    }
}

/// States up to which the distribution is exact: 7 nodes.
const EXACT_LIMIT: usize = 100_000;
/// Final samples of which the share of valid graphs is reported.
const SAMPLES: usize = 10_000;
/// Graphs on the sheet.
const SHOWN: usize = 24;

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let runtime = common.runtime()?;
    let env = ColoredGraphs::new(args.max_nodes)?.with_symmetry_correction(!args.no_symmetry_correction);
    let reward = ColoredGraphReward::from(args.reward);
    // Each action's probability must be right to a few per cent in every class, of which there are 4,303 up to six nodes and 72,297 up
    // to seven: many small steps, at a learning rate that falls to a hundredth.
    let steps = match args.max_nodes {
        0..=6 => 10_000,
        _ => 40_000,
    };
    let defaults = Defaults { steps, batch: 32, epsilon: 0.05, lr_end: 0.01, ..Defaults::default() };
    let mut rng = Rng::seeded(common.seed);
    let network = GraphNetConfig {
        conv: ConvKind::Gin,
        layers: common.layers.unwrap_or(5),
        embedding: common.embedding.unwrap_or(64),
        identity: false,
        pair_walks: Some(3),
        global: true,
        backward: common.backward.map_or(BackwardPolicy::SharedTorso, Into::into),
        symmetry: if args.blind_to_symmetry { Symmetry::Unseen } else { Symmetry::Seen },
        estimators: common.objective.estimators(),
        ..GraphNetConfig::default()
    };
    let saved = Saved::ColoredGraphs { max_nodes: args.max_nodes, network: network.clone() };
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let exact = Exact::up_to(EXACT_LIMIT, common, &env, &reward)?;
    let config = common.trainer(&defaults);
    let objective = common.objective.build()?;
    let trainer = Trainer::new(env, reward, GraphPolicy(net), objective, config, rng)?.described_by(&saved)?;
    let trainer = common.replayed(trainer, &defaults, ReplayBuffer::distinct)?;
    let look = |trainer: &Trainer<_, _>| Exact::look(exact.as_ref(), trainer);
    let Some((trainer, trained)) = train_with_actors(trainer, common, ("colored_graphs", &defaults), look, Vec::new())?
    else {
        return Ok(());
    };

    let samples = sample_objects(trainer.env(), trainer.policy(), SAMPLES, &mut trainer.evaluation_rng())?;
    let graphs = samples.graphs();
    // An independent look: petgraph's components in place of the environment's masks.
    let valid = graphs.iter().filter(|graph| {
        let connected = graph.as_undirected().is_some_and(|g| petgraph::algo::connected_components(g) == 1);
        connected && graph.n_nodes() <= args.max_nodes
    });
    let mut extra = vec![
        ("valid_share", json!(valid.count() as f64 / SAMPLES as f64)),
        ("samples", json!(SAMPLES)),
        ("symmetry_corrected", json!(!args.no_symmetry_correction)),
    ];
    let mut distance = Distance::not_listed(common, EXACT_LIMIT);
    let mut panels = Vec::new();
    let sheet = |title| {
        let sheet = GraphSheet::new(title).layout(Layout::Force).labels(NodeLabels::None);
        sheet.legend(["colour 0", "colour 1"], [""; 0])
    };
    match &exact {
        Some(exact) => {
            let (learned, probs) = exact.learned(&trainer)?;
            distance = learned;
            extra.extend(exact.modes(&probs)?);
            extra.push(("classes", json!(exact.graph.len())));
            panels.push(exact.panel("graphs up to isomorphism", &probs));
            exact.draw(common, sheet("most probable graphs"), &probs, SHOWN)?;
        }
        None => {
            let mut sheet = sheet("samples");
            for graph in graphs.iter().take(SHOWN) {
                let size = format!("{} nodes, {} edges", graph.n_nodes(), graph.n_edges());
                sheet = sheet.cell(graph.clone(), [size, format!("log R = {:.2}", reward.of(graph)?)]);
            }
            draw_sheet(common, &sheet)?;
            extra.extend([("modes_found", json!(null)), ("modes_total", json!(null))]);
            if !common.is_frozen() {
                extra.extend(sampled(&trainer, EVALUATED)?);
            }
        }
    }
    // Without the correction log Z is that of R(G) / |Aut(G)|: there is nothing to compare it with.
    let corrected = exact.as_ref().filter(|_| !args.no_symmetry_correction);
    let log_z_true = corrected.map(|exact| exact.target.log_z);
    let title = format!("coloured graphs, at most {} nodes, reward {}", args.max_nodes, value_words(&args.reward));
    Report { title, log_z_true, distance, extra, panels }.print(common, &trained)
}
