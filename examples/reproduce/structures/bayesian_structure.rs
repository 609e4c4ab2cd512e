//! A task that samples structures of a Bayesian network in proportion to their posterior probability. The
//! data are simulated, or read from a CSV file.

use clap::builder::Resettable::Reset;
use gfn::objective::{ModifiedDetailedBalance, NextExit};
use gfn_dags::{
    AdjacencyFeatures, BayesianStructure, EdgeTransformer, EdgeTransformerConfig, Marginals, PairMatrix,
    StructureConfig, expected_shd, most_probable,
};

use super::edges::{EdgeTable, exact_edges};
use super::problem::{Problem, ProblemArgs, Score};
use crate::prelude::*;

/// Train a policy to sample the structures of a Bayesian network from their posterior distribution
#[derive(Args)]
#[command(mut_arg("objective", |arg| arg.default_value("modified-db")))]
pub(crate) struct Structures {
    #[command(flatten)]
    problem: ProblemArgs,
    /// Network of the policy
    #[arg(long, value_parser = choice(NETWORKS), default_value = "mlp")]
    policy: Selection<Network>,
    /// Number of steps between two updates of the target network of modified-db; 0 for no target network
    #[arg(long, default_value_t = 0)]
    lag: usize,
    /// Number of final samples, if there are too many graphs to list all of them
    #[arg(long, default_value_t = 5_000)]
    graphs: usize,
    #[command(flatten)]
    common: Common,
}

/// Learn the probability of each edge between the variables of a CSV file. This is bayesian-structure with
/// more training steps and samples
#[derive(Args)]
#[command(
    mut_arg("data", |arg| arg.long(Reset).value_name("FILE").required(true)),
    mut_arg("nodes", |arg| arg.hide(true)),
    mut_arg("edges", |arg| arg.hide(true)),
    mut_arg("graphs", |arg| arg.default_value("10000"))
)]
pub(crate) struct StructuresOfFile {
    #[command(flatten)]
    task: Structures,
}

impl Task for StructuresOfFile {
    fn run(&self) -> Result<()> {
        self.task.run_steps(Some(10_000))
    }
}

/// A network of a policy on acyclic graphs.
#[derive(Clone, Copy)]
enum Network {
    Perceptron,
    Messages(ConvKind),
    Pairs,
}

const NETWORKS: &[Choice<Network>] = &[
    ("mlp", Network::Perceptron, "A perceptron on the adjacency matrix"),
    ("gnn", Network::Messages(ConvKind::Directed), "Messages along edges between numbered nodes"),
    (
        "graph-transformer",
        Network::Messages(ConvKind::Transformer { heads: 4 }),
        "Attention along edges, four heads",
    ),
    ("transformer", Network::Pairs, "Linear attention between the pairs of nodes, as in DAG-GFlowNet"),
];

/// The largest number of nodes for which all acyclic graphs are listed.
const MOST_LISTED: usize = 5;
/// The largest number of graphs that are listed. There are 29,281 acyclic graphs of five nodes.
const EXACT_LIMIT: usize = 30_000;

impl Structures {
    /// Returns an error if a given flag has no effect in combination with the other flags.
    fn check(&self) -> Result<()> {
        if self.common.objective.name != "modified-db" {
            refuse(&["--lag"], "a command without this flag, or with --objective modified-db")?;
        }
        let is_uniform = self.common.backward.is_none_or(|backward| backward.name == "uniform");
        if !is_uniform && self.policy.name == "transformer" {
            refuse(&["--backward"], "--backward uniform, or --policy mlp, gnn or graph-transformer")?;
        }
        if self.problem.score == Score::Bde {
            refuse(
                &["--log"],
                "a command without this flag, or with --score bge or bic, because bde uses only the order of \
                 numbers, which logarithms don't change",
            )?;
        }
        Ok(())
    }
}

impl Task for Structures {
    fn run(&self) -> Result<()> {
        self.run_steps(None)
    }
}

