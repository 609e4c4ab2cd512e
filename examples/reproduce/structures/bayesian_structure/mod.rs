//! Structures of a Bayesian network in proportion to their posterior probability, from simulated data or a CSV file.

mod findings;
mod problem;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use findings::{Findings, exact_edges};
use gfn::env::Reward;
use gfn::graph::{GraphEnv, GraphStates};
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig};
use gfn::objective::{ModifiedDetailedBalance, NextExit, Objective};
use gfn::optim::Schedule;
use gfn::policy::{GraphPolicy, MlpPolicy, Policy};
use gfn::replay::ReplayBuffer;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_dags::{AdjacencyFeatures, BayesianStructure, EdgeTransformer, EdgeTransformerConfig, StructureConfig};
use problem::{Problem, ScoreName};
use serde_json::json;

use crate::flags::{BackwardName, BufferName, Common, ObjectiveName, refuse};
use crate::run::{Recipe, Run, members, sample};

/// Train a policy to sample the structures of a Bayesian network from their posterior
#[derive(Parser, Debug)]
#[command(mut_arg("objective", |arg| arg.default_value("modified-db")))]
pub(crate) struct Args {
    /// Nodes of the simulated network
    #[arg(long, default_value_t = 5, conflicts_with = "data")]
    nodes: usize,
    /// Expected edges of the simulated network, drawn as an Erdos-Renyi graph
    #[arg(long, default_value_t = 5.0, conflicts_with = "data")]
    edges: f64,
    /// Simulated observations
    #[arg(long, default_value_t = 100, conflicts_with = "data")]
    samples: usize,
    /// Standard deviation of the simulated noise; weights of edges are drawn from N(0, 1)
    #[arg(long, default_value_t = 0.1, conflicts_with = "data")]
    noise: f64,
    /// Observations instead of simulated ones: a CSV file with a header; numbers are standardised, for bge and bic
    #[arg(long)]
    data: Option<PathBuf>,
    /// Column of the data that says which variables an experiment set in that row: names with `;` between them, or nothing
    #[arg(long, requires = "data")]
    interventions: Option<String>,
    /// Known edges, to compare with: a CSV file of causes and effects under a header
    #[arg(long, requires = "data")]
    truth: Option<PathBuf>,
    /// Take the logarithm of the data before they are standardised; for bge and bic
    #[arg(long, requires = "data")]
    log: bool,
    /// Score of a node's parents: bge and bic for numbers, bde for classes, which are words or at most twenty whole
    /// numbers (other numbers are cut into three)
    #[arg(long, value_enum, default_value = "bge")]
    score: ScoreName,
    /// No node has more parents
    #[arg(long)]
    max_parents: Option<usize>,
    /// The network
    #[arg(long, value_enum, default_value = "mlp")]
    policy: PolicyName,
    /// Steps after which modified-db's copy of the policy catches up; 0 for none
    #[arg(long, default_value_t = 0)]
    lag: usize,
    /// Share of uniform actions that is left at the end
    #[arg(long, default_value_t = 0.0)]
    epsilon_end: f64,
    /// Graphs to sample where not all can be listed
    #[arg(long, default_value_t = 5_000)]
    graphs: usize,
    #[command(flatten)]
    common: Common,
}

/// Networks by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum PolicyName {
    /// A perceptron on the adjacency matrix
    Mlp,
    /// Messages along edges between nodes that know their number
    Gnn,
    /// Attention along edges between nodes that know their number, four heads
    GraphTransformer,
    /// Linear attention between the pairs of nodes, as in DAG-GFlowNet
    Transformer,
}

/// Nodes up to which all graphs are listed, and how many there may be.
const MOST_LISTED: usize = 5;
const EXACT_LIMIT: usize = 30_000;

/// The environment and the posterior of simulated data, as a run with these flags has them.
pub(crate) fn simulated(args: &Args, rng: &mut Rng) -> Result<(GraphEnv, impl Reward<GraphStates> + use<>)> {
    let problem = Problem::of(args, rng)?;
    let env = BayesianStructure::new(StructureConfig {
        max_parents: args.max_parents,
        ..StructureConfig::new(problem.names.len())
    })?
    .into_env();
    let reward = problem.reward(&env)?;
    Ok((env, reward))
}

/// Refuses flags that would have no effect beside the others.
fn check(args: &Args) -> Result<()> {
    let backward = args.common.backward.is_some_and(|name| name != BackwardName::Uniform);
    if args.common.objective != ObjectiveName::ModifiedDb {
        refuse(&["--lag"], "0, or --objective modified-db")?;
    }
    if backward && args.policy == PolicyName::Transformer {
        refuse(&["--backward"], "uniform, or --policy mlp, gnn or graph-transformer")?;
    }
    if args.score == ScoreName::Bde {
        refuse(&["--log"], "--score bge or bic beside it (bde cuts numbers by their order, which logarithms keep)")?;
    }
    Ok(())
}

