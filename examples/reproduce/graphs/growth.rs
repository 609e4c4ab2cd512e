//! Tasks that grow graphs up to isomorphism. The first task samples all graphs equally often. The second task
//! samples connected graphs of two-coloured nodes in proportion to a reward.

use gfn::nn::SymmetryInput;
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs as ColoredGrowth};
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig};

use crate::prelude::*;

/// Train a graph network to sample all graphs up to isomorphism equally often
#[derive(Args)]
pub(crate) struct AllGraphs {
    /// Largest number of nodes. There are 1,253 graphs of up to 7 nodes, 13,599 of up to 8, and 288,267 of up
    /// to 9
    #[arg(long, default_value_t = 7)]
    max_nodes: usize,
    #[command(flatten)]
    common: Common,
}

/// The number of graphs in the drawn picture.
const SHOWN: usize = 24;

impl Task for AllGraphs {
    fn run(&self) -> Result<()> {
        let run = Run::begin(&self.common, Recipe { exact_up_to: 300_000, ..recipe(10_000) })?;
        let config = GraphBuildingConfig::new(GraphKind::Undirected, self.max_nodes);
        let env = GraphBuilding::new(config)?.into_env();
        let reward = |states: &GraphStates, _: Option<&Tensor>| Ok(vec![0.0; states.graphs().len()]);
        let network = network(&self.common, SymmetryInput::Refined);
        let task = json!({ "max_nodes": self.max_nodes });
        let trainer = run.graph_trainer(env, reward, network, task)?;
        learn(&run, trainer, |_| ())
    }
}

/// Returns the training defaults of the tasks `all-graphs` and `colored-graphs`. Training has many small
/// steps, because the probability of each action must be right to a few per cent for every isomorphism class.
fn recipe(steps: usize) -> Recipe {
    Recipe { steps, batch: 32, epsilon: 0.05, lr_end: 0.01, ..Recipe::default() }
}

/// Returns the settings of the network that the tasks `all-graphs` and `colored-graphs` use.
fn network(common: &Common, symmetry: SymmetryInput) -> GraphNetConfig {
    GraphNetConfig {
        conv: ConvKind::Gin,
        identity: false,
        pair_walks: Some(3),
        global: true,
        symmetry,
        ..common.graph_net(5, 64, BackwardPolicy::SharedTorso)
    }
}

/// Trains the policy, reports the number of isomorphism classes, and draws the most probable graphs.
fn learn(run: &Run<'_>, trainer: Trainer<GraphEnv>, add: impl FnOnce(&mut Report)) -> Result<()> {
    run.learn(trainer, "graphs up to isomorphism", Vec::new(), |report, trainer, exact| {
        report.set("classes", exact.map(|exact| exact.graph.len()));
        add(report);
        let samples = evaluated(trainer, SHOWN)?;
        let drawing = GraphDrawing { labels: NodeLabels::None, ..GraphDrawing::default() };
        run.draw_graphs(exact, &drawing, samples.graphs(), SHOWN)
    })
}

/// Train a graph network to grow connected graphs with nodes of two colours, up to isomorphism
#[derive(Args)]
pub(crate) struct ColoredGraphs {
    /// Largest number of nodes. The reported distances are exact for up to 7 nodes
    #[arg(long, default_value_t = 5)]
    max_nodes: usize,
    /// Reward of a graph
    #[arg(long, value_parser = choice(REWARDS), default_value = "count")]
    reward: Selection<ColoredGraphReward>,
    /// Train on the reward R(G) instead of |Aut(G)| R(G). The policy then samples in proportion to R(G) /
    /// |Aut(G)|
    #[arg(long)]
    no_symmetry_correction: bool,
    #[command(flatten)]
    common: Common,
}

const REWARDS: &[Choice<ColoredGraphReward>] = &[
    ("clique", ColoredGraphReward::Clique, "Maximal cliques, best of size 4 and mostly of one colour"),
    ("even", ColoredGraphReward::Even, "Nodes with an even number of differently coloured neighbours"),
    ("count", ColoredGraphReward::Count, "Numbers of nodes of each colour"),
];

impl Task for ColoredGraphs {
    fn run(&self) -> Result<()> {
        // There are 4,303 isomorphism classes of graphs with up to six nodes, and 72,297 with up to seven
        // nodes. Training on the larger set needs more steps.
        let steps = if self.max_nodes <= 6 { 10_000 } else { 40_000 };
        let run = Run::begin(&self.common, recipe(steps))?;
        let corrects = !self.no_symmetry_correction;
        let env = ColoredGrowth::new(self.max_nodes)?.into_env().with_symmetry_correction(corrects);
        let network = network(&self.common, SymmetryInput::Exact);
        let task = json!({ "max_nodes": self.max_nodes, "corrects_symmetry": corrects });
        let trainer = run.graph_trainer(env, self.reward.value, network, task)?;
        learn(&run, trainer, |report| {
            report.set("symmetry_corrected", corrects);
            if !corrects {
                // Without the correction the target is R(G) / |Aut(G)|, whose log Z is unknown, so no true
                // log Z is reported.
                report.set("log_z_true", None::<f64>);
            }
        })
    }
}
