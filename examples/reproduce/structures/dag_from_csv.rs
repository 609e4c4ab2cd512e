//! A task for your own data: it computes the probability of each edge of a Bayesian network from a CSV file,
//! which has a header and a number in each cell.

use std::fmt;
use std::io::Write;
use std::path::PathBuf;

use clap::{Arg, Parser};
use gfn::nn::MlpConfig;
use gfn::objective::ModifiedDetailedBalance;
use gfn::optim::AdamConfig;
use gfn::prelude::*;
use gfn::replay::{Draw, Eviction};
use gfn::{Error, Result};
use gfn_dags::{
    AdjacencyFeatures, BayesianStructure, Bge, BgeConfig, CachedScores, ContinuousData, DagReward,
    EdgeMarginals, LocalScore, MAX_SUMMED_NODES, Marginals, PairMatrix, StructureConfig, StructurePrior,
};
use tch::{Device, Kind};

/// Learn the probability of each edge between the variables of a CSV file
#[derive(Parser, Debug)]
#[command(arg = Arg::new("run").long("run").hide(true).value_parser(no_run))]
pub(crate) struct Args {
    /// CSV file with the data: a header with a name for each variable, then lines with a number for each
    /// variable
    #[arg(default_value = "examples/data/sachs_observational.csv")]
    data: PathBuf,
    /// Name of the column of interventions. Each cell lists the variables that an experiment fixed in its
    /// row: names with `;` between them, or nothing
    #[arg(long)]
    interventions: Option<String>,
    /// Number of training steps. Use more steps if learned and exact probabilities differ
    #[arg(long, default_value_t = 10_000)]
    steps: usize,
    /// Number of graphs that are sampled after training
    #[arg(long, default_value_t = 10_000)]
    graphs: usize,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of threads of rayon and of libtorch
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

/// Returns an error if `--run` is given. This task has no run folder, and the message names a task that has
/// one.
fn no_run(_: &str) -> std::result::Result<String, &'static str> {
    Err("this task stores no run; use `bayesian-structure --data FILE --run FOLDER`, which reads the same \
        file")
}

/// The learned and exact probabilities of edges.
pub(crate) struct Edges {
    names: Vec<String>,
    graphs: usize,
    /// The share of the sampled graphs that contain each edge.
    pub(crate) learned: PairMatrix,
    /// The posterior probability of each edge, computed as a sum over all graphs; `None` if the sum can't be
    /// computed.
    pub(crate) exact: Option<PairMatrix>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = Runtime::new(args.threads, DeviceKind::Cpu)?;
    let edges = learn(args, runtime.device())?;
    write!(std::io::stdout().lock(), "{edges}").map_err(|source| Error::io("standard output", source))
}

pub(crate) fn learn(args: &Args, device: Device) -> Result<Edges> {
    let data = match &args.interventions {
        None => ContinuousData::read(&args.data)?,
        Some(column) => ContinuousData::read_with_interventions(&args.data, column)?,
    };
    let names = data.names().to_vec();
    let n = data.n_variables();

    // The reward of an acyclic graph is its posterior probability divided by that of the graph without edges.
    let structures = BayesianStructure::new(StructureConfig::new(n))?;
    let mut rng = Rng::seeded(args.seed);
    let env = structures.env().clone();
    let scores = CachedScores::new(Bge::new(&data.standardised()?, BgeConfig::default())?);
    let reward = DagReward::new(scores, StructurePrior::Uniform)?.relative_to(&env.initial_graphs()[0])?;
    let exact = exact_edges(&structures, &reward)?.map(|summed| summed.edge);

    let mlp = MlpConfig { hidden: vec![256, 256], ..MlpConfig::default() };
    let config = MlpPolicyConfig { mlp, backward: BackwardPolicy::Uniform, ..MlpPolicyConfig::default() };
    let policy = MlpPolicy::new(&env, AdjacencyFeatures::new(n), config, device, Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 128,
        // A few of the many graphs have nearly all of the probability. Half of the actions are random in the
        // first step, to find these graphs. The replay buffer keeps them.
        epsilon: Some(Schedule::Linear { from: 0.5, to: 0.0, steps: args.steps.div_ceil(2) }),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: args.steps },
        adam: AdamConfig { lr: 3e-3, ..AdamConfig::default() },
        ..TrainerConfig::default()
    };
    let replay = ReplayConfig { capacity: 10_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut trainer = Trainer::new(env, reward, policy, ModifiedDetailedBalance::default(), config, rng)?
        .with_replay(ReplayBuffer::new(replay)?);
    Fit::new(args.steps).run(&mut trainer)?;

    let sampled =
        Sampler::new(trainer.env(), trainer.policy()).forward(args.graphs, &mut trainer.evaluation_rng())?;
    let learned = Marginals::from_graphs(sampled.terminal_states(), None)?.edge;
    Ok(Edges { names, graphs: args.graphs, learned, exact })
}

/// Computes the posterior probability of each edge as a sum over all graphs. Returns `None` for more than 14
/// variables, and if cancellation makes the sum too inaccurate.
pub(crate) fn exact_edges<S: LocalScore>(
    env: &BayesianStructure,
    reward: &DagReward<S>,
) -> Result<Option<EdgeMarginals>> {
    if env.n_nodes() > MAX_SUMMED_NODES {
        return Ok(None);
    }
    match EdgeMarginals::sum(env, reward) {
        Err(Error::Contract { .. }) => Ok(None),
        summed => summed.map(Some),
    }
}

/// The smallest probability in the printed table. An edge is listed if its learned or its exact probability
/// is at least this number.
const LEAST: f64 = 0.05;
/// The largest root mean squared difference between learned and exact edge probabilities at which the learned
/// probabilities count as reliable.
const CONVERGED: f64 = 0.03;

impl fmt::Display for Edges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.names.len();
        let exact = |k: usize| self.exact.as_ref().map(|exact| exact.values()[k]);
        let larger = |k: usize| self.learned.values()[k].max(exact(k).unwrap_or(0.0));
        let mut shown: Vec<usize> = (0..n * n).filter(|&k| k / n != k % n && larger(k) >= LEAST).collect();
        shown.sort_by(|&a, &b| larger(b).total_cmp(&larger(a)));
        writeln!(f, "learned  exact  edge")?;
        for k in shown {
            let exact = exact(k).map_or("-".to_owned(), |p| format!("{p:.2}"));
            let edge = format!("{} -> {}", self.names[k / n], self.names[k % n]);
            writeln!(f, "{:7.2}  {exact:>5}  {edge}", self.learned.values()[k])?;
        }
        let graphs = self.graphs;
        let sampling = 0.5 / (self.graphs as f64).sqrt();
        writeln!(f, "\nEdges below {LEAST} aren't listed. Learned is the share of {graphs} sampled graphs:")?;
        writeln!(
            f,
            "a standard error of at most {sampling:.3} from sampling, and what training has left to learn."
        )?;
        match self.exact.as_ref().and_then(|exact| self.learned.rmse(exact).ok()) {
            Some(error) => {
                let much = if error > CONVERGED {
                    ", which is much: believe exact, or give more --steps"
                } else {
                    ""
                };
                writeln!(f, "Learned is off from exact by {error:.3} (root mean square of all pairs){much}.")
            }
            None => writeln!(
                f,
                "Nothing says how much that is: exact ones are summed for up to {MAX_SUMMED_NODES} \
                 variables, if not too much cancels.\nRepeat with another --seed and more --steps, and \
                 believe what stays."
            ),
        }
    }
}
