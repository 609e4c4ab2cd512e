//! A comparison of all objectives and all sources of trajectories, in one table. Each pair is trained with an
//! equal number of steps. The table has exact distances, or estimates from samples if there are too many
//! states.

use clap::Arg;
use gfn::objective::{RelativeLogPartitionVariance, RelativeTrajectoryBalance, TrustPcl, Weighting};
use gfn::policy::WithPrior;
use gfn_gym::toy_dag::{ToyDag, ToyReward};

use crate::plot::{Cell, Table};
use crate::prelude::*;

/// Train a policy for each pair of an objective and a source of trajectories, and compare the exact distances
#[derive(Args)]
#[command(arg = Arg::new("run").long("run").hide(true).value_parser(no_run))]
pub(crate) struct Comparison {
    /// Environment on which the policies are trained
    #[arg(long, value_enum, default_value = "grid")]
    environment: Environment,
    /// Number of points along each of the two dimensions of the grid
    #[arg(long, default_value_t = 5)]
    height: usize,
    /// Objectives to compare, by default all objectives
    #[arg(long, value_parser = choice(OBJECTIVES.iter().chain(FURTHER)))]
    only: Vec<ObjectiveName>,
    /// Sources of trajectories to compare, by default all sources
    #[arg(long, value_parser = choice(SOURCES))]
    source: Vec<Selection<Replay>>,
    /// Number of training steps for each pair
    #[arg(long, default_value_t = 2_000)]
    steps: usize,
    /// Number of trajectories per training step, including replayed trajectories
    #[arg(long, default_value_t = 16)]
    batch: usize,
    #[command(flatten)]
    machine: Machine,
}

/// Returns an error if `--run` is given. This task has no run folder, and the message names `--json` instead.
fn no_run(_: &str) -> std::result::Result<String, &'static str> {
    Err("this task trains once for each pair and stores no run; use --json, which prints its figures")
}

/// An environment on which objectives are compared.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Environment {
    /// A grid of two dimensions with the reward of Bengio et al. (2021)
    Grid,
    /// The environment of Bengio et al. (2023) with 11 states, of which six are terminal
    Dag,
}

/// The objectives that only this task accepts: other weightings of sub-trajectory balance, and objectives
/// relative to a prior, which is the uniform policy.
const FURTHER: &[Choice<Build>] = &[
    ("subtb-db", || weighted(Weighting::Db), "Sub-trajectory balance, weights of DB"),
    (
        "subtb-modified-db",
        || weighted(Weighting::ModifiedDb),
        "Sub-trajectory balance, weights of modified DB",
    ),
    ("subtb-tb", || weighted(Weighting::Tb), "Sub-trajectory balance, weights of TB"),
    ("subtb-equal", || weighted(Weighting::Equal), "Sub-trajectory balance, equal weights"),
    (
        "subtb-equal-within",
        || weighted(Weighting::EqualWithin),
        "Sub-trajectory balance, equal within trajectories",
    ),
    (
        "subtb-geometric",
        || weighted(Weighting::Geometric { lambda: 0.9 }),
        "Sub-trajectory balance, geometric weights",
    ),
    ("relative-tb", || Ok(Box::new(RelativeTrajectoryBalance::new(1.0)?)), "Relative to a prior"),
    ("relative-vargrad", || Ok(Box::new(RelativeLogPartitionVariance::new(1.0)?)), "Relative to a prior"),
    ("trust-pcl", || Ok(Box::new(TrustPcl::new(1.0)?)), "Relative to a prior"),
];

fn weighted(weighting: Weighting) -> Result<Box<dyn Objective>> {
    Ok(Box::new(SubTrajectoryBalance::new(weighting)?))
}

/// A replay buffer that supplies half of each batch, and the rule by which the path to a replayed object is
/// chosen. `None` for a source without a replay buffer.
type Replay = Option<(Eviction, Draw, ReplayPath)>;

const BY_REWARD: Draw = Draw::RewardPrioritised { exponent: 1.0 };
const SOURCES: &[Choice<Replay>] = &[
    ("on-policy", None, "The policy itself"),
    ("epsilon", None, "A tenth of the actions uniform"),
    ("fifo", Some((Eviction::Fifo, Draw::Uniform, ReplayPath::Stored)), "Half of the batch from the newest"),
    (
        "best",
        Some((Eviction::BestReward, Draw::Uniform, ReplayPath::Stored)),
        "Half of the batch from the best rewards",
    ),
    (
        "prioritised",
        Some((Eviction::Fifo, BY_REWARD, ReplayPath::Stored)),
        "Half of it in proportion to the reward",
    ),
    (
        "terminating",
        Some((Eviction::Fifo, Draw::Uniform, ReplayPath::UniformBackward)),
        "Half of it by new paths",
    ),
];

/// The capacity of the replay buffer.
const CAPACITY: usize = 1_000;
/// The largest number of states for which exact distances are computed.
const LIST_LIMIT: usize = 100_000;
/// The number of samples for the estimates that replace exact distances if there are too many states.
const SAMPLES: usize = 2_000;
/// The learning rate in the first step. The learning rate falls linearly to 0.
const LEARNING_RATE: f64 = 3e-3;

impl Task for Comparison {
    fn run(&self) -> Result<()> {
        if self.environment == Environment::Dag {
            return self.compare(ToyDag.env(), ToyReward::default(), KHot::new(1, ToyDag::N_STATES));
        }
        let grid = HyperGrid::new(2, self.height)?;
        self.compare(grid.env(), OriginalReward::standard(&grid)?, KHot::new(2, self.height))
    }
}

