//! Combinatorial problems on input graphs. One policy is trained on many graphs, and is measured on graphs
//! that it wasn't trained on.

use gfn::distribution::Exploration;
use gfn::train::TransitionBatches;
use gfn_extras::condition::Condition;
use gfn_gym::graph_problems::{
    GraphProblem, Instances, Problem, RbModel, SizeReward, barabasi_albert, erdos_renyi,
};
use gfn_solver::SearchSource;

use super::held_out::Small;
use crate::prelude::*;

/// Train one policy to solve a problem on many graphs, and measure it on other graphs
#[derive(Args)]
#[command(mut_arg("objective", |objective| objective.default_value("fl-subtb")))]
pub(crate) struct GraphProblems {
    /// Problem that the policy solves on each input graph
    #[arg(long, value_parser = choice(PROBLEMS), default_value = "independent-set")]
    pub(super) problem: Selection<Problem>,
    /// Random model that draws the input graphs
    #[arg(long, value_parser = choice(GRAPHS), default_value = "small")]
    graphs: Selection<Graphs>,
    /// Factor of a solution's size in its log-reward (negated if small solutions are better). The default
    /// is 2 with --graphs small, and 5 with other --graphs
    #[arg(long, visible_alias = "beta-to")]
    beta: Option<f64>,
    /// Value of --beta in the first step. The value then changes linearly, and reaches --beta after three
    /// quarters of the steps. With --any-beta, one end of the range of values
    #[arg(long)]
    beta_from: Option<f64>,
    /// Train one policy for all values of beta between --beta-from and --beta; needs --graphs small. The
    /// value of beta for a sample is an input of the policy
    #[arg(long, requires = "beta_from")]
    any_beta: bool,
    /// Number of updates per step, each on 64 transitions, instead of one update on whole trajectories; for
    /// the objectives fl-db and db
    #[arg(long)]
    updates: Option<usize>,
    /// Replace half of each batch by solutions that this number of rounds of local search has improved
    #[arg(long)]
    improve: Option<usize>,
    /// Number of graphs that are generated for training. The default is 4,000 with --graphs small, and 1,000
    /// with other --graphs
    #[arg(long)]
    train: Option<usize>,
    /// Number of graphs that are generated for measurements. The default is 50 with --graphs small, and 100
    /// with other --graphs
    #[arg(long)]
    held_out: Option<usize>,
    /// Number of samples for each graph, of which the best is compared with the optimum. Not used with
    /// --graphs small
    #[arg(long, default_value_t = 20)]
    pub(super) best_of: usize,
    /// Temperature of these samples: the number by which the policy's logits are divided. Numbers below 1
    /// give better samples on average, which differ less. Not used with --graphs small
    #[arg(long, default_value_t = 1.0)]
    pub(super) sample_temperature: f64,
    /// Largest number of branches of the exact search on each graph; 0 for no exact search. Not used with
    /// --graphs small
    #[arg(long, default_value_t = 200_000_000)]
    pub(super) branches: u64,
    /// Random model of the graphs for measurements, by default that of --graphs. Not used with --graphs small
    #[arg(long, value_parser = choice(GRAPHS))]
    measured_on: Option<Selection<Graphs>>,
    /// File for the measurements of each graph, with the graph as graph6: a JSON line per graph, as
    /// scripts/exact_solutions.py reads them. Not used with --graphs small
    #[arg(long)]
    pub(super) per_graph: Option<PathBuf>,
    /// Layers of message passing. The default is gin-virtual with --graphs small, and gin with other --graphs
    #[arg(long, value_parser = choice(CONVS))]
    conv: Option<Selection<ConvKind>>,
    /// Give the network the degree of each node as input
    #[arg(long)]
    degrees: bool,
    /// Give the network no messages along edges, as a negative control. The network then sees only which
    /// nodes are decided
    #[arg(long, conflicts_with_all = ["layers", "conv", "degrees"])]
    blind: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) const PROBLEMS: &[Choice<Problem>] = &[
    ("independent-set", Problem::IndependentSet, "Most nodes of which no two have an edge"),
    ("clique", Problem::Clique, "Most nodes of which any two have an edge"),
    ("dominating-set", Problem::DominatingSet, "Fewest nodes with an edge to each other node"),
    ("cut", Problem::Cut, "Two sides with most edges between them"),
];

const CONVS: &[Choice<ConvKind>] = &[
    ("gin", ConvKind::Gin, "Sums over neighbours"),
    ("gin-virtual", ConvKind::GinVirtual, "Sums over neighbours, and over the whole graph"),
    (
        "transformer",
        ConvKind::Transformer { heads: 4 },
        "Attention along edges and to a virtual node, four heads",
    ),
    ("gat", ConvKind::Gat { heads: 4 }, "GATv2: attention along edges, four heads"),
    (
        "gps",
        ConvKind::Gps { heads: 4 },
        "GPS: sums over neighbours beside attention to the whole graph, four heads",
    ),
];