impl Structures {
    /// Runs the task. `steps` is the default of `--steps`; `None` for a number that depends on the problem.
    fn run_steps(&self, steps: Option<usize>) -> Result<()> {
        self.check()?;
        let common = &self.common;
        let recipe = Recipe {
            steps: steps.unwrap_or(4_000),
            batch: 128,
            replay: 10_000,
            buffer: NEWEST,
            epsilon: 0.5,
            exact_up_to: EXACT_LIMIT,
            // Measuring all 29,281 graphs is cheap compared with the thousands of steps between two
            // measurements.
            measure_up_to: EXACT_LIMIT,
            samples: 0,
            ..Recipe::default()
        };
        let mut run = Run::begin(common, recipe)?;
        let mut rng = run.rng();
        let problem = self.problem.problem(&mut rng)?;
        let n = problem.names.len();
        if n > MOST_LISTED {
            run.recipe.steps = steps.unwrap_or(2_000);
            run.config = common.trainer(&run.recipe);
        }
        let structures = BayesianStructure::new(StructureConfig::new(n))?;
        let env = structures.env().clone();
        let device = run.device;
        let float = Kind::Float;
        let (policy, network): (Box<dyn Policy<GraphEnv> + Send>, Value) = match self.policy.value {
            Network::Perceptron => {
                let config = common.perceptron(BackwardPolicy::Uniform);
                let features = AdjacencyFeatures::new(n);
                let network = json!(config);
                (Box::new(MlpPolicy::new(&env, features, config, device, float, &mut rng)?), network)
            }
            Network::Messages(conv) => {
                let config = common.graph_net(1, 128, BackwardPolicy::Uniform);
                let config = GraphNetConfig { conv, identity: true, ..config };
                let network = json!(config);
                (Box::new(GraphPolicy(GraphNet::new(&env, config, device, float, &mut rng)?)), network)
            }
            Network::Pairs => {
                let mut config =
                    EdgeTransformerConfig { estimators: common.estimators(), ..Default::default() };
                config.layers = common.layers.unwrap_or(config.layers);
                config.embedding = common.embedding.unwrap_or(config.embedding);
                let network = json!(config);
                (Box::new(GraphPolicy(EdgeTransformer::new(&env, config, device, float, &mut rng)?)), network)
            }
        };
        if self.lag > 0 {
            run.objective = || Ok(Box::new(ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork }));
        }
        let reward = problem.reward(&env)?;
        // The exact edge probabilities are computed before training, so that an error in the scores is
        // reported early.
        let is_summed = n > MOST_LISTED && members::is_first();
        let edges = if is_summed { exact_edges(&structures, &reward)? } else { None };
        let task =
            json!({ "title": problem.title, "seed": common.seed, "nodes": n, "policy": self.policy.name });
        let description = run.describe(task, &network);
        let mut trainer = run.trainer(env, reward, policy, rng, &description)?;
        if self.lag > 0 {
            trainer = trainer.with_target_network(self.lag)?;
        }
        run.learn(trainer, "graphs", Vec::new(), |report, trainer, exact| {
            let findings = match exact {
                Some(exact) => Findings::from_exact(&problem, exact)?,
                None => {
                    let graphs = evaluated(trainer, self.graphs)?;
                    Findings::new(&problem, graphs, None, edges.map(|summed| (summed.edge, summed.log_z)))?
                }
            };
            findings.write(common)?;
            findings.print();
            findings.report(report)
        })
    }
}

/// The number of graphs in the drawn picture.
const SHOWN: usize = 8;
/// The largest number of nodes for which graphs are drawn. Larger graphs are unreadable.
const MOST_DRAWN_NODES: usize = 30;
/// The smallest probability of an edge in the graph in the DOT language.
const PROBABLE: f64 = 0.5;

/// The learned distribution of graphs. The distribution is given by all graphs with their probabilities, or
/// by samples.
struct Findings<'a> {
    problem: &'a Problem,
    states: GraphStates,
    probs: Option<Vec<f64>>,
    learned: Marginals,
    exact_edges: Option<PairMatrix>,
    /// The exact probabilities of edges, paths and Markov blankets; `None` unless all graphs are listed.
    exact: Option<Marginals>,
    top: Vec<(usize, f64)>,
    log_z_true: Option<f64>,
}

