//! Every objective on every source of trajectories: one table of exact distances, at one budget; where there are too many states for that, what
//! samples say.

mod contender;

use std::ops::ControlFlow;

use clap::{Arg, Parser, ValueEnum};
use contender::{Contender, OverPrior};
use gfn::env::{Reward, VectorEnv, VectorStates};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::objective::Quantity;
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy, WithPrior};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::run::{Fit, Record};
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{ReplayPath, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use gfn_gym::toy_dag::{ToyDag, ToyReward};
use serde_json::{Value, json};

use crate::run::lines::print;
use crate::run::{Exact, number, sampled, table};

/// Train by every objective on every source of trajectories, and compare exact distances
#[derive(Parser, Debug)]
#[command(arg = Arg::new("run").long("run").hide(true).value_parser(no_run))]
pub(crate) struct Args {
    /// Environment to sample from
    #[arg(long, value_enum, default_value = "grid")]
    environment: Environment,
    /// Points along each of the two dimensions of the grid
    #[arg(long, default_value_t = 5)]
    height: usize,
    /// Objectives to compare; all of them if none is named
    #[arg(long, value_enum)]
    only: Vec<Contender>,
    /// Sources to compare; all of them if none is named
    #[arg(long, value_enum)]
    source: Vec<Source>,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Training steps of each pair
    #[arg(long, default_value_t = 2_000)]
    steps: usize,
    /// Trajectories per step, replayed ones included
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// Threads of rayon and of libtorch; each number rounds libtorch's products differently, so another one is another run
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Where tensors live: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    device: DeviceKind,
    /// Width of hidden layers
    #[arg(long, default_value_t = 64)]
    embedding: i64,
    /// Hidden layers
    #[arg(long, default_value_t = 2)]
    layers: usize,
    /// Learning rate at the start; it falls to 0 in a straight line
    #[arg(long, default_value_t = 3e-3)]
    lr: f64,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

/// Says what to do where others take --run.
fn no_run(_: &str) -> std::result::Result<String, &'static str> {
    Err("this task makes a run for each pair, and keeps none; --json has its figures")
}

/// Environments by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Environment {
    /// A grid with the original reward
    Grid,
    /// The 11 states of Bengio et al. (2023), of which six can be finished
    Dag,
}

/// Sources of trajectories by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// The policy itself
    OnPolicy,
    /// A tenth of the actions uniform
    Epsilon,
    /// Half of the batch from a first-in, first-out buffer
    Fifo,
    /// Half of the batch from a buffer of the best rewards
    Best,
    /// Half of the batch from a buffer, in proportion to the reward
    Prioritised,
    /// Half of the batch from a buffer of terminal states, with new paths to them
    Terminating,
}

impl Source {
    fn replay(self) -> Option<(ReplayConfig, ReplayPath)> {
        let buffer = |eviction, draw| ReplayConfig { capacity: 1_000, eviction, draw };
        let by_reward = Draw::RewardPrioritised { exponent: 1.0 };
        match self {
            Self::OnPolicy | Self::Epsilon => None,
            Self::Fifo => Some((buffer(Eviction::Fifo, Draw::Uniform), ReplayPath::Stored)),
            Self::Best => Some((buffer(Eviction::BestReward, Draw::Uniform), ReplayPath::Stored)),
            Self::Prioritised => Some((buffer(Eviction::Fifo, by_reward), ReplayPath::Stored)),
            Self::Terminating => Some((buffer(Eviction::Fifo, Draw::Uniform), ReplayPath::UniformBackward)),
        }
    }
}

/// States up to which distances are exact.
const LIST_LIMIT: usize = 100_000;
/// Samples where they aren't.
const SAMPLES: usize = 2_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    match args.environment {
        Environment::Grid => {
            let grid = HyperGrid::new(2, args.height)?;
            let env = grid.env();
            let reward = OriginalReward::standard(&grid)?;
            compare(args, env, reward, KHot::new(2, args.height))
        }
        Environment::Dag => compare(args, ToyDag.env(), ToyReward::default(), KHot::new(1, ToyDag::N_STATES)),
    }
}

/// One task under all objectives.
struct Comparison<'a, R> {
    args: &'a Args,
    env: VectorEnv,
    reward: R,
    features: KHot,
    exact: Option<Exact<VectorEnv>>,
    runtime: Runtime,
}

