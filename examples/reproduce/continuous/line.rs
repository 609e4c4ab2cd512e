//! The line: steps of any length towards a mixture of Gaussians, a continuous environment without an exit.

use clap::Parser;
use gfn::metrics::Distances;
use gfn::nn::MlpConfig;
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn::{Result, Rng};
use gfn_gym::line::{Line, LinePolicy, LinePolicyConfig, LineReward, NormalMixtures};
use serde_json::json;

use crate::flags::{Common, refuse, words};
use crate::plot::{Curve, Panel};
use crate::run::{Recipe, Report, Run, sample};

/// Train a perceptron to walk along the line, and to end as a sum of two Gaussians is spread
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Steps of each trajectory
    #[arg(long, default_value_t = 5)]
    n_steps: usize,
    /// Components of each mixture of Gaussians
    #[arg(long, default_value_t = LinePolicyConfig::default().mixtures.components)]
    components: usize,
    /// Final samples that are compared with the target
    #[arg(long, default_value_t = 10_000, value_parser = crate::flags::at_least_one)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// The part of the line that is drawn and compared, and its cells.
const RANGE: (f64, f64) = (-1.0, 8.0);
const BINS: usize = 90;
/// Samples of perfect samplers that the noise floor is an average of.
const FLOORS: usize = 20;
const MAX_NORM: f64 = 10.0;

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    refuse(&["--exit-bias"], "no such flag: all trajectories of the line are equally long")?;
    let recipe = Recipe { steps: 2_000, batch: 256, epsilon: 0.2, lr: 2e-3, ..Recipe::default() };
    let title = format!("line of {} steps, {}", args.n_steps, words(&common.objective));
    let mut run = Run::begin(common, "line", title, recipe)?;
    run.config.adam.max_norm = Some(MAX_NORM);
    let (env, reward, mut rng) = (Line::new(args.n_steps)?, LineReward::default(), run.rng());
    let default = LinePolicyConfig::default();
    let network = LinePolicyConfig {
        mlp: MlpConfig { hidden: common.mlp(64, 3).hidden, ..default.mlp },
        mixtures: NormalMixtures { components: args.components, ..default.mixtures },
        backward: run.shared_backward(),
        estimators: common.objective.estimators(),
    };
    let description = json!({ "example": "line", "n_steps": args.n_steps, "network": network });
    let policy = LinePolicy::new(&env, network, run.device, tch::Kind::Float, &mut rng)?;
    let (target, log_z) = (target(&reward), reward.log_z());
    let trainer =
        Trainer::new(env, reward, policy, run.objective()?, run.config.clone(), rng)?.described_by(&description)?;
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let shares = |trainer: &Trainer<Line>| -> Result<Vec<f64>> {
        let rng = &mut trainer.evaluation_rng();
        let samples = sample(trainer.env(), trainer.policy(), args.samples, rng)?;
        Ok(histogram(&samples.rows().map(|state| state[0]).collect::<Vec<_>>()))
    };
    let look = |trainer: &_| Ok(Some(Distances::between(&shares(trainer)?, &target)?.jsd));
    let Some((trainer, trained)) = run.train(trainer, look, Vec::new())? else { return Ok(()) };

    let learned = shares(&trainer)?;
    let (mut perfect_rng, mut floor) = (run.rng(), 0.0);
    for _ in 0..FLOORS {
        let perfect = perfect(&target, args.samples, &mut perfect_rng);
        floor += Distances::between(&perfect, &target)?.jsd / FLOORS as f64;
    }
    let width = (RANGE.1 - RANGE.0) / BINS as f64;
    let curve = |name: &str, probs: &[f64]| {
        let at = |k: usize| RANGE.0 + (k as f64 + 0.5) * width;
        Curve::new(name, probs[..BINS].iter().enumerate().map(|(k, p)| (at(k), p / width)))
    };
    let panel = Panel::new("density of the end").labels("x", "").curve(curve("target", &target));
    let mut report = Report { panels: vec![panel.curve(curve("samples", &learned))], ..Report::default() };
    report.set("jsd", Distances::between(&learned, &target)?.jsd);
    report.set("jsd_floor", floor);
    report.set("samples", args.samples);
    report.set("log_z_true", log_z);
    report.set("log_z_error", (trained.log_z() - log_z).abs());
    run.print(&trained, report)
}

/// The cell of a position; the last one is for all that lies outside.
fn cell(x: f64) -> usize {
    let place = (x - RANGE.0) / (RANGE.1 - RANGE.0) * BINS as f64;
    if (0.0..BINS as f64).contains(&place) { place as usize } else { BINS }
}

fn histogram(positions: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; BINS + 1];
    positions.iter().for_each(|&x| shares[cell(x)] += 1.0 / positions.len() as f64);
    shares
}

/// The target's share of each cell, by the midpoint rule.
fn target(reward: &LineReward) -> Vec<f64> {
    const PARTS: usize = 20;
    let step = (RANGE.1 - RANGE.0) / (BINS * PARTS) as f64;
    let density = |k: usize| (reward.log_density(RANGE.0 + (k as f64 + 0.5) * step) - reward.log_z()).exp();
    let mut shares = vec![0.0; BINS + 1];
    (0..BINS * PARTS).for_each(|k| shares[k / PARTS] += density(k) * step);
    shares[BINS] = (1.0 - shares[..BINS].iter().sum::<f64>()).max(0.0);
    shares
}

/// The histogram of as many samples of the target itself.
fn perfect(target: &[f64], n: usize, rng: &mut Rng) -> Vec<f64> {
    let mut shares = vec![0.0; target.len()];
    for _ in 0..n {
        let mut rest = rng.uniform();
        let mut below = |p: &f64| {
            rest -= p;
            rest < 0.0
        };
        let cell = target.iter().position(&mut below).unwrap_or(target.len() - 1);
        shares[cell] += 1.0 / n as f64;
    }
    shares
}
