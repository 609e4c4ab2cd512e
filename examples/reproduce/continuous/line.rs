//! The line: steps of any length towards a mixture of Gaussians, a continuous environment without an exit.

use clap::Parser;
use gfn::metrics::{Distances, sample_objects};
use gfn::nn::{BackwardPolicy, MlpConfig};
use gfn::optim::AdamConfig;
use gfn::replay::ReplayBuffer;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::line::{Line, LinePolicy, LinePolicyConfig, LineReward, NormalMixtures};
use gfn_plot::{Curve, Panel};
use serde_json::json;

use crate::cli::{Common, Defaults, Distance, Report, members, refuse, train};

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
    #[arg(long, default_value_t = 10_000, value_parser = crate::cli::at_least_one)]
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
    let runtime = common.runtime()?;
    refuse("--exit-bias", common.exit_bias != 0.0, "no such flag: all trajectories of the line are equally long")?;
    let mut rng = Rng::seeded(common.seed);
    let (env, reward) = (Line::new(args.n_steps)?, LineReward::default());
    let defaults = Defaults { steps: 2_000, batch: 256, epsilon: 0.2, lr: 2e-3, ..Defaults::default() };
    let learned = LinePolicyConfig::default();
    let backward =
        if common.objective.trains_backward() { BackwardPolicy::Separate } else { BackwardPolicy::SharedTorso };
    let network = LinePolicyConfig {
        mlp: MlpConfig { hidden: vec![common.embedding.unwrap_or(64); common.layers.unwrap_or(3)], ..learned.mlp },
        mixtures: NormalMixtures { components: args.components, ..learned.mixtures },
        backward: common.backward.map_or(backward, Into::into),
        estimators: common.objective.estimators(),
    };
    let description = json!({ "example": "line", "n_steps": args.n_steps, "network": network });
    let policy = LinePolicy::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = common.trainer(&defaults);
    let config = TrainerConfig { adam: AdamConfig { max_norm: Some(MAX_NORM), ..config.adam }, ..config };
    let objective = common.objective.build()?;
    let trainer = Trainer::new(env, reward.clone(), policy, objective, config, rng)?.described_by(&description)?;
    let trainer = common.replayed(trainer, &defaults, ReplayBuffer::new)?;
    let target = target(&reward);
    let sample = |trainer: &Trainer<Line, LinePolicy>| -> Result<Vec<f64>> {
        let rng = &mut trainer.evaluation_rng();
        let samples = sample_objects(trainer.env(), trainer.policy(), args.samples, rng)?;
        let positions: Vec<f64> = samples.rows().map(|state| state[0]).collect();
        Ok(histogram(&positions))
    };
    let look = |trainer: &_| Ok(Some(Distances::between(&sample(trainer)?, &target)?.jsd));
    let Some((trainer, trained)) = train(trainer, common, ("line", &defaults), look, Vec::new())? else {
        return Ok(());
    };

    let learned = sample(&trainer)?;
    if !members::is_first() {
        return Ok(());
    }
    let jsd = Distances::between(&learned, &target)?.jsd;
    let (mut perfect_rng, mut floor) = (Rng::seeded(common.seed), 0.0);
    for _ in 0..FLOORS {
        let perfect = perfect(&target, args.samples, &mut perfect_rng);
        floor += Distances::between(&perfect, &target)?.jsd / FLOORS as f64;
    }

    let width = (RANGE.1 - RANGE.0) / BINS as f64;
    let curve = |name: &str, probs: &[f64]| {
        let at = |k: usize| RANGE.0 + (k as f64 + 0.5) * width;
        Curve::new(name, probs[..BINS].iter().enumerate().map(|(k, p)| (at(k), p / width)).collect::<Vec<_>>())
    };
    let panel = Panel::new("density of the end").labels("x", "").curve(curve("target", &target));
    let panel = panel.curve(curve("samples", &learned));
    let log_z_true = reward.log_z();
    let extra = vec![
        ("jsd_floor", json!(floor)),
        ("samples", json!(args.samples)),
        ("log_z_error", json!((trained.log_z - log_z_true).abs())),
    ];
    let distance = Distance { jsd: Some(jsd), ..Distance::default() };
    let title = format!("line of {} steps, {}", args.n_steps, common.objective.words());
    let (log_z_true, panels) = (Some(log_z_true), vec![panel]);
    Report { title, log_z_true, distance, extra, panels }.print(common, &trained)
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