impl<'a> Findings<'a> {
    /// Builds the findings from all graphs and the policy's exact probabilities.
    fn from_exact(problem: &'a Problem, exact: &Exact<GraphEnv>) -> Result<Self> {
        let states = exact.graph.states().clone();
        let probs = Some(exact.probs.clone());
        let target = Marginals::from_graphs(&states, Some(&exact.target.probs))?;
        let edges = (target.edge.clone(), exact.target.log_z);
        Ok(Self { exact: Some(target), ..Self::new(problem, states, probs, Some(edges))? })
    }

    /// Builds the findings from graphs. If `probs` is given, `states` are all graphs, and `probs` their
    /// probabilities. Otherwise `states` are samples. `exact_edges` holds the exact edge probabilities and
    /// log Z, if these are known.
    fn new(
        problem: &'a Problem,
        states: GraphStates,
        probs: Option<Vec<f64>>,
        exact_edges: Option<(PairMatrix, f64)>,
    ) -> Result<Self> {
        let (exact_edges, log_z_true) = exact_edges.unzip();
        let learned = Marginals::from_graphs(&states, probs.as_deref())?;
        let top = most_probable(&states, probs.as_deref(), SHOWN)?;
        Ok(Self { problem, learned, exact_edges, exact: None, log_z_true, top, states, probs })
    }

    /// Adds entries about edges, paths and Markov blankets to the report. An entry is null if its value is
    /// unknown.
    fn report(&self, report: &mut Report) -> Result<()> {
        let learned = &self.learned;
        let exact = self.exact.as_ref();
        for (name, learned, exact) in [
            ("edge", &learned.edge, self.exact_edges.as_ref()),
            ("path", &learned.path, exact.map(|exact| &exact.path)),
            ("markov_blanket", &learned.markov_blanket, exact.map(|exact| &exact.markov_blanket)),
        ] {
            let pearson = exact.map(|exact| learned.pearson(exact)).transpose()?.flatten();
            report.set(&format!("{name}_pearson"), pearson);
            report.set(&format!("{name}_rmse"), exact.map(|exact| learned.rmse(exact)).transpose()?);
        }
        let truth = self.problem.truth.as_ref().filter(|truth| !truth.is_empty());
        let found = truth.map(|truth| learned.edge.detection(truth)).transpose()?;
        let best =
            truth.zip(self.exact_edges.as_ref()).map(|(truth, edges)| edges.detection(truth)).transpose()?;
        let shd = truth.map(|truth| expected_shd(&self.states, self.probs.as_deref(), truth)).transpose()?;
        report.extend(json!({ "expected_edges": learned.expected_edges, "expected_shd": shd,
            "true_edges": self.problem.truth.as_ref().map(Vec::len), "log_z_true": self.log_z_true,
            "auroc": found.map(|found| found.auroc), "auprc": found.map(|found| found.auprc),
            "auroc_exact": best.map(|best| best.auroc), "auprc_exact": best.map(|best| best.auprc) }));
        report.panels.extend(self.panels());
        Ok(())
    }

    /// Returns the panels of the report: heat maps of edge probabilities, and plots of learned against exact
    /// probabilities of edges, paths and Markov blankets.
    fn panels(&self) -> Vec<Panel> {
        let n = self.problem.names.len();
        // A heat map begins with its lowest row. The rows are reversed, so that the map looks like a matrix:
        // sources run from top to bottom, and targets from left to right.
        let names = &self.problem.names;
        let map = |title: &str, edges: &PairMatrix| {
            Panel::heat_map(title, n, edges.values().chunks(n).rev().flatten().copied(), 1.0)
                .labels("to", "from")
                .colour_label("probability")
                .names(names.iter().rev().cloned(), names.iter().cloned())
        };
        let mut panels = vec![map(&format!("edges, {}", self.origin()), &self.learned.edge)];
        let mut against = |title: &str, exact: &PairMatrix, learned: &PairMatrix| {
            panels.push(Panel::learned_against_target(
                title,
                exact.off_diagonal().into_iter().zip(learned.off_diagonal()),
            ));
        };
        if let Some(exact) = &self.exact_edges {
            against("marginals of edges", exact, &self.learned.edge);
        }
        if let Some(exact) = &self.exact {
            against("marginals of paths", &exact.path, &self.learned.path);
            against("marginals of Markov blankets", &exact.markov_blanket, &self.learned.markov_blanket);
        }
        panels.extend(self.exact_edges.as_ref().map(|exact| map("edges, exact", exact)));
        panels
    }

