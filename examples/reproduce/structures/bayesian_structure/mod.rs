//! Structures of a Bayesian network in proportion to their posterior probability, from simulated data or a CSV file.

mod findings;
mod problem;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use findings::{Findings, exact_edges};
use gfn::distribution::GraphActionCategorical;
use gfn::graph::GraphEnv;
use gfn::metrics::sample_objects;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig, MlpConfig};
use gfn::objective::{ModifiedDetailedBalance, NextExit, Objective};
use gfn::optim::Schedule;
use gfn::policy::{GraphPolicy, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::ReplayBuffer;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_dags::{AdjacencyFeatures, BayesianStructure, EdgeTransformer, EdgeTransformerConfig, StructureConfig};
use problem::{Problem, ScoreName};
use serde_json::json;

use crate::cli::{
    BackwardName, BufferName, Common, Defaults, Distance, Exact, ObjectiveName, Report, members, train_with_actors,
};

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
    /// Observations in place of simulated ones: a CSV file with a header
    #[arg(long)]
    data: Option<PathBuf>,
    /// Column of the data that says which variables an experiment set in that row: names with `;` between them, or nothing
    #[arg(long, requires = "data")]
    interventions: Option<String>,
    /// Known edges, to compare with: a CSV file of causes and effects under a header
    #[arg(long, requires = "data")]
    truth: Option<PathBuf>,
    /// Take the logarithm of the data, then standardise them; for bge and bic
    #[arg(long, requires = "data")]
    log: bool,
    /// How well a node's parents explain it: bge and bic for numbers, bde for classes, which are words or at most ten whole
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

/// The network.
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

/// Graphs up to which the distribution is exact: all of five nodes.
const EXACT_LIMIT: usize = 30_000;

/// Refuses flags that would have no effect beside the others.
fn check(args: &Args) -> Result<()> {
    let common = &args.common;
    let refuse = |setting, got: String, expected| Err(Error::config(setting, got, expected));
    if args.lag > 0 && common.objective != ObjectiveName::ModifiedDb {
        return refuse("--lag", args.lag.to_string(), "0, or --objective modified-db");
    }
    let backward = common.backward.filter(|name| *name != BackwardName::Uniform);
    if let (PolicyName::Transformer, Some(name)) = (args.policy, backward) {
        let expected = "uniform, or --policy mlp, gnn or graph-transformer";
        return refuse("--backward", format!("{name:?}").to_lowercase(), expected);
    }
    if args.log && args.score == ScoreName::Bde {
        let expected = "bge or bic beside --log (bde cuts numbers by their order, which logarithms keep)";
        return refuse("--score", "bde".into(), expected);
    }
    Ok(())
}

pub(crate) fn run(args: &Args) -> Result<()> {
    check(args)?;
    let common = &args.common;
    let runtime = common.runtime()?;
    let mut rng = Rng::seeded(common.seed);
    let problem = Problem::of(args, &mut rng)?;
    let n = problem.names.len();
    let env = BayesianStructure::new(StructureConfig { max_parents: args.max_parents, ..StructureConfig::new(n) })?;
    let (estimators, device, kind) = (common.objective.estimators(), runtime.device(), tch::Kind::Float);
    let backward = common.backward.map_or(BackwardPolicy::Uniform, Into::into);
    match args.policy {
        PolicyName::Mlp => {
            let hidden = vec![common.embedding.unwrap_or(256); common.layers.unwrap_or(2)];
            let mlp = MlpConfig { hidden, ..MlpConfig::default() };
            let paths = common.objective.needs_paths();
            let network = MlpPolicyConfig { mlp, backward, estimators, paths, ..MlpPolicyConfig::default() };
            let policy = MlpPolicy::new(&env, AdjacencyFeatures::new(n), network, device, kind, &mut rng)?;
            learn(args, &problem, env, policy, rng)
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
            let policy = GraphPolicy(GraphNet::new(&env, network, device, kind, &mut rng)?);
            learn(args, &problem, env, policy, rng)
        }
        PolicyName::Transformer => {
            let default = EdgeTransformerConfig::default();
            let network = EdgeTransformerConfig {
                layers: common.layers.unwrap_or(default.layers),
                embedding: common.embedding.unwrap_or(default.embedding),
                estimators,
                ..default
            };
            let policy = GraphPolicy(EdgeTransformer::new(&env, network, device, kind, &mut rng)?);
            learn(args, &problem, env, policy, rng)
        }
    }
}

fn learn<P>(args: &Args, problem: &Problem, env: GraphEnv<BayesianStructure>, policy: P, rng: Rng) -> Result<()>
where
    P: Policy<GraphEnv<BayesianStructure>, Dist = GraphActionCategorical> + Send + 'static,
{
    let common = &args.common;
    let small = problem.names.len() <= 5;
    let defaults = Defaults {
        steps: if small { 4_000 } else { 2_000 },
        batch: 128,
        replay: 10_000,
        buffer: BufferName::Fifo,
        epsilon: 0.5,
        lr: 3e-3,
        ..Defaults::default()
    };
    let steps = common.steps(&defaults);
    let config = common.trainer(&defaults);
    let from = common.epsilon.unwrap_or(if common.objective.on_policy() { 0.0 } else { defaults.epsilon });
    if args.epsilon_end > from {
        let got = format!("{} after {from}", args.epsilon_end);
        let expected = "at most --epsilon, which is 0 for an objective that learns from the policy's own trajectories";
        return Err(Error::config("--epsilon-end", got, expected));
    }
    let epsilon = Schedule::Linear { from, to: args.epsilon_end, steps: steps.div_ceil(2) };
    let config = TrainerConfig { epsilon: Some(epsilon), ..config };
    let target_network = common.objective == ObjectiveName::ModifiedDb && args.lag > 0;
    let objective: Box<dyn Objective> = match target_network {
        true => Box::new(ModifiedDetailedBalance { next_exit: NextExit::TargetNetwork }),
        false => common.objective.build()?,
    };
    let reward = problem.reward(&env)?;
    let exact = Exact::up_to(EXACT_LIMIT, common, &env, &reward)?;
    // What is exact doesn't wait for training: should something be wrong with the scores, it shows now.
    let edges = if exact.is_none() && members::is_first() { exact_edges(&env, &reward)? } else { None };
    let description = json!({ "example": "bayesian_structure", "title": problem.description, "seed": common.seed,
        "policy": format!("{:?}", args.policy), "embedding": common.embedding, "layers": common.layers });
    let reward = problem.reward(&env)?;
    let mut trainer = Trainer::new(env.clone(), reward, policy, objective, config, rng)?.described_by(&description)?;
    if target_network {
        trainer = trainer.with_target_network(args.lag)?;
    }
    let trainer = common.replayed(trainer, &defaults, ReplayBuffer::new)?;
    // A look at 29,281 graphs is cheap beside the thousands of steps between two of them.
    let look = |trainer: &Trainer<GraphEnv<BayesianStructure>, P>| match &exact {
        Some(exact) => Ok(exact.learned(trainer)?.0.jsd),
        None => Ok(None),
    };
    let Some((trainer, trained)) =
        train_with_actors(trainer, common, ("bayesian_structure", &defaults), look, Vec::new())?
    else {
        return Ok(());
    };

    let mut distance = Distance::not_listed(common, EXACT_LIMIT);
    let findings = match &exact {
        Some(exact) => {
            let (learned, probs) = exact.learned(&trainer)?;
            distance = learned;
            Findings::listed(problem, exact, probs)?
        }
        None => {
            let rng = &mut trainer.evaluation_rng();
            let samples = sample_objects(trainer.env(), trainer.policy(), args.graphs, rng)?;
            Findings::sampled(problem, edges, samples)?
        }
    };
    findings.write(common)?;
    if members::is_first() {
        findings.print();
    }
    let (title, log_z_true) = (problem.title.clone(), findings.log_z_true);
    let (extra, panels) = (findings.figures()?, findings.panels());
    Report { title, log_z_true, distance, extra, panels }.print(common, &trained)
}
