//! A task that samples structures of a Bayesian network in proportion to their posterior probability. The
//! data are simulated, or read from a CSV file.

use clap::builder::Resettable::Reset;
use gfn::objective::{MaximumLikelihood, ModifiedDetailedBalance, NextExit};
use gfn_dags::{AdjacencyFeatures, BayesianStructure, EdgeTransformer, EdgeTransformerConfig, OrderChain};

use super::edges::exact_edges;
use super::findings::Findings;
use super::methods::{FoundGraphs, METHODS, Origin, Search, chain_data, order_steps};
use super::problem::{Problem, ProblemArgs, Score};
use crate::prelude::*;
use crate::run::task_flags::is_given;

/// Train a policy to sample the structures of a Bayesian network from their posterior distribution
#[derive(Args)]
#[command(mut_arg("objective", |arg| arg.default_value("modified-db")))]
pub(crate) struct Structures {
    #[command(flatten)]
    problem: ProblemArgs,
    /// Method that samples structures. All but policy train nothing: --steps is then the number of steps of
    /// each of four Markov chains, a quarter of as many steps before the first sample not counted, or the
    /// number of restarts of greedy search. Chains make at least one step per graph, and order-mcmc a
    /// multiple of ten, so a smaller --steps is raised
    #[arg(long, value_parser = choice(METHODS), default_value = "policy")]
    by: Selection<Option<Search>>,
    /// Number of steps of each of four Markov chains over orders of the variables. The policy learns from the
    /// graphs of the chains by maximum likelihood, instead of from its own samples by --objective; 0 for the
    /// latter. The default is 500,000 for 6 to 20 variables, 20,000 for more if they have at most 12 million
    /// parent sets (see --max-parents); otherwise, and with --objective, --replay, --lag or --epsilon, 0
    #[arg(long)]
    chain_steps: Option<usize>,
    /// Network of the policy
    #[arg(long, value_parser = choice(NETWORKS), default_value = "mlp")]
    policy: Selection<Network>,
    /// Number of steps between two updates of the target network of modified-db; 0 for no target network
    #[arg(long, default_value_t = 0)]
    lag: usize,
    /// Number of final samples, if there are too many graphs to list all of them
    #[arg(long, default_value_t = 5_000, value_parser = at_least_one)]
    graphs: usize,
    /// Largest number of variables for which exact edge probabilities are summed, at most 20. Fourteen take
    /// less than a second, and each further variable takes three times as long
    #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(u8).range(0..=20))]
    exact_up_to: u8,
    #[command(flatten)]
    common: Common,
}

/// Learn the probability of each edge between the variables of a CSV file. This is bayesian-structure with
/// more samples and, for up to five variables, more training steps
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

/// The flags of a policy that learns from its own samples.
const ON_POLICY_FLAGS: &[&str] = &["--objective", "--replay", "--lag", "--epsilon"];
/// The flags of this task that have no effect on a search without a policy.
const SEARCH_IGNORES: &[&str] = &["--policy", "--chain-steps", "--lag", "--batch"];
/// The largest number of nodes for which all acyclic graphs are listed.
const MAX_LISTED_NODES: usize = 5;
/// The largest number of graphs that are listed. There are 29,281 acyclic graphs of five nodes.
const EXACT_LIMIT: usize = 30_000;

impl Structures {
    /// Returns an error if a given flag has no effect in combination with the other flags.
    fn check(&self) -> Result<()> {
        if self.by.value.is_some() {
            refuse(SEARCH_IGNORES, "a command without this flag, or with --by policy")?;
        }
        if self.common.objective.name != "modified-db" {
            refuse(&["--lag"], "a command without this flag, or with --objective modified-db")?;
        }
        let is_uniform = self.common.backward.is_none_or(|backward| backward.name == "uniform");
        if !is_uniform && self.policy.name == "transformer" {
            refuse(&["--backward"], "--backward uniform, or --policy mlp, gnn or graph-transformer")?;
        }
        if self.chain_steps.is_some_and(|steps| steps > 0) {
            refuse(
                ON_POLICY_FLAGS,
                "a command without this flag, or with --chain-steps 0, because with --chain-steps the policy \
                 learns by maximum likelihood from the graphs of the chains alone",
            )?;
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
        let mut run = Run::begin(common, Recipe { exact_up_to: EXACT_LIMIT, ..Recipe::default() })?;
        let mut rng = run.rng();
        let problem = self.problem.problem(&mut rng)?;
        let n = problem.names.len();
        let structures = problem.structures()?;
        let chain_steps = self.chain_steps(&structures);
        run.recipe = self.recipe(n, chain_steps, steps);
        run.config = common.trainer(&run.recipe);
        let reward = problem.reward(structures.env())?;
        if let Some(search) = self.by.value {
            let mut found = None;
            let mut report = run.search(|| {
                found = Some(search.run(&structures, &reward, run.steps(), self.graphs, &mut rng)?);
                Ok(())
            })?;
            report.set("local_scores", problem.n_scored());
            if let Some(found) = found {
                self.conclude(&problem, found, &mut report)?;
            }
            return run.print(report);
        }
        let (policy, network) = self.policy(structures.env(), run.device, &mut rng)?;
        if self.lag > 0 {
            run.objective = || Ok(Box::new(ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork }));
        }
        let mut data = None;
        let mut orders = None;
        if chain_steps > 0 {
            let (graphs, chains) = chain_data(&structures, &reward, chain_steps, &mut rng)?;
            data = Some(graphs);
            orders = chains;
            run.objective = || Ok(Box::new(MaximumLikelihood));
            run.config.source = DataSource::new(0.0, 0.0, 1.0)?;
        }
        let task = json!({ "title": problem.title, "seed": common.seed, "nodes": n, "by": self.by.name,
            "chain_steps": chain_steps, "policy": self.policy.name });
        let description = run.describe(task, &network);
        let mut trainer = run.trainer(structures.into_env(), reward, policy, rng, &description)?;
        if let Some(data) = data {
            trainer = trainer.with_data(data);
        }
        if self.lag > 0 {
            trainer = trainer.with_target_network(self.lag)?;
        }
        run.learn(trainer, "graphs", Vec::new(), |report, trainer, exact| {
            report.set("local_scores", problem.n_scored());
            match exact {
                Some(exact) => self.finish(Findings::from_exact(&problem, exact, orders)?, report),
                None => {
                    let graphs = evaluated(trainer, self.graphs)?;
                    let found = FoundGraphs { graphs, origin: Origin::PolicySamples, orders };
                    self.conclude(&problem, found, report)
                }
            }
        })
    }