    /// Writes the edge probabilities as CSV, with a line for each pair of variables. `low` and `high` are the
    /// ends of the interval for the noise of sampling. Unknown numbers are empty.
    fn write_edges(&self, path: &Path) -> Result<()> {
        let wrong = |error: csv::Error| Error::file(path, error, "give a path of a file that can be written");
        let learned = &self.learned.edge;
        let mut columns = [Some(learned.clone()), None, None, self.exact_edges.clone()];
        if self.probs.is_none() {
            let (low, high) = learned.intervals(self.states.len())?;
            (columns[1], columns[2]) = (Some(low), Some(high));
        }
        let mut table = csv::Writer::from_path(path).map_err(wrong)?;
        table.write_record(["from", "to", "learned", "low", "high", "exact"]).map_err(wrong)?;
        let names = &self.problem.names;
        for (a, from) in names.iter().enumerate() {
            for (b, to) in names.iter().enumerate().filter(|(b, _)| *b != a) {
                let number = |column: &Option<PairMatrix>| column.as_ref().map(|p| p.get(a, b).to_string());
                let numbers = columns.iter().map(|column| number(column).unwrap_or_default());
                table.write_record([from, to].into_iter().cloned().chain(numbers)).map_err(wrong)?;
            }
        }
        table.flush().map_err(|source| Error::io(path, source))
    }

    /// Writes the edge probabilities to a CSV file, and draws the most probable graphs.
    fn write(&self, common: &Common) -> Result<()> {
        let names = &self.problem.names;
        common.write("edge_marginals.csv", |path| self.write_edges(path))?;
        let dot = self.learned.edge.to_dot(names, PROBABLE)?;
        common.write("edges.dot", |path| {
            std::fs::write(path, &dot).map_err(|source| Error::io(path, source))
        })?;
        if self.problem.names.len() > MOST_DRAWN_NODES {
            return Ok(());
        }
        let rows: Vec<usize> = self.top.iter().map(|(row, _)| *row).collect();
        let graphs = self.states.select(&rows);
        let labels = NodeLabels::Names(self.problem.names.clone());
        let drawing = GraphDrawing { layout: Layout::Circle, labels, side: 260.0 };
        let title = match self.probs {
            Some(_) => "most probable graphs",
            None => "most frequent graphs",
        };
        let mut sheet = PictureSheet::new(title, drawing.side);
        for (graph, &(_, p)) in graphs.into_graphs().into_iter().zip(&self.top) {
            let edges = format!("{} edges", graph.n_edges());
            sheet = sheet.cell(drawing.draw(&graph), [self.probability(p), edges]);
        }
        common.draw("graphs", |path| sheet.write(path))
    }

    /// Returns the name of the learned probabilities in titles: `learned` if they are exact, otherwise a text
    /// with the number of samples of which they are shares.
    fn origin(&self) -> String {
        match &self.probs {
            Some(_) => "learned".into(),
            None => format!("shares of {} samples", self.states.len()),
        }
    }

    /// Returns the text for a graph's probability. If probabilities are shares of samples, the text tells how
    /// many of the samples are this graph.
    fn probability(&self, p: f64) -> String {
        match &self.probs {
            Some(_) => format!("p = {p:.4}"),
            None => format!("{:.0} of {} samples", p * self.states.len() as f64, self.states.len()),
        }
    }

    /// Prints a table of edge probabilities, and the most probable graphs.
    fn print(&self) {
        let names = &self.problem.names;
        for &(row, p) in &self.top {
            let edge = |(a, b): (u32, u32)| format!("{} -> {}", names[a as usize], names[b as usize]);
            let edges: Vec<String> = self.states.graphs()[row].edges().map(edge).collect();
            tell(format_args!("{}: {}", self.probability(p), edges.join(", ")));
        }
        let samples = self.probs.is_none().then(|| self.states.len());
        let table =
            EdgeTable { names, samples, learned: &self.learned.edge, exact: self.exact_edges.as_ref() };
        tell(format_args!("\n{table}"));
    }
}
