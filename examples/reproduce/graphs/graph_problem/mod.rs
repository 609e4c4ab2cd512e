//! Problems on input graphs: one policy for all graphs, measured on graphs that it wasn't trained on.

mod any_beta;
mod large;
mod small;

use any_beta::AnyBeta;
use clap::{Parser, ValueEnum};
use gfn::graph::GraphEnv;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig, JumpingKnowledge};
use gfn::optim::Schedule;
use gfn::policy::GraphPolicy;
use gfn::replay::ReplayBuffer;
use gfn::train::{Trainer, TransitionBatches};
use gfn::{Error, Result, Rng};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, RbModel, SizeReward, erdos_renyi};
use gfn_solver::Improving;
use serde_json::json;

use super::solve::refuse_weights;
use crate::flags::{Common, refuse, words};
use crate::run::{Recipe, Report, Run};

/// Train one policy on many input graphs, and measure it on others
#[derive(Parser, Debug)]
#[command(mut_arg("objective", |objective| objective.default_value("fl-subtb")))]
pub(crate) struct Args {
    /// The problem
    #[arg(long, value_enum, default_value = "independent-set")]
    problem: ProblemName,
    /// Kind of input graphs
    #[arg(long, value_enum, default_value = "small")]
    graphs: GraphsName,
    /// Log-reward of a unit of size; by default 2, of large graphs 5
    #[arg(long, visible_alias = "beta-to")]
    beta: Option<f64>,
    /// Log-reward of a unit of size at first; it rises to --beta over three quarters of the steps
    #[arg(long)]
    beta_from: Option<f64>,
    /// One policy for all log-rewards between --beta-from and --beta, of small graphs: which one, is said when it samples
    #[arg(long, requires = "beta_from")]
    any_beta: bool,
    /// Updates of each step on single transitions, in place of one on whole trajectories; for fl-db and db
    #[arg(long)]
    updates: Option<usize>,
    /// Transitions of such an update
    #[arg(long, requires = "updates", default_value_t = 64)]
    transitions: usize,
    /// Rounds of local search, after which half of the samples are learned from
    #[arg(long)]
    improve: Option<usize>,
    /// File of graphs to measure on instead of generated ones: graph6, or what `solve --graph` reads
    #[arg(long, conflicts_with = "held_out")]
    held_out_file: Option<std::path::PathBuf>,
    /// Graphs that are generated to train on; by default 4,000, of large ones 1,000
    #[arg(long)]
    train: Option<usize>,
    /// Graphs that are generated to measure on; by default 50, of large ones 100
    #[arg(long)]
    held_out: Option<usize>,
    /// Probability of an edge of small graphs
    #[arg(long, default_value_t = 0.3)]
    edge_probability: f64,
    /// Samples of which the best one counts, of large graphs
    #[arg(long, default_value_t = 20)]
    best_of: usize,
    /// Branches of the exact search of a large graph that is measured on; 0 for none
    #[arg(long, default_value_t = 200_000_000)]
    branches: u64,
    /// RB graphs of 200 to 300 nodes, and of 800 to 1,200, that the policy is asked about, too
    #[arg(long, default_value_t = 0)]
    larger: usize,
    /// Way in which nodes learn of others: along edges, or also from the whole graph; by default gin-virtual, of large graphs gin
    #[arg(long, value_enum)]
    conv: Option<ConvName>,
    /// Rounds that nodes and the whole graph read
    #[arg(long, value_enum, default_value = "last")]
    jumping: JumpingName,
    /// Nodes are told their degree
    #[arg(long)]
    degrees: bool,
    /// Negative control: the network gets no messages along edges, and sees marks alone
    #[arg(long, conflicts_with_all = ["layers", "conv", "jumping", "degrees"])]
    blind: bool,
    #[command(flatten)]
    common: Common,
}

/// Problems by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProblemName {
    /// Most nodes of which no two have an edge
    IndependentSet,
    /// Most nodes of which any two have an edge
    Clique,
    /// Fewest nodes with an edge to each other node
    DominatingSet,
    /// Two sides with most edges between them
    Cut,
}

