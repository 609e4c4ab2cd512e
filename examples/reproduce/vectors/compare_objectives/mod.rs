//! Every objective on every source of trajectories: one table and one plot of exact distances, at one budget; where there are too many
//! states for that, what samples say.

mod contender;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Arg, Parser, ValueEnum};
use contender::{Contender, OverPrior};
use gfn::distribution::GraphActionCategorical;
use gfn::env::{DiscreteEnv, EnumerableEnv, Reward, Slots, VectorEnv, VectorStates};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::objective::Quantity;
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy, WithPrior};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::ReplayEnv;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::Progress;
use gfn::train::{ReplayPath, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use gfn_gym::toy_dag::{ToyDag, ToyReward};
use gfn_plot::{Cell, Table};
use gfn_plot::{Curve, Figure, Panel, Scale};
use serde_json::{Value, json};

use crate::cli::{Exact, SAMPLES, sampled, try_folder};

/// Train by every objective on every source of trajectories, and compare exact distances
#[derive(Parser, Debug)]
#[command(arg = Arg::new("run").long("run").hide(true).value_parser(no_run))]
pub(crate) struct Args {
    /// What is sampled
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
    /// Folder for pictures
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

/// Says what to do where others take --run.
fn no_run(_: &str) -> std::result::Result<String, &'static str> {
    Err("this task makes a run for each pair, and keeps none; --out FOLDER has its pictures, --json its figures")
}

/// What is sampled.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Environment {
    /// A grid with the original reward
    Grid,
    /// The 11 states of Bengio et al. (2023), of which six can be finished
    Dag,
}

/// Where trajectories come from.
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
    /// What pictures call it.
    fn words(self) -> &'static str {
        match self {
            Self::OnPolicy => "of the policy itself",
            Self::Epsilon => "with a tenth of the actions uniform",
            Self::Fifo => "half from the newest",
            Self::Best => "half from the best",
            Self::Prioritised => "half from a buffer, by reward",
            Self::Terminating => "half on new paths to objects of a buffer",
        }
    }

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

/// Points of each curve.
const LOOKS: usize = 20;

/// Curves of one panel, each of its own colour.
const COLOURS: usize = 7;

/// What one pair came to.
enum Pair {
    Trained { loss: f64, log_z: f64, seconds: f64, measured: Measured },
    Undefined(String),
}