/// The random model that draws the input graphs. `Small` draws Erdos-Renyi graphs with few nodes, `Rb` draws
/// graphs of the model RB on which large independent sets are hard to find, and `Ba` draws Barabasi-Albert
/// graphs; its field holds the smallest and the largest number of nodes.
#[derive(Clone, Copy)]
enum Graphs {
    Small,
    Rb(fn() -> RbModel),
    Ba([usize; 2]),
}

const GRAPHS: &[Choice<Graphs>] = &[
    (
        "small",
        Graphs::Small,
        "All of 6 nodes and random ones of 6 to 14; held out are random ones of 10 to 14: exact",
    ),
    (
        "rb",
        Graphs::Rb(RbModel::nodes_50_to_100),
        "RB graphs of 50 to 100 nodes: the best sample beside the optimum",
    ),
    ("rb-large", Graphs::Rb(RbModel::nodes_200_to_300), "RB graphs of 200 to 300 nodes"),
    ("rb-largest", Graphs::Rb(RbModel::nodes_800_to_1200), "RB graphs of 800 to 1,200 nodes"),
    ("ba", Graphs::Ba([50, 100]), "Barabasi-Albert graphs of 50 to 100 nodes, four edges a new node"),
    ("ba-large", Graphs::Ba([200, 300]), "Barabasi-Albert graphs of 200 to 300 nodes"),
    ("ba-largest", Graphs::Ba([800, 1_200]), "Barabasi-Albert graphs of 800 to 1,200 nodes"),
];

/// The smallest and the largest number of nodes of the graphs that `Graphs::Small` draws for training.
const TRAINED_NODES: [usize; 2] = [6, 14];
/// The smallest and the largest number of nodes of the graphs that `Graphs::Small` draws for measurements.
const HELD_OUT_NODES: [usize; 2] = [10, 14];
/// The probability of each edge of a graph that `Graphs::Small` draws.
const EDGE_PROBABILITY: f64 = 0.3;
/// The number of edges with which each new node of a Barabasi-Albert graph is attached.
const BA_ATTACHED: usize = 4;
/// The seed of the graphs on which policies are measured. The seed is fixed, so that runs with different
/// seeds are measured on the same graphs. Settings were tuned on the graphs of an earlier seed, so that the
/// measured graphs are new to both policy and settings.
const HELD_OUT_SEED: u64 = 0x7465_7374;
/// The number of transitions per update with `--updates`.
const TRANSITIONS: usize = 64;

impl Graphs {
    /// Draws `count` graphs. `nodes` holds the smallest and the largest number of nodes for `Graphs::Small`.
    /// The other variants ignore it.
    fn draw(self, count: usize, nodes: [usize; 2], rng: &mut Rng) -> Result<Instances> {
        let one = |k: usize| match self {
            Self::Small => erdos_renyi(nodes[0] + k % (nodes[1] - nodes[0] + 1), EDGE_PROBABILITY, rng),
            Self::Rb(model) => model().draw(rng),
            Self::Ba([least, most]) => barabasi_albert(least + rng.below(most - least + 1), BA_ATTACHED, rng),
        };
        Instances::new((0..count).map(one).collect::<Result<_>>()?)
    }
}

impl GraphProblems {
    /// Returns the graphs on which the policy is trained, and the held-out graphs on which it is measured.
    fn instances(&self) -> Result<[Instances; 2]> {
        let kind = self.graphs.value;
        let is_small = self.graphs.name == "small";
        let n_held_out = self.held_out.unwrap_or(if is_small { 50 } else { 100 });
        let n_train = self.train.unwrap_or(if is_small { 4_000 } else { 1_000 });
        let measured = self.measured_on.map_or(kind, |named| named.value);
        let held_out_rng = &mut Rng::seeded(HELD_OUT_SEED);
        let held_out = measured.draw(n_held_out, HELD_OUT_NODES, held_out_rng)?.distinct();
        let mut train = kind.draw(n_train, TRAINED_NODES, &mut Rng::seeded(self.common.seed).split())?;
        if is_small {
            train = Instances::all(6)?.and(train);
        }
        Ok([train.distinct().without(&held_out), held_out])
    }

    /// Returns how the measured samples are drawn.
    pub(super) fn exploration(&self) -> Result<Exploration> {
        Exploration::default().with_temperature(self.sample_temperature)
    }

    /// Returns an error if there is no graph or no sample to measure, and if a given flag has no effect in
    /// combination with the other flags.
    fn check(&self) -> Result<()> {
        if self.held_out == Some(0) || self.best_of == 0 {
            let expected = "at least 1 for both flags";
            return Err(Error::config("--held-out and --best-of", 0, expected));
        }
        let is_small = |named: Selection<Graphs>| named.name == "small";
        if is_small(self.graphs) || self.measured_on.is_some_and(is_small) {
            refuse(
                &["--measured-on", "--per-graph", "--sample-temperature"],
                "a command without this flag, or with large graphs for training and for measurements, \
                 because small graphs are measured by exact distances",
            )?;
        }
        self.exploration()?;
        if let Some(path) = &self.per_graph {
            // A wrong path is an error before training. An existing file stays until the new one is whole.
            try_file(path)?;
        }
        if self.graphs.name != "small" {
            refuse(
                &["--validate-every"],
                "a command without this flag, or with --graphs small, because no distance is measured during \
                 training on other graphs",
            )?;
            refuse(
                &["--any-beta"],
                "a command without this flag, or with --graphs small, because its results are measured by \
                 exact distances",
            )?;
        }
        Ok(())
    }
}