impl ProblemName {
    pub(super) fn problem(self) -> Problem {
        match self {
            Self::IndependentSet => Problem::IndependentSet,
            Self::Clique => Problem::Clique,
            Self::DominatingSet => Problem::DominatingSet,
            Self::Cut => Problem::Cut,
        }
    }
}

/// Message passing by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum ConvName {
    /// Sums over neighbours
    Gin,
    /// Sums over neighbours, and over the whole graph
    GinVirtual,
    /// Attention along edges and to a virtual node, four heads
    Transformer,
    /// GATv2: attention along edges, four heads
    Gat,
    /// GPS: sums over neighbours beside attention to the whole graph, four heads
    Gps,
}

/// Rounds that are read, by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum JumpingName {
    /// The last one
    Last,
    /// All, side by side
    Concat,
    /// The largest of all, number by number
    Max,
}

/// Kinds of graphs by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum GraphsName {
    /// All of 6 nodes and random ones of 6 to 14 to train on, random ones of 10 to 14 held out: distances are exact
    Small,
    /// RB graphs of 50 to 100 nodes: the best of some samples beside the optimum, greedy and local search
    Rb,
    /// RB graphs of 200 to 300 nodes
    RbLarge,
    /// Barabasi-Albert graphs of 200 to 300 nodes, four edges a new node
    Ba,
}

type ProblemEnv = GraphEnv;
type ProblemTrainer = Trainer<ProblemEnv>;

/// Nodes of the generated small graphs, and of those that are measured on.
const TRAINED_NODES: [usize; 2] = [6, 14];
const HELD_OUT_NODES: [usize; 2] = [10, 14];
/// What tells the seed of held-out graphs from that of the run, which must not choose what it is measured on.
const HELD_OUT_SEED: u64 = 0x6865_6c64;