pub(crate) fn run(args: &Args) -> Result<()> {
    check(args)?;
    let common = &args.common;
    let training = Recipe { batch: 128, replay: 10_000, buffer: BufferName::Fifo, epsilon: 0.5, ..Recipe::default() };
    // A look at 29,281 graphs is cheap beside the thousands of steps between two of them.
    let (exact_up_to, look_up_to) = (EXACT_LIMIT, EXACT_LIMIT);
    let recipe = Recipe { steps: 4_000, exact_up_to, look_up_to, samples: 0, ..training };
    let mut run = Run::begin(common, "bayesian_structure", String::new(), recipe)?;
    let mut rng = run.rng();
    let problem = Problem::of(args, &mut rng)?;
    let n = problem.names.len();
    if n > MOST_LISTED {
        run.recipe.steps = 2_000;
        run.config = common.trainer(&run.recipe);
    }
    run.title.clone_from(&problem.title);
    let structures =
        BayesianStructure::new(StructureConfig { max_parents: args.max_parents, ..StructureConfig::new(n) })?;
    let env = structures.env();
    let (estimators, (device, kind)) = (common.objective.estimators(), run.tensors());
    let backward = common.backward(BackwardPolicy::Uniform);
    match args.policy {
        PolicyName::Mlp => {
            let network = common.perceptron(BackwardPolicy::Uniform);
            let policy = MlpPolicy::new(env, AdjacencyFeatures::new(n), network, device, kind, &mut rng)?;
            learn(args, &run, &problem, &structures, policy, rng)
        }
        PolicyName::Gnn | PolicyName::GraphTransformer => {
            let network = GraphNetConfig {
                conv: match args.policy {
                    PolicyName::Gnn => ConvKind::Directed,
                    _ => ConvKind::Transformer { heads: 4 },
                },
                layers: common.layers.unwrap_or(1),
                embedding: common.embedding.unwrap_or(128),
                identity: true,
                backward,
                estimators,
                ..GraphNetConfig::default()
            };
            let policy = GraphPolicy(GraphNet::new(env, network, device, kind, &mut rng)?);
            learn(args, &run, &problem, &structures, policy, rng)
        }
        PolicyName::Transformer => {
            let default = EdgeTransformerConfig::default();
            let network = EdgeTransformerConfig {
                layers: common.layers.unwrap_or(default.layers),
                embedding: common.embedding.unwrap_or(default.embedding),
                estimators,
                ..default
            };
            let policy = GraphPolicy(EdgeTransformer::new(env, network, device, kind, &mut rng)?);
            learn(args, &run, &problem, &structures, policy, rng)
        }
    }
}

fn learn<P>(
    args: &Args,
    run: &Run<'_>,
    problem: &Problem,
    structures: &BayesianStructure,
    policy: P,
    rng: Rng,
) -> Result<()>
where
    P: Policy<GraphEnv> + Send + 'static,
{
    let common = &args.common;
    let (from, to) = (common.epsilon(&run.recipe), args.epsilon_end);
    if to > from {
        let expected = "at most --epsilon, which is 0 for an objective that learns from the policy's own trajectories";
        return Err(Error::config("--epsilon-end", format!("{to} after {from}"), expected));
    }
    let epsilon = Some(Schedule::Linear { from, to, steps: run.steps().div_ceil(2) });
    let config = TrainerConfig { epsilon, ..run.config.clone() };
    let objective: Box<dyn Objective> = match args.lag {
        0 => run.objective()?,
        _ => Box::new(ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork }),
    };
    let reward = problem.reward(structures.env())?;
    // What is exact doesn't wait for training: should something be wrong with the scores, it shows now.
    let summed = problem.names.len() > MOST_LISTED && members::is_first();
    let edges = if summed { exact_edges(structures, &reward)? } else { None };
    let description = json!({ "example": "bayesian_structure", "title": problem.description, "seed": common.seed,
        "policy": format!("{:?}", args.policy), "embedding": common.embedding, "layers": common.layers });
    let mut trainer =
        Trainer::new(structures.env().clone(), reward, policy, objective, config, rng)?.described_by(&description)?;
    if args.lag > 0 {
        trainer = trainer.with_target_network(args.lag)?;
    }
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let Some(mut learned) = run.learn(trainer, "graphs", Vec::new())? else { return Ok(()) };
    let findings = match &learned.exact {
        Some(exact) => Findings::listed(problem, exact)?,
        None => {
            let (trainer, rng) = (&learned.trainer, &mut learned.trainer.evaluation_rng());
            Findings::sampled(problem, edges, sample(trainer.env(), trainer.policy(), args.graphs, rng)?)?
        }
    };
    findings.write(common)?;
    findings.print();
    findings.report(&mut learned.report)?;
    learned.print()
}