fn compare<R>(args: &Args, env: VectorEnv, reward: R, features: KHot) -> Result<()>
where
    R: Reward<VectorStates> + Clone + 'static,
{
    let runtime = Runtime::new(args.threads, args.device)?;
    let exact = Exact::up_to(LIST_LIMIT, &env, &reward)?;
    let why_not_exact = exact.is_none().then(|| format!("there are more than {LIST_LIMIT} states"));
    let comparison = Comparison { args, env, reward, features, exact, runtime };
    let objectives = if args.only.is_empty() { Contender::value_variants() } else { &args.only };
    let sources = if args.source.is_empty() { Source::value_variants() } else { &args.source };
    let shown = if why_not_exact.is_some() { "elbo" } else { "tv" };
    let mut rows = vec![[shown.to_owned()].into_iter().chain(sources.iter().map(name_of)).collect()];
    let mut pairs = Vec::new();
    for objective in objectives {
        let mut row = vec![name_of(objective)];
        for source in sources {
            let mut pair = json!({ "objective": name_of(objective), "source": name_of(source), "tv": null });
            match comparison.train(*objective, *source) {
                Ok(figures) => figures.into_iter().for_each(|(name, value)| pair[name] = value),
                // A pair that isn't defined.
                Err(error @ Error::Missing { .. }) => pair["why"] = json!(error.to_string()),
                Err(error) => return Err(error),
            }
            row.push(pair[shown].as_f64().map_or("-".to_owned(), number));
            pairs.push(pair);
        }
        rows.push(row);
    }
    print(table(&rows).trim_end())?;
    if let Some(why) = &why_not_exact {
        print(format_args!(
            "\nNo exact distances: {why}. ELBO is the mean of log(P_B R / P_F): log Z less a distance."
        ))?;
    }
    if args.json {
        let exact = comparison.exact.as_ref();
        let worst = exact.map(|_| pairs.iter().filter_map(|pair| pair["tv"].as_f64()).fold(0.0, f64::max));
        let line = json!({ "example": "compare_objectives", "environment": name_of(&args.environment),
            "seed": args.seed, "steps": args.steps, "batch": args.batch, "threads": args.threads,
            "device": args.device.to_string(), "log_z_true": exact.map(|exact| exact.target.log_z), "worst_tv": worst,
            "exact": exact.is_some(), "why_not_exact": why_not_exact, "pairs": pairs });
        print(&line)?;
    }
    Ok(())
}

fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl<R> Comparison<'_, R>
where
    R: Reward<VectorStates> + Clone + 'static,
{
    /// The figures of one pair; [`Error::Missing`] for one that isn't defined.
    fn train(&self, objective: Contender, source: Source) -> Result<Vec<(&'static str, Value)>> {
        let (args, mut rng) = (self.args, Rng::seeded(self.args.seed));
        let needs = objective.build()?.needs();
        let network = MlpPolicyConfig {
            mlp: MlpConfig { hidden: vec![args.embedding; args.layers], ..MlpConfig::default() },
            backward: if objective.trains_backward() { BackwardPolicy::Separate } else { BackwardPolicy::Uniform },
            estimators: EstimatorsConfig::with_flow(needs.has(Quantity::LogFlow)),
            paths: needs.has(Quantity::LogPaths),
            ..MlpPolicyConfig::default()
        };
        let (device, kind) = (self.runtime.device(), tch::Kind::Float);
        let policy = MlpPolicy::new(&self.env, self.features, network, device, kind, &mut rng)?;
        if !objective.is_relative() {
            return self.train_policy(policy, self.reward.clone(), objective, source, rng);
        }
        let Some(exact) = &self.exact else {
            let (what, remedy) = ("the prior's probability of each object", "take an environment of fewer states");
            return Err(Error::missing("a relative objective", what, remedy));
        };
        let reward = OverPrior::new(self.env.clone(), self.reward.clone(), &exact.graph)?;
        self.train_policy(WithPrior { policy, prior: UniformPolicy }, reward, objective, source, rng)
    }

    fn train_policy(
        &self,
        policy: impl Policy<VectorEnv> + Send + 'static,
        reward: impl Reward<VectorStates> + 'static,
        objective: Contender,
        source: Source,
        rng: Rng,
    ) -> Result<Vec<(&'static str, Value)>> {
        let (args, replay) = (self.args, source.replay());
        let config = TrainerConfig {
            epsilon: Some(Schedule::Constant(if source == Source::Epsilon { 0.1 } else { 0.0 })),
            replay_path: replay.map_or(ReplayPath::Stored, |(_, path)| path),
            batch: args.batch,
            lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: args.steps },
            adam: AdamConfig { lr: args.lr, log_z_lr: 1e-1, ..AdamConfig::default() },
            ..TrainerConfig::default()
        };
        let mut trainer = Trainer::new(self.env.clone(), reward, policy, objective.build()?, config, rng)?;
        if let Some((config, _)) = replay {
            trainer = trainer.with_replay(ReplayBuffer::new(config)?);
        }
        let (mut log_z, mut seconds) = (f64::NAN, 0.0);
        let mut keep = |_: &Trainer<VectorEnv>, record: &mut Record| {
            log_z = record.stats.log_z;
            seconds += record.stats.seconds.iter().sum::<f64>();
            Ok(ControlFlow::Continue(()))
        };
        Fit::new(args.steps).observe(&mut keep).run(&mut trainer)?;
        let mut figures = match &self.exact {
            Some(exact) => vec![("tv", json!(exact.distances(&exact.learned(&trainer)?)?.tv))],
            None => sampled(&trainer, SAMPLES)?,
        };
        figures.extend([("log_z", json!(log_z)), ("train_s", json!(seconds))]);
        Ok(figures)
    }
}
