//! The line: steps of any length towards a mixture of Gaussians, a continuous environment without an exit.

use gfn::metrics::Cumulative;
use gfn_gym::line::{Line, LinePolicy, LinePolicyConfig, LineReward};

use super::boxes::{FLOORS, MAX_NORM};
use crate::prelude::*;

/// Train a perceptron to move along the line, and to end as a sum of two Gaussians is spread
#[derive(Args)]
pub(crate) struct Lines {
    /// Final samples that are compared with the target
    #[arg(long, default_value_t = 10_000, value_parser = at_least_one)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// Steps of each trajectory.
const STEPS: usize = 5;
/// The part of the line that is drawn and compared, and its cells.
const RANGE: (f64, f64) = (-1.0, 8.0);
const BINS: usize = 90;
/// Parts of a cell, to integrate the target.
const PARTS: usize = 20;

impl Task for Lines {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        refuse(&["--exit-bias"], "no such flag: all trajectories of the line are equally long")?;
        let recipe = Recipe { steps: 2_000, batch: 256, epsilon: 0.2, lr: 2e-3, ..Recipe::default() };
        let title = format!("line of {STEPS} steps, {}", common.objective.words());
        let mut run = Run::begin(common, "line", title, recipe)?;
        run.config.adam.max_norm = Some(MAX_NORM);
        let (env, reward, mut rng) = (Line::new(STEPS)?, LineReward::default(), run.rng());
        let default = LinePolicyConfig::default();
        let network = LinePolicyConfig {
            mlp: MlpConfig { hidden: common.mlp(64, 3).hidden, ..default.mlp },
            backward: common.backward(BackwardPolicy::SharedTorso),
            estimators: common.estimators(),
            ..default
        };
        let description = run.describe(json!({ "n_steps": STEPS }), &network);
        let policy = LinePolicy::new(&env, network, run.device, Kind::Float, &mut rng)?;
        let (target, log_z) = (target(&reward), reward.log_z());
        let trainer = run.trainer(env, reward, policy, rng, &description)?;
        let shares = |trainer: &Trainer<Line>| -> Result<Vec<f64>> {
            let rng = &mut trainer.evaluation_rng();
            let samples = sample(trainer.env(), trainer.policy(), self.samples, rng)?;
            Ok(histogram(samples.rows().map(|state| cell(state[0])), self.samples))
        };
        let measure = |trainer: &_| Ok(jsd(Some(Distances::between(&shares(trainer)?, &target)?.jsd)));
        let Some((trainer, mut report)) = run.train(trainer, measure, Vec::new())? else { return Ok(()) };

        let learned = shares(&trainer)?;
        let (perfect, mut rng, mut floor) = (Cumulative::new(&target), run.rng(), 0.0);
        for _ in 0..FLOORS {
            let perfect = histogram((0..self.samples).map(|_| perfect.draw(&mut rng)), self.samples);
            floor += Distances::between(&perfect, &target)?.jsd / FLOORS as f64;
        }
        let width = (RANGE.1 - RANGE.0) / BINS as f64;
        let curve = |name: &str, probs: &[f64]| {
            let at = |k: usize| RANGE.0 + (k as f64 + 0.5) * width;
            Curve::new(name, probs[..BINS].iter().enumerate().map(|(k, p)| (at(k), p / width)))
        };
        let panel = Panel::new("density of the end").labels("x", "").curve(curve("target", &target));
        report.panels.push(panel.curve(curve("samples", &learned)));
        report.extend(json!({ "jsd": Distances::between(&learned, &target)?.jsd, "jsd_floor": floor,
            "samples": self.samples, "log_z_true": log_z, "log_z_error": (report.stats.log_z() - log_z).abs() }));
        run.print(report)
    }
}

/// Returns the cell of a position; the last one is for all positions outside.
fn cell(x: f64) -> usize {
    let place = (x - RANGE.0) / (RANGE.1 - RANGE.0) * BINS as f64;
    if (0.0..BINS as f64).contains(&place) { place as usize } else { BINS }
}

/// Returns the shares of `n` cells.
fn histogram(cells: impl Iterator<Item = usize>, n: usize) -> Vec<f64> {
    let mut shares = vec![0.0; BINS + 1];
    cells.for_each(|cell| shares[cell] += 1.0 / n as f64);
    shares
}

/// Returns the target's share of each cell, by the midpoint rule.
fn target(reward: &LineReward) -> Vec<f64> {
    let step = (RANGE.1 - RANGE.0) / (BINS * PARTS) as f64;
    let density = |k: usize| (reward.log_density(RANGE.0 + (k as f64 + 0.5) * step) - reward.log_z()).exp();
    let mut shares = vec![0.0; BINS + 1];
    (0..BINS * PARTS).for_each(|k| shares[k / PARTS] += density(k) * step);
    shares[BINS] = (1.0 - shares[..BINS].iter().sum::<f64>()).max(0.0);
    shares
}
