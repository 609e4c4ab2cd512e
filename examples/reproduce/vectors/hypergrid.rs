//! The hyper-grid: a tensor-state environment under the same sampler, losses and trainer as the graphs.

use clap::Parser;
use gfn::env::{Rows, VectorEnv, VectorStates};
use gfn::metrics::modes_covered;
use gfn::nn::BackwardPolicy;
use gfn::policy::KHot;
use gfn::replay::{Diversity, ReplayBuffer};
use gfn::run::{CountModes, Observer};
use gfn::{Error, Result};
use gfn_gym::hypergrid::{GridReward, HyperGrid, OriginalReward, Preset, RewardKind};
use serde_json::json;

use super::perceptron;
use crate::flags::{BufferName, Common, ObjectiveName, refuse};
use crate::plot::Panel;
use crate::run::{Exact, Recipe, Run, members, sample};

/// Train a perceptron to sample the points of a grid
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Dimensions
    #[arg(long, default_value_t = 2)]
    ndim: usize,
    /// Points along each dimension
    #[arg(long, default_value_t = 8)]
    height: usize,
    /// The reward: original, cosine, sparse, deceptive, bitwise-xor, multiplicative-coprime, conditional-multiscale, uniform-random
    /// or corrupted
    #[arg(long, default_value_t = RewardKind::Original)]
    reward: RewardKind,
    /// The reward's settings by name: easy, medium, hard, challenging, impossible, ...; the reward's own if none is named
    #[arg(long)]
    preset: Option<Preset>,
    /// Smallest reward of the original one, in place of 0.1
    #[arg(long, conflicts_with = "preset")]
    r0: Option<f64>,
    /// Points of the replay buffer lie farther apart than this, 2 for each coordinate in which they differ; any may be kept unless told so
    #[arg(long)]
    diverse: Option<f64>,
    #[command(flatten)]
    common: Common,
}

/// States up to which the distribution is exact: 20^4.
const EXACT_LIMIT: usize = 160_000;
/// Final samples from which modes are counted where probabilities aren't known.
const SAMPLES: usize = 10_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let grid = HyperGrid::new(args.ndim, args.height)?;
    let env = grid.env();
    let reward = reward(args, &grid)?;
    // In closed form, or by adding up the points.
    let totals = reward.totals(EXACT_LIMIT as u64).ok();
    let recipe = Recipe {
        steps: if args.ndim <= 2 { 2_000 } else { 5_000 },
        batch: 16,
        buffer: BufferName::Fifo,
        epsilon: 0.0,
        lr: if matches!(common.objective, ObjectiveName::Db | ObjectiveName::Subtb) { 2e-3 } else { 1e-3 },
        exact_up_to: EXACT_LIMIT,
        ..Recipe::default()
    };
    let title = format!("grid of {}^{}, {} reward", args.height, args.ndim, args.reward);
    let run = Run::begin(common, "hypergrid", title, recipe)?;
    let task = json!({ "ndim": args.ndim, "height": args.height, "reward": args.reward, "preset": args.preset,
        "r0": args.r0 });
    let features = KHot::new(grid.ndim(), grid.height());
    let trainer = perceptron(&run, env, features, reward.clone(), BackwardPolicy::SharedTorso, &task)?;
    let trainer = run.replayed(trainer, |config| match args.diverse {
        Some(apart) => Ok(ReplayBuffer::new(config)?.diverse(Diversity::new(apart, 1.0, features)?)),
        None => ReplayBuffer::new(config),
    })?;
    if trainer.replay().is_none() {
        refuse(&["--diverse"], "no such flag without a replay buffer: give --replay, too")?;
    }
    let mut modes = members::sees_all().then(|| CountModes::new(|points: &VectorStates| reward.is_mode(points)));
    let observers = modes.iter_mut().map(|modes| modes as &mut dyn Observer<_>).collect();
    let Some(mut learned) = run.learn(trainer, "objects", observers)? else { return Ok(()) };

    let trainer = &learned.trainer;
    let points = &sample(trainer.env(), trainer.policy(), SAMPLES, &mut trainer.evaluation_rng())?;
    let valid = points.rows().filter(|point| point.iter().all(|&x| usize::from(x) < args.height)).count();
    let is_mode = reward.is_mode(points);
    let sampled_modes: Vec<usize> = (0..SAMPLES).filter(|&k| is_mode[k]).collect();
    let report = &mut learned.report;
    report.set("modes_found", points.select(&sampled_modes).group().first.len());
    if let Some(exact) = &learned.exact {
        let modes = reward.is_mode(exact.graph.states());
        report.set("modes_found", modes_covered(&exact.probs, &exact.target.probs, &modes)?);
        if args.ndim == 2 {
            report.panels.extend(heat_maps(&grid, exact));
        }
    }
    report.set("modes_total", totals.map(|totals| totals.n_modes));
    report.set("mode_share", sampled_modes.len() as f64 / SAMPLES as f64);
    report.set("valid_share", valid as f64 / SAMPLES as f64);
    report.set("samples", SAMPLES);
    totals.iter().for_each(|totals| report.set("log_z_true", totals.log_z));
    learned.print()
}

/// The reward that the flags name.
fn reward(args: &Args, env: &HyperGrid) -> Result<Box<dyn GridReward>> {
    match (args.preset, args.r0) {
        (Some(preset), _) => args.reward.preset(env, preset),
        (None, None) => args.reward.standard(env),
        (None, Some(r0)) if args.reward == RewardKind::Original => Ok(OriginalReward::new(env, r0, 0.5, 2.0)?.boxed()),
        (None, Some(r0)) => Err(Error::config(
            "--r0",
            format!("{r0} with --reward {}", args.reward),
            "--reward original; other rewards take --preset",
        )),
    }
}

/// The target and the learned distribution, on one scale.
fn heat_maps(grid: &HyperGrid, exact: &Exact<VectorEnv>) -> [Panel; 2] {
    let (target, learned) = (&exact.target.probs, &exact.probs);
    let max = target.iter().chain(learned).copied().fold(0.0, f64::max);
    // States are listed as they are reached.
    let points = exact.graph.states();
    let cells = |values: &[f64]| {
        let mut cells = vec![0.0; values.len()];
        points.rows().zip(values).for_each(|(point, &value)| cells[grid.index(point) as usize] = value);
        cells
    };
    [("target", target), ("learned", learned)].map(|(title, values)| {
        Panel::heat_map(title, grid.height(), cells(values), max).labels("x", "y").colour_label("probability")
    })
}