impl Comparison {
    fn compare<R>(&self, env: VectorEnv, reward: R, features: KHot) -> Result<()>
    where
        R: Reward<VectorStates> + Clone + 'static,
    {
        let device = self.machine.device()?;
        let exact = Exact::up_to(LIST_LIMIT, &env, &reward)?;
        let why_not_exact = exact.is_none().then(|| format!("there are more than {LIST_LIMIT} states"));
        // `build` returns `Error::Missing` if the objective can't be trained on the source.
        let build = |objective: ObjectiveName, source: Selection<Replay>| -> Result<Trainer<VectorEnv>> {
            let mut rng = Rng::seeded(self.machine.seed);
            let mlp = MlpConfig { hidden: vec![64, 64], ..MlpConfig::default() };
            let network = objective.perceptron(mlp, objective.backward(BackwardPolicy::Uniform));
            let policy = MlpPolicy::new(&env, features, network, device, Kind::Float, &mut rng)?;
            let config = TrainerConfig {
                epsilon: Some(Schedule::Constant(if source.name == "epsilon" { 0.1 } else { 0.0 })),
                replay_path: source.value.map_or(ReplayPath::Stored, |(.., path)| path),
                batch: self.batch,
                lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: self.steps },
                adam: AdamConfig { lr: LEARNING_RATE, log_z_lr: 1e-1, ..AdamConfig::default() },
                ..TrainerConfig::default()
            };
            let env = env.clone();
            let reward = reward.clone();
            let trainer = if objective.needs(Quantity::LogPrior) {
                let what = "the prior's probability of each object";
                let remedy = "choose an environment with fewer states";
                let space =
                    &exact.as_ref().ok_or(Error::missing("a relative objective", what, remedy))?.graph;
                // A relative objective has the target prior(x) R'(x). With the reward R'(x) = R(x) / prior(x)
                // this target is R, which is the target of all other objectives.
                let prior = space.terminating_distribution(&env, &UniformPolicy, None)?.probs;
                let prior: BTreeMap<_, f64> = env.keys(space.states()).into_iter().zip(prior).collect();
                let keyed = env.clone();
                let reward = move |states: &VectorStates, conditions: Option<&Tensor>| -> Result<Vec<f64>> {
                    let log_rewards = reward.log_reward(states, conditions)?;
                    let keys = keyed.keys(states);
                    Ok(log_rewards.iter().zip(&keys).map(|(log_r, key)| log_r - prior[key].ln()).collect())
                };
                let policy = WithPrior { policy, prior: UniformPolicy };
                Trainer::new(env, reward, policy, objective.build()?, config, rng)?
            } else {
                Trainer::new(env, reward, policy, objective.build()?, config, rng)?
            };
            let Some((eviction, draw, _)) = source.value else { return Ok(trainer) };
            Ok(trainer.with_replay(ReplayBuffer::new(ReplayConfig { capacity: CAPACITY, eviction, draw })?))
        };
        let all = selections(OBJECTIVES.iter().chain(FURTHER));
        let objectives = if self.only.is_empty() { &all } else { &self.only };
        let all = selections(SOURCES);
        let sources = if self.source.is_empty() { &all } else { &self.source };
        let figure = if exact.is_none() { "elbo" } else { "tv" };
        let mut table = Table::new([figure].into_iter().chain(sources.iter().map(|source| source.name)));
        let mut pairs = Vec::new();
        for objective in objectives {
            let mut row = vec![Cell::from(objective.name)];
            for source in sources {
                let mut pair = json!({ "objective": objective.name, "source": source.name, "tv": null });
                match build(*objective, *source).and_then(|trainer| self.measure(trainer, exact.as_ref())) {
                    Ok(figures) => merge(&mut pair, figures),
                    Err(error @ Error::Missing { .. }) => pair["why"] = json!(error.to_string()),
                    Err(error) => return Err(error),
                }
                row.push(pair[figure].as_f64().into());
                pairs.push(pair);
            }
            table.push(row);
        }
        print(table.to_string().trim_end())?;
        if let Some(why) = &why_not_exact {
            print(format_args!(
                "\nNo exact distances: {why}. ELBO is the mean of log(P_B R / P_F), at most log Z."
            ))?;
        }
        if !self.machine.json {
            return Ok(());
        }
        let worst =
            exact.as_ref().map(|_| pairs.iter().filter_map(|pair| pair["tv"].as_f64()).fold(0.0, f64::max));
        let machine = &self.machine;
        let log_z = exact.as_ref().map(|exact| exact.target.log_z);
        print(json!({ "example": "compare_objectives", "environment": name_of(self.environment),
            "seed": machine.seed, "steps": self.steps, "batch": self.batch, "threads": machine.threads,
            "device": machine.device.to_string(), "log_z_true": log_z, "worst_tv": worst,
            "exact": exact.is_some(), "why_not_exact": why_not_exact, "pairs": pairs }))
    }

    /// Trains the policy of one pair of an objective and a source, and returns the results.
    fn measure(&self, mut trainer: Trainer<VectorEnv>, exact: Option<&Exact<VectorEnv>>) -> Result<Value> {
        let mut log_z = f64::NAN;
        let mut seconds = 0.0;
        let mut keep = |_: &Trainer<VectorEnv>, record: &mut Record| {
            log_z = record.stats.log_z;
            seconds += record.stats.seconds.iter().sum::<f64>();
            Ok(ControlFlow::Continue(()))
        };
        Fit::new(self.steps).observe(&mut keep).run(&mut trainer)?;
        let mut figures = match exact {
            Some(exact) => json!({ "tv": exact.distances(&exact.learned(&trainer)?)?.tv }),
            None => sampled(&trainer, SAMPLES)?,
        };
        merge(&mut figures, json!({ "log_z": log_z, "train_s": seconds }));
        Ok(figures)
    }
}
