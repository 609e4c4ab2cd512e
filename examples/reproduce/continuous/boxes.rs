//! The unit box: a continuous environment under the same sampler, losses and trainer as the graphs.

use clap::Parser;
use gfn::env::{Reals, Rows, log_rewards};
use gfn::nn::MlpConfig;
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{ReplayEnv, Walks};
use gfn::train::{ReplayPath, Trainer};
use gfn::{Error, Result, Rng};
use gfn_gym::boxes::{BetaMixtures, BoxEnv, BoxPolicy, BoxPolicyConfig, BoxReward, Coupling, GridHistogram};
use serde_json::json;

use crate::flags::{Common, words};
use crate::plot::Panel;
use crate::run::{Recipe, Report, Run, sample};

/// Train a perceptron to sample the points of the unit square
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Least length of a step along each axis; with --polar the radius of a step
    #[arg(long, default_value_t = 0.25)]
    delta: f64,
    /// Steps along quarter-circles
    #[arg(long)]
    polar: bool,
    /// Components of each mixture of Beta distributions
    #[arg(long, default_value_t = BoxPolicyConfig::default().mixtures.components)]
    components: usize,
    /// Largest alpha and beta of a Beta distribution; the least is 0.6
    #[arg(long, default_value_t = BoxPolicyConfig::default().mixtures.max_concentration)]
    max_concentration: f64,
    /// Mixtures of their own for each axis, in place of one of products
    #[arg(long)]
    per_axis: bool,
    /// Share of each batch that leads to uniform points of the box, by steps back from them; 0.25 with --polar, where modes off the
    /// diagonal are many steps one way and seldom met, unless the objective learns from the policy's own trajectories; else 0
    #[arg(long)]
    points: Option<f64>,
    /// Final samples that are compared with the target
    #[arg(long, default_value_t = 10_000, value_parser = crate::flags::at_least_one)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// Cells along each axis of the histogram that samples are compared by.
const BINS: usize = 50;
/// Samples of perfect samplers that the noise floor is an average of.
const FLOORS: usize = 20;
/// Norm above which gradients are clipped: a density has no upper bound.
const MAX_NORM: f64 = 10.0;
/// Uniform points that --points draws from.
const POINTS: usize = 50_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let (shape, objective) = (if args.polar { "polar" } else { "Cartesian" }, words(&common.objective));
    let training = Recipe { steps: 5_000, batch: 128, log_z_lr: 1e-2, ..Recipe::default() };
    let mut run = Run::begin(common, "box", format!("{shape} box, delta {}, {objective}", args.delta), training)?;
    let mut rng = run.rng();
    let env = if args.polar { BoxEnv::polar(args.delta)? } else { BoxEnv::cartesian(2, args.delta)? };
    let reward = BoxReward::default();
    let default = BoxPolicyConfig::default();
    let network = BoxPolicyConfig {
        mlp: MlpConfig { hidden: common.mlp(128, 4).hidden, ..default.mlp },
        mixtures: BetaMixtures {
            coupling: if args.per_axis { Coupling::PerAxis } else { Coupling::Joint },
            components: args.components,
            max_concentration: args.max_concentration,
            ..default.mixtures
        },
        backward: run.shared_backward(),
        estimators: common.objective.estimators(),
    };
    let share = share_of_points(args)?;
    let mut description = json!({ "example": "box", "delta": args.delta, "polar": args.polar, "network": network });
    let policy = BoxPolicy::new(&env, network, run.device, tch::Kind::Float, &mut rng)?;
    run.config.adam.max_norm = Some(MAX_NORM);
    let mut data = None;
    if share > 0.0 {
        description["points"] = json!(share);
        data = Some(uniform_points(&env, &reward, &mut rng)?);
        run.config.source = source(share, common.replay(&run.recipe)?.is_some(), run.config.batch)?;
        run.config.replay_path = ReplayPath::PolicyBackward;
    }
    let (log_z, grid) = (reward.log_z(2), GridHistogram::new(BINS, reward.cells(BINS))?);
    let mut trainer =
        Trainer::new(env, reward, policy, run.objective()?, run.config.clone(), rng)?.described_by(&description)?;
    if let Some(data) = data {
        trainer = trainer.with_data(data);
    }
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let sample = |trainer: &Trainer<BoxEnv>| {
        sample(trainer.env(), trainer.policy(), args.samples, &mut trainer.evaluation_rng())
    };
    let look = |trainer: &_| Ok(Some(grid.jsd(&sample(trainer)?)?));
    let Some((trainer, trained)) = run.train(trainer, look, Vec::new())? else { return Ok(()) };

    let points = sample(&trainer)?;
    let mut report = Report { panels: heat_maps(&grid, &points)?.to_vec(), ..Report::default() };
    report.set("jsd", grid.jsd(&points)?);
    report.set("jsd_floor", grid.floor(args.samples, FLOORS, &mut run.rng())?);
    report.set("samples", points.len());
    // Their rewards aren't among the calls that training counts.
    report.set("given_points", if share > 0.0 { POINTS } else { 0 });
    report.set("log_z_true", log_z);
    report.set("log_z_error", (trained.log_z() - log_z).abs());
    run.print(&trained, report)
}

/// The share that --points says, or is by default.
fn share_of_points(args: &Args) -> Result<f64> {
    let on_policy = args.common.objective.on_policy();
    let share = args.points.unwrap_or(if args.polar && !on_policy { 0.25 } else { 0.0 });
    let refuse = |expected| Err(Error::config("--points", share, expected));
    match share {
        _ if !(0.0..1.0).contains(&share) => refuse("a share of at least 0 and below 1"),
        _ if share > 0.0 && on_policy => refuse("0 for an objective that learns from the policy's own trajectories"),
        _ => Ok(share),
    }
}

/// A share of each batch from uniform points; what is left is sampled afresh, half of it replayed if there is a buffer.
fn source(share: f64, replayed: bool, batch: usize) -> Result<DataSource> {
    let replay = if replayed { (1.0 - share) / 2.0 } else { 0.0 };
    let source = DataSource::new(1.0 - share - replay, replay, share)?;
    match source.counts(batch).offline {
        0 => {
            let got = format!("{share} of {batch} trajectories");
            Err(Error::config("--points", got, "0, or a share that is at least one trajectory"))
        }
        _ => Ok(source),
    }
}

/// Uniform points of the box, which are learned from by steps back of P_B.
fn uniform_points(env: &BoxEnv, reward: &BoxReward, rng: &mut Rng) -> Result<ReplayBuffer<BoxEnv>> {
    let mut terminal = Reals::filled(env.ndim(), POINTS, 0.0);
    terminal.values_mut().iter_mut().for_each(|x| *x = rng.uniform());
    let log_r = log_rewards(reward, &terminal, None)?;
    let points = Walks { actions: env.no_actions(), offsets: vec![0; POINTS + 1], terminal, conditions: None };
    let config = ReplayConfig { capacity: POINTS, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut data = ReplayBuffer::new(config)?.terminal_only();
    data.add(env, &points, &log_r)?;
    Ok(data)
}

/// The target and the samples, on one scale.
fn heat_maps(grid: &GridHistogram, points: &Reals) -> Result<[Panel; 2]> {
    let n = points.len() as f64;
    let shares: Vec<f64> = grid.counts(points)?.iter().map(|count| count / n).collect();
    let max = grid.target().iter().copied().fold(0.0, f64::max);
    Ok([("target", grid.target()), ("samples", &shares)].map(|(title, values)| {
        Panel::heat_map(title, BINS, values.iter().copied(), max).labels("x", "y").colour_label("probability of a cell")
    }))
}