    /// Returns the number of steps of the chains that the policy learns from; 0 if it learns from its own
    /// samples.
    fn chain_steps(&self, structures: &BayesianStructure) -> usize {
        if let Some(steps) = self.chain_steps {
            return steps;
        }
        let is_on_policy = ON_POLICY_FLAGS.iter().any(|flag| is_given(flag));
        if self.by.value.is_some() || structures.n_nodes() <= MAX_LISTED_NODES || is_on_policy {
            return 0;
        }
        if !OrderChain::is_possible(structures) {
            tell(
                "Markov chains over orders need at most 64 variables and 12,000,000 parent sets, so the \
                 policy learns from its own samples: a smaller --max-parents permits chains",
            );
            return 0;
        }
        order_steps(structures.n_nodes())
    }

    /// Returns the defaults of training. `steps` is the default of `--steps` for a policy that learns from
    /// its own samples.
    fn recipe(&self, n: usize, chain_steps: usize, steps: Option<usize>) -> Recipe {
        let own = Recipe {
            steps: steps.unwrap_or(if n > MAX_LISTED_NODES { 2_000 } else { 4_000 }),
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
        match self.by.value {
            Some(search) => Recipe { steps: search.default_steps(n), ..own },
            None if chain_steps > 0 => Recipe { steps: 2_000, batch: 32, replay: 0, lr: 2e-3, ..own },
            None => own,
        }
    }

    /// Reports on graphs that were sampled or found.
    fn conclude(&self, problem: &Problem, found: FoundGraphs, report: &mut Report) -> Result<()> {
        let structures = problem.structures()?;
        let edges = exact_edges(&structures, &problem.reward(structures.env())?, self.exact_up_to.into())?;
        let edges = edges.map(|summed| (summed.edge, summed.log_z));
        self.finish(Findings::new(problem, found, None, edges)?, report)
    }

    fn finish(&self, findings: Findings<'_>, report: &mut Report) -> Result<()> {
        findings.write(&self.common)?;
        findings.print();
        findings.report(report)
    }

    /// Builds the policy, and returns it with the settings of its network.
    fn policy(
        &self,
        env: &GraphEnv,
        device: Device,
        rng: &mut Rng,
    ) -> Result<(Box<dyn Policy<GraphEnv> + Send>, Value)> {
        let common = &self.common;
        let float = Kind::Float;
        Ok(match self.policy.value {
            Network::Perceptron => {
                let config = common.perceptron(BackwardPolicy::Uniform);
                let features = AdjacencyFeatures::new(env.initial_graphs()[0].n_nodes());
                let network = json!(config);
                (Box::new(MlpPolicy::new(env, features, config, device, float, rng)?), network)
            }
            Network::Messages(conv) => {
                let config = common.graph_net(1, 128, BackwardPolicy::Uniform);
                let config = GraphNetConfig { conv, identity: true, ..config };
                let network = json!(config);
                (Box::new(GraphPolicy(GraphNet::new(env, config, device, float, rng)?)), network)
            }
            Network::Pairs => {
                let mut config =
                    EdgeTransformerConfig { estimators: common.estimators(), ..Default::default() };
                config.layers = common.layers.unwrap_or(config.layers);
                config.embedding = common.embedding.unwrap_or(config.embedding);
                let network = json!(config);
                (Box::new(GraphPolicy(EdgeTransformer::new(env, config, device, float, rng)?)), network)
            }
        })
    }
}
