//! Structures of a Bayesian network in proportion to their posterior probability, from simulated data or a
//! CSV file.

use gfn::objective::{ModifiedDetailedBalance, NextExit};
use gfn_dags::{AdjacencyFeatures, BayesianStructure, EdgeTransformer, EdgeTransformerConfig, StructureConfig};

use super::dag_from_csv::exact_edges;
use super::findings::Findings;
use super::problem::ProblemArgs;
use crate::prelude::*;

/// Train a policy to sample the structures of a Bayesian network from their posterior
#[derive(Args)]
#[command(mut_arg("objective", |arg| arg.default_value("modified-db")))]
pub(crate) struct Structures {
    #[command(flatten)]
    problem: ProblemArgs,
    /// The network
    #[arg(long, value_parser = choice(NETWORKS), default_value = "mlp")]
    policy: Selection<Network>,
    /// Steps after which modified-db's copy of the policy catches up; 0 for none
    #[arg(long, default_value_t = 0)]
    lag: usize,
    /// Graphs to sample if not all can be listed
    #[arg(long, default_value_t = 5_000)]
    graphs: usize,
    #[command(flatten)]
    common: Common,
}

/// A network of structures.
#[derive(Clone, Copy)]
enum Network {
    Perceptron,
    Messages(ConvKind),
    Pairs,
}

const NETWORKS: &[Choice<Network>] = &[
    ("mlp", Network::Perceptron, "A perceptron on the adjacency matrix"),
    ("gnn", Network::Messages(ConvKind::Directed), "Messages along edges between numbered nodes"),
    ("graph-transformer", Network::Messages(ConvKind::Transformer { heads: 4 }), "Attention along edges, four heads"),
    ("transformer", Network::Pairs, "Linear attention between the pairs of nodes, as in DAG-GFlowNet"),
];

/// Nodes up to which all graphs are listed, and the limit of their number.
const MOST_LISTED: usize = 5;
const EXACT_LIMIT: usize = 30_000;

impl Structures {
    /// Refuses flags that would have no effect beside the others.
    fn check(&self) -> Result<()> {
        if self.common.objective.name != "modified-db" {
            refuse(&["--lag"], "0, or --objective modified-db")?;
        }
        let is_uniform = self.common.backward.is_none_or(|backward| backward.name == "uniform");
        if !is_uniform && self.policy.name == "transformer" {
            refuse(&["--backward"], "uniform, or --policy mlp, gnn or graph-transformer")?;
        }
        if self.problem.score.name == "bde" {
            refuse(
                &["--log"],
                "--score bge or bic beside it (bde cuts numbers by their order, which logarithms keep)",
            )?;
        }
        Ok(())
    }
}

impl Task for Structures {
    fn run(&self) -> Result<()> {
        self.check()?;
        let common = &self.common;
        let recipe = Recipe {
            steps: 4_000,
            batch: 128,
            replay: 10_000,
            buffer: NEWEST,
            epsilon: 0.5,
            exact_up_to: EXACT_LIMIT,
            // A measurement of 29,281 graphs is cheap beside the thousands of steps between two of them.
            measure_up_to: EXACT_LIMIT,
            samples: 0,
            ..Recipe::default()
        };
        let mut run = Run::begin(common, "bayesian_structure", String::new(), recipe)?;
        let mut rng = run.rng();
        let problem = self.problem.problem(&mut rng)?;
        let n = problem.names.len();
        if n > MOST_LISTED {
            run.recipe.steps = 2_000;
            run.config = common.trainer(&run.recipe);
        }
        run.title.clone_from(&problem.title);
        let structures = BayesianStructure::new(StructureConfig::new(n))?;
        let (env, device, float) = (structures.env().clone(), run.device, Kind::Float);
        let (policy, network): (Box<dyn Policy<GraphEnv> + Send>, Value) = match self.policy.value {
            Network::Perceptron => {
                let (config, features) = (common.perceptron(BackwardPolicy::Uniform), AdjacencyFeatures::new(n));
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
                let mut config = EdgeTransformerConfig { estimators: common.estimators(), ..Default::default() };
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
        // The exact edges don't wait for training: an error of the scores shows now.
        let is_summed = n > MOST_LISTED && members::is_first();
        let edges = if is_summed { exact_edges(&structures, &reward)? } else { None };
        let description = run.describe(json!({ "title": problem.title, "seed": common.seed }), &network);
        let mut trainer = run.trainer(env, reward, policy, rng, &description)?;
        if self.lag > 0 {
            trainer = trainer.with_target_network(self.lag)?;
        }
        run.learn(trainer, "graphs", Vec::new(), |report, trainer, exact| {
            let findings = match exact {
                Some(exact) => Findings::listed(&problem, exact)?,
                None => {
                    let rng = &mut trainer.evaluation_rng();
                    let graphs = sample(trainer.env(), trainer.policy(), self.graphs, rng)?;
                    Findings::sampled(&problem, edges, graphs)?
                }
            };
            findings.write(common)?;
            findings.print();
            findings.report(report)
        })
    }
}