impl Task for GraphProblems {
    fn run(&self) -> Result<()> {
        self.check()?;
        let common = &self.common;
        let is_large = self.graphs.name != "small";
        let problem = self.problem.value;
        let reward = SizeReward::new(problem, self.beta.unwrap_or(if is_large { 5.0 } else { 2.0 }))?;
        let beta_from = self.beta_from.map(|from| SizeReward::new(problem, from)).transpose()?;
        let beta_from = beta_from.map(|from| from.beta());
        let least = beta_from.filter(|_| self.any_beta);
        let any_beta = least.map(|least| AnyBeta::new(problem, least, reward.beta())).transpose()?;
        let steps = if is_large { 3_000 } else { 40_000 };
        let recipe = Recipe { steps, batch: 32, epsilon: 0.05, lr_end: 0.01, ..Recipe::default() };
        let mut run = Run::begin(common, recipe)?;
        let [train, held_out] = self.instances()?;
        let env = GraphProblem::for_size(problem, &train)?.into_env();
        let conv = if is_large { ConvKind::Gin } else { ConvKind::GinVirtual };
        let mut network = GraphNetConfig {
            conv: self.conv.map_or(conv, |named| named.value),
            degrees: self.degrees,
            // The network gets no node labels, so that it generalises to other graphs.
            identity: false,
            global: true,
            // The network's outputs are multiplied by `unit` to give logits. `unit` grows with beta, because
            // differences of log-rewards are proportional to beta.
            unit: (reward.beta() / 5.0).max(1.0),
            ..common.graph_net(5, 64, BackwardPolicy::Uniform)
        };
        if self.blind {
            network.layers = 0;
        }
        if let Some(any) = &any_beta {
            network.estimators.n_conditions = any.conditioning.width() as i64;
            network.estimators.logit_scale = Some(MlpConfig { hidden: vec![32], ..MlpConfig::default() });
        }
        let task =
            json!({ "problem": self.problem.words(), "graphs": self.graphs.name, "beta": reward.beta() });
        if let Some(from) = beta_from.filter(|_| !self.any_beta) {
            let steps = (run.steps() * 3).div_ceil(4);
            run.config.reward_exponent = Schedule::Linear { from: from / reward.beta(), to: 1.0, steps };
        }
        let batches = |updates_per_draw| TransitionBatches { size: TRANSITIONS, updates_per_draw };
        run.config.transitions = self.updates.map(batches);
        let trainer = match &any_beta {
            Some(any) => run
                .graph_trainer(env, any.reward()?, network, task)?
                .with_conditions(any.conditioning.clone()),
            None => run.graph_trainer(env, reward, network, task)?,
        };
        let trainer = match self.improve {
            Some(rounds) => trainer.with_source(0.5, SearchSource::new(problem, rounds)?)?,
            None => trainer,
        };
        let sizes = json!({ "train_graphs": train.graphs().len(), "held_out_graphs": held_out.graphs().len(),
            "beta": reward.beta(), "blind": self.blind });
        if is_large {
            self.learn_large(&run, trainer, &held_out, sizes)
        } else {
            Small::new(problem, &held_out, reward, any_beta)?.learn(&run, trainer, sizes)
        }
    }
}

/// The settings of a policy that takes beta as input, for all values of beta between two numbers. Beta is the
/// log-reward of a solution per unit of the solution's size.
pub(super) struct AnyBeta {
    problem: Problem,
    conditioning: Conditioning,
    /// The values of beta at which the policy is measured.
    pub(super) measured: [f64; 3],
}

impl AnyBeta {
    fn new(problem: Problem, least: f64, most: f64) -> Result<Self> {
        let distribution = Temperature::Uniform { least, most };
        let conditioning =
            Conditioning::new(1)?.temperature(distribution, Encoding::Thermometer { bins: 16 })?;
        Ok(Self { problem, conditioning, measured: [least, 0.5 * (least + most), most] })
    }

    pub(super) fn reward(&self) -> Result<ConditionedReward<GraphStates>> {
        ConditionedReward::new(self.conditioning.clone(), vec![Arc::new(SizeReward::new(self.problem, 1.0)?)])
    }

    /// Returns the condition of one trajectory at this value of beta, as a tensor of shape `[1, C]`.
    pub(super) fn condition(&self, beta: f64) -> Result<Tensor> {
        self.conditioning.encode(&[Condition { beta, preferences: vec![1.0], focus: None }])
    }
}