/// What is known of a policy.
enum Measured {
    /// Its exact distance, in the end and on the way there.
    Exactly { tv: f64, curve: Vec<(f64, f64)> },
    /// Figures of its samples, where states can't be listed.
    Sampled(Vec<(&'static str, Value)>),
}

impl Measured {
    /// What the table shows of it, under [`column`].
    fn shown(&self) -> Cell {
        match self {
            Self::Exactly { tv, .. } => (*tv).into(),
            Self::Sampled(figures) => {
                let elbo = figures.iter().find(|(name, _)| *name == "elbo");
                elbo.and_then(|(_, value)| value.as_f64()).into()
            }
        }
    }
}

fn column(exact: bool) -> String {
    if exact { "exact TV".into() } else { "ELBO".into() }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match args.environment {
        Environment::Grid => {
            let env = HyperGrid::new(2, args.height)?;
            compare(args, (&env, &OriginalReward::standard(&env)?, KHot::new(2, args.height)))
        }
        Environment::Dag => compare(args, (&VectorEnv(ToyDag), &ToyReward::default(), KHot::new(1, ToyDag::N_STATES))),
    }
}

fn compare<E, R>(args: &Args, task: (&E, &R, KHot)) -> Result<()>
where
    E: EnumerableEnv + DiscreteEnv<States = VectorStates, Actions = Slots> + Clone + 'static,
    E::Key: 'static,
    R: Reward<VectorStates> + Clone + 'static,
{
    args.out.as_deref().map_or(Ok(()), try_folder)?;
    let runtime = Runtime::new(args.threads, args.device)?;
    let exact = match Exact::new(LIST_LIMIT, task.0, task.1) {
        Err(Error::TooManyStates { .. }) => None,
        exact => Some(exact?),
    };
    let why_not_exact = exact.is_none().then(|| format!("there are more than {LIST_LIMIT} states"));
    let objectives = if args.only.is_empty() { Contender::value_variants() } else { &args.only };
    let sources = if args.source.is_empty() { Source::value_variants() } else { &args.source };
    let mut header = vec![column(exact.is_some())];
    header.extend(sources.iter().map(name_of));
    let mut table = Table::new(header);
    let mut curves = Vec::new();
    let mut pairs = Vec::new();
    let mut progress = Progress::new((objectives.len() * sources.len()) as u64, "pairs");
    for objective in objectives {
        let mut row = vec![Cell::from(name_of(objective))];
        for source in sources {
            let mut pair = json!({ "objective": name_of(objective), "source": name_of(source), "tv": null });
            match train(args, &runtime, task, exact.as_ref(), *objective, *source)? {
                Pair::Trained { loss, log_z, seconds, measured } => {
                    progress.update(pairs.len() as u64 + 1, loss, Some(log_z));
                    row.push(measured.shown());
                    (pair["log_z"], pair["train_s"]) = (json!(log_z), json!(seconds));
                    match measured {
                        Measured::Exactly { tv, curve } => {
                            pair["tv"] = json!(tv);
                            if *source == sources[0] {
                                curves.push(Curve::new(name_of(objective), curve));
                            }
                        }
                        Measured::Sampled(figures) => {
                            figures.into_iter().for_each(|(name, value)| pair[name] = value);
                        }
                    }
                }
                Pair::Undefined(why) => {
                    row.push("-".into());
                    pair["why"] = json!(why);
                }
            }
            pairs.push(pair);
        }
        table.push(row);
    }
    progress.finish();
    print!("{table}");
    if let Some(why) = &why_not_exact {
        println!(
            "\nNo exact distances: {why}. ELBO is the mean of log(P_B R / P_F) of {SAMPLES} samples: log Z less a distance."
        );
    }
    if let (Some(folder), true) = (&args.out, exact.is_some()) {
        for name in ["objectives.svg", "objectives.png"] {
            figure(sources[0].words(), &curves).write(folder.join(name))?;
            eprintln!("wrote {}", folder.join(name).display());
        }
    }
    if args.json {
        let worst = exact.is_some().then(|| pairs.iter().filter_map(|pair| pair["tv"].as_f64()).fold(0.0, f64::max));
        println!(
            "{}",
            json!({ "example": "compare_objectives", "environment": name_of(&args.environment), "seed": args.seed,
                "steps": args.steps, "batch": args.batch, "threads": args.threads, "device": args.device.to_string(),
                "log_z_true": exact.as_ref().map(|exact| exact.target.log_z), "worst_tv": worst, "exact": exact.is_some(),
                "why_not_exact": why_not_exact, "pairs": pairs })
        );
    }
    Ok(())
}

/// The curves in panels of few enough to be told apart by colour, all panels with the same axis.
fn figure(source: &str, curves: &[Curve]) -> Figure {
    let values: Vec<f64> = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).collect();
    let n = curves.len().div_ceil(COLOURS);
    let panel = |(k, curves): (usize, &[Curve])| {
        let title = if n == 1 { "exact TV".into() } else { format!("exact TV ({} of {n})", k + 1) };
        let panel = Panel::new(title).labels("trajectories", "").y_scale(Scale::Log);
        curves.iter().cloned().fold(panel.y_includes(values.iter().copied()), Panel::curve)
    };
    let title = format!("objectives by their flags, trajectories {source}");
    curves.chunks(COLOURS).enumerate().map(panel).fold(Figure::new(title), Figure::panel)
}

fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Trains one pair; a pair that isn't defined says why.
fn train<E, R>(
    args: &Args,
    runtime: &Runtime,
    (env, reward, features): (&E, &R, KHot),
    exact: Option<&Exact<E>>,
    objective: Contender,
    source: Source,
) -> Result<Pair>
where
    E: EnumerableEnv + DiscreteEnv<States = VectorStates, Actions = Slots> + Clone + 'static,
    E::Key: 'static,
    R: Reward<VectorStates> + Clone + 'static,
{
    let mut rng = Rng::seeded(args.seed);
    let needs = objective.build()?.needs();
    let network = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![args.embedding; args.layers], ..MlpConfig::default() },
        backward: if objective.trains_backward() { BackwardPolicy::Separate } else { BackwardPolicy::Uniform },
        estimators: EstimatorsConfig::with_flow(needs.has(Quantity::LogFlow)),
        paths: needs.has(Quantity::LogPaths),
        ..MlpPolicyConfig::default()
    };
    let policy = MlpPolicy::new(env, features, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    if objective.is_relative() {
        let Some(exact) = exact else {
            let why =
                format!("it needs the prior's probability of each object, and there are more than {LIST_LIMIT} states");
            return Ok(Pair::Undefined(why));
        };
        let reward = OverPrior::new(env.clone(), reward.clone(), &exact.graph)?;
        let policy = WithPrior { policy, prior: UniformPolicy };
        return train_policy(args, (env, reward, policy), Some(exact), (objective, source), rng);
    }
    train_policy(args, (env, reward.clone(), policy), exact, (objective, source), rng)
}