/// The graphs to train on, and those to measure on.
fn instances(args: &Args) -> Result<[Instances; 2]> {
    let (held_out_rng, train_rng) = (&mut Rng::seeded(HELD_OUT_SEED), &mut Rng::seeded(args.common.seed).split());
    let [train, held_out] = match args.graphs {
        GraphsName::Small => {
            let random = |count: usize, [least, most]: [usize; 2], rng: &mut Rng| {
                let sizes = (least..=most).cycle().take(count);
                Instances::new(sizes.map(|n| erdos_renyi(n, args.edge_probability, rng)).collect::<Result<_>>()?)
            };
            let held_out = random(args.held_out.unwrap_or(50), HELD_OUT_NODES, held_out_rng)?.distinct();
            [Instances::all(6)?.and(random(args.train.unwrap_or(4_000), TRAINED_NODES, train_rng)?), held_out]
        }
        GraphsName::Rb | GraphsName::RbLarge => {
            let model = if args.graphs == GraphsName::Rb { RbModel::medium() } else { RbModel::large() };
            let held_out = large::draw(&model, args.held_out.unwrap_or(100), held_out_rng)?.distinct();
            [large::draw(&model, args.train.unwrap_or(1_000), train_rng)?, held_out]
        }
        GraphsName::Ba => {
            let held_out = large::draw_ba(args.held_out.unwrap_or(100), held_out_rng)?.distinct();
            [large::draw_ba(args.train.unwrap_or(1_000), train_rng)?, held_out]
        }
    };
    // Files of several graphs have no weights.
    if let Some(path) = &args.held_out_file
        && let Ok(graph) = Instances::read_named(path)
    {
        refuse_weights(args.problem.problem(), path, &graph)?;
    }
    let held_out = args.held_out_file.as_ref().map_or(Ok(held_out), Instances::read)?;
    Ok([train.distinct().without(&held_out), held_out])
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (common, large) = (&args.common, args.graphs != GraphsName::Small);
    let problem = args.problem.problem();
    if args.held_out == Some(0) || args.best_of == 0 {
        return Err(Error::config(
            "--held-out and --best-of",
            0,
            "at least one graph to measure on, and one sample of it",
        ));
    }
    if args.graphs == GraphsName::Ba {
        refuse(&["--larger"], "--graphs rb, which larger graphs of the same kind belong to")?;
    }
    if large {
        refuse(&["--validate-every"], "no such flag with --graphs rb: no distance is measured on the way")?;
    } else {
        refuse(&["--larger"], "--graphs rb, which larger graphs of the same kind belong to")?;
    }
    let reward = SizeReward::new(problem, args.beta.unwrap_or(if large { 5.0 } else { 2.0 }))?;
    let beta_from = args.beta_from.map(|from| SizeReward::new(problem, from)).transpose()?.map(|from| from.beta());
    if large {
        refuse(&["--any-beta"], "no such flag with RB graphs: what it is measured by is exact distances")?;
    }
    let any_beta =
        beta_from.filter(|_| args.any_beta).map(|least| AnyBeta::new(problem, least, reward.beta())).transpose()?;
    let title = format!("{} of graphs, beta {}", words(&args.problem), reward.beta());
    let steps = if large { 3_000 } else { 40_000 };
    let recipe = Recipe { steps, batch: 32, epsilon: 0.05, lr_end: 0.01, ..Recipe::default() };
    let run = Run::begin(common, "graph_problem", title, recipe)?;
    let [train, held_out] = instances(args)?;
    let (env, mut rng) = (GraphProblem::for_size(problem, &train)?.into_env(), run.rng());
    let network = GraphNetConfig {
        conv: match args.conv.unwrap_or(if large { ConvName::Gin } else { ConvName::GinVirtual }) {
            ConvName::Gin => ConvKind::Gin,
            ConvName::GinVirtual => ConvKind::GinVirtual,
            ConvName::Transformer => ConvKind::Transformer { heads: 4 },
            ConvName::Gat => ConvKind::Gat { heads: 4 },
            ConvName::Gps => ConvKind::Gps { heads: 4 },
        },
        jumping: match args.jumping {
            JumpingName::Last => JumpingKnowledge::Last,
            JumpingName::Concat => JumpingKnowledge::Concat,
            JumpingName::Max => JumpingKnowledge::Max,
        },
        degrees: args.degrees,
        layers: if args.blind { 0 } else { common.layers.unwrap_or(5) },
        embedding: common.embedding.unwrap_or(64),
        // What is learned of nodes holds for other graphs.
        identity: false,
        global: true,
        // Differences of log R are in units of beta.
        unit: (reward.beta() / 5.0).max(1.0),
        backward: common.backward(BackwardPolicy::Uniform),
        estimators: match &any_beta {
            Some(any) => any.estimators(common.objective.estimators()),
            None => common.objective.estimators(),
        },
        ..GraphNetConfig::default()
    };
    let description = json!({ "example": "graph_problem", "problem": words(&args.problem),
        "graphs": words(&args.graphs), "beta": reward.beta(), "network": network, "for_size": true });
    let policy = GraphPolicy(GraphNet::new(&env, network, run.device, tch::Kind::Float, &mut rng)?);
    let (objective, mut config) = (run.objective()?, run.config.clone());
    if let Some(from) = beta_from.filter(|_| !args.any_beta) {
        let from = from / reward.beta();
        config.reward_exponent = Schedule::Linear { from, to: 1.0, steps: (run.steps() * 3).div_ceil(4) };
    }
    let size = args.transitions;
    config.transitions = args.updates.map(|updates_per_draw| TransitionBatches { size, updates_per_draw });
    let trainer = match &any_beta {
        Some(any) => {
            Trainer::new(env, any.reward()?, policy, objective, config, rng)?.with_conditions(any.conditioning.clone())
        }
        None => Trainer::new(env, reward, policy, objective, config, rng)?,
    };
    let trainer = trainer.described_by(&description)?;
    let trainer = match args.improve {
        Some(rounds) => trainer.with_source(0.5, Improving::new(problem, rounds)?)?,
        None => trainer,
    };
    let trainer = run.replayed(trainer, ReplayBuffer::distinct)?;
    let mut report = Report::default();
    report.set("train_graphs", train.graphs().len());
    report.set("held_out_graphs", held_out.graphs().len());
    report.set("beta", reward.beta());
    report.set("blind", args.blind);
    match args.graphs {
        GraphsName::Small => {
            small::run(&run, trainer, small::HeldOut::new(problem, &held_out, reward, any_beta)?, report)
        }
        GraphsName::Rb | GraphsName::RbLarge | GraphsName::Ba => large::run(args, &run, trainer, &held_out, report),
    }
}