fn train_policy<E, R, P>(
    args: &Args,
    (env, reward, policy): (&E, R, P),
    exact: Option<&Exact<E>>,
    (objective, source): (Contender, Source),
    rng: Rng,
) -> Result<Pair>
where
    E: EnumerableEnv + ReplayEnv + Clone,
    R: Reward<E::States> + 'static,
    P: Policy<E, Dist = GraphActionCategorical>,
{
    let steps = args.steps;
    let replay = source.replay();
    let epsilon = if source == Source::Epsilon { 0.1 } else { 0.0 };
    let config = TrainerConfig {
        epsilon: Some(Schedule::Constant(epsilon)),
        replay_path: replay.map_or(ReplayPath::Stored, |(_, path)| path),
        batch: args.batch,
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps },
        adam: AdamConfig { lr: args.lr, log_z_lr: 1e-1, ..AdamConfig::default() },
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env.clone(), reward, policy, objective.build()?, config, rng)?;
    if let Some((config, _)) = replay {
        trainer = trainer.with_replay(ReplayBuffer::new(config)?);
    }
    let mut curve = Vec::new();
    let (mut loss, mut log_z, mut seconds) = (f64::NAN, f64::NAN, 0.0);
    while trainer.steps_done() < steps {
        let step_started = Instant::now();
        match trainer.step() {
            Ok(stats) => (loss, log_z) = (stats.loss, stats.log_z),
            Err(error @ Error::Missing { .. }) => return Ok(Pair::Undefined(error.to_string())),
            Err(error) => return Err(error),
        }
        seconds += step_started.elapsed().as_secs_f64();
        let done = trainer.steps_done();
        if let (Some(exact), true) = (exact, args.out.is_some() && done.is_multiple_of((steps / LOOKS).max(1))) {
            let tv = exact.learned(&trainer)?.0.tv.unwrap_or(f64::NAN);
            curve.push(((done * args.batch) as f64, tv));
        }
    }
    let measured = match exact {
        Some(exact) => {
            let tv = exact.learned(&trainer)?.0.tv.unwrap_or(f64::NAN);
            Measured::Exactly { tv, curve }
        }
        None => Measured::Sampled(sampled(&trainer, SAMPLES)?),
    };
    Ok(Pair::Trained { loss, log_z, seconds, measured })
}
