//! Tasks on the unit box and on the line. These environments are continuous, and use the same sampler, losses
//! and trainer as graphs.

use gfn::metrics::Cumulative;
use gfn::rollout::{ReplayEnv, Walks};
use gfn_gym::boxes::{BetaMixtures, BoxEnv, BoxPolicy, BoxPolicyConfig, BoxReward, Coupling, GridHistogram};
use gfn_gym::line::{Line, LinePolicy, LinePolicyConfig, LineReward};

use crate::prelude::*;

/// Train a perceptron to sample the points of the unit square
#[derive(Args)]
pub(crate) struct Boxes {
    /// Smallest length of a step along each axis. With --polar it is the radius of every step
    #[arg(long, default_value_t = 0.25)]
    delta: f64,
    /// Let each step end on a quarter-circle around its start, instead of anywhere in a rectangle
    #[arg(long)]
    polar: bool,
    /// Number of components of each mixture of Beta distributions
    #[arg(long, default_value_t = BoxPolicyConfig::default().mixtures.components)]
    components: usize,
    /// Largest value of the parameters alpha and beta of a Beta distribution; the smallest value is 0.6
    #[arg(long, default_value_t = BoxPolicyConfig::default().mixtures.max_concentration)]
    max_concentration: f64,
    /// Use a separate mixture for each axis, instead of one mixture of products of Beta distributions
    #[arg(long)]
    per_axis: bool,
    #[command(flatten)]
    common: Common,
}

/// The number of samples of the box that are compared with the target.
const SAMPLES: usize = 10_000;
/// The number of cells along each axis of the histogram of samples.
const BINS: usize = 50;
/// The number of simulated perfect samplers over which the noise floor is averaged. The noise floor is the
/// JSD between a perfect sampler's samples and the target.
const FLOORS: usize = 20;
/// The norm to which gradients are clipped in the tasks on the box and on the line. A density has no upper
/// bound, so its gradient may be very large.
const MAX_NORM: f64 = 10.0;
/// The share of each batch, with --polar, that consists of backward trajectories from uniform points of the
/// box. The modes near the corners (0, 1) and (1, 0) are many steps away from the start at (0, 0), so
/// on-policy trajectories rarely find them.
const POLAR_SHARE: f64 = 0.25;
/// The number of uniform points that backward trajectories start from.
const POINTS: usize = 50_000;

impl Task for Boxes {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        let recipe = Recipe { steps: 5_000, batch: 128, log_z_lr: 1e-2, ..Recipe::default() };
        let mut run = Run::begin(common, recipe)?;
        run.config.adam.max_norm = Some(MAX_NORM);
        let mut rng = run.rng();
        let env = if self.polar { BoxEnv::polar(self.delta)? } else { BoxEnv::cartesian(2, self.delta)? };
        let reward = BoxReward::default();
        let default = BoxPolicyConfig::default();
        let network = BoxPolicyConfig {
            mlp: MlpConfig { hidden: common.mlp(128, 4).hidden, ..default.mlp },
            mixtures: BetaMixtures {
                coupling: if self.per_axis { Coupling::PerAxis } else { Coupling::Joint },
                components: self.components,
                max_concentration: self.max_concentration,
                ..default.mixtures
            },
            backward: common.backward(BackwardPolicy::SharedTorso),
            estimators: common.estimators(),
        };
        let description = run.describe(json!({ "delta": self.delta, "polar": self.polar }), &network);
        let policy = BoxPolicy::new(&env, network, run.device, Kind::Float, &mut rng)?;
        let mut data = None;
        if self.polar && !common.objective.is_on_policy() {
            data = Some(uniform_points(&env, &reward, &mut rng)?);
            // The rest of the batch is sampled on-policy. If there is a replay buffer, half of this rest is
            // replayed instead.
            let has_replay = common.replay(&run.recipe).is_some();
            let replay = if has_replay { (1.0 - POLAR_SHARE) / 2.0 } else { 0.0 };
            run.config.source = DataSource::new(1.0 - POLAR_SHARE - replay, replay, POLAR_SHARE)?;
            run.config.replay_path = ReplayPath::PolicyBackward;
        }
        // The rewards of the uniform points were computed before the training, so the trainer doesn't count
        // them as reward calls. The number of these points is therefore a separate entry of the report.
        let n_given = if data.is_some() { POINTS } else { 0 };
        let log_z = reward.log_z(2);
        let grid = GridHistogram::new(BINS, reward.cells(BINS))?;
        let mut trainer = run.trainer(env, reward, policy, rng, &description)?;
        if let Some(data) = data {
            trainer = trainer.with_data(data);
        }
        let measure = |trainer: &_| Ok(jsd(Some(grid.jsd(&evaluated(trainer, SAMPLES)?)?)));
        run.finish(trainer, measure, Vec::new(), |trainer, report| {
            let points = evaluated(trainer, SAMPLES)?;
            let shares = grid.counts(&points)?.iter().map(|count| count / SAMPLES as f64).collect();
            report.panels.extend(heat_maps(BINS, [("target", grid.target().to_vec()), ("samples", shares)]));
            let floor = grid.floor(SAMPLES, FLOORS, &mut run.rng())?;
            report.extend(json!({ "jsd": grid.jsd(&points)?, "jsd_floor": floor, "samples": SAMPLES,
                "given_points": n_given }));
            report.log_z_error(log_z);
            Ok(())
        })
    }
}

/// Returns a data set of uniform points of the box, from which backward trajectories are drawn.
fn uniform_points(env: &BoxEnv, reward: &BoxReward, rng: &mut Rng) -> Result<ReplayBuffer<BoxEnv>> {
    let mut terminal = Reals::filled(env.ndim(), POINTS, 0.0);
    for x in terminal.values_mut().iter_mut() {
        *x = rng.uniform();
    }
    let log_r = log_rewards(reward, &terminal, None)?;
    let points =
        Walks { actions: env.no_actions(), offsets: vec![0; POINTS + 1], terminal, conditions: None };
    let (eviction, draw) = NEWEST;
    let mut data = ReplayBuffer::new(ReplayConfig { capacity: POINTS, eviction, draw })?.terminal_only();
    data.add(env, &points, &log_r)?;
    Ok(data)
}

/// Train a perceptron to move along the line, so that its end points have the density of a sum of two
/// Gaussians
#[derive(Args)]
pub(crate) struct Lines {
    /// Number of final samples that are compared with the target
    #[arg(long, default_value_t = 10_000, value_parser = at_least_one)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// The number of steps of each trajectory on the line.
const STEPS: usize = 5;
/// The interval of the line on which the densities of the samples and of the target are plotted and compared.
const RANGE: (f64, f64) = (-1.0, 8.0);
/// The number of cells into which `RANGE` is divided for the histogram of samples.
const CELLS: usize = 90;
/// The number of equal pieces into which a cell is divided to integrate the target's density over the cell.
/// The density is computed at the midpoint of each piece.
const PARTS: usize = 20;

impl Task for Lines {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        refuse(
            &["--exit-bias"],
            "a command without this flag, because all trajectories of the line are equally long",
        )?;
        let recipe = Recipe { steps: 2_000, batch: 256, epsilon: 0.2, lr: 2e-3, ..Recipe::default() };
        let mut run = Run::begin(common, recipe)?;
        run.config.adam.max_norm = Some(MAX_NORM);
        let reward = LineReward::default();
        let default = LinePolicyConfig::default();
        let network = LinePolicyConfig {
            mlp: MlpConfig { hidden: common.mlp(64, 3).hidden, ..default.mlp },
            backward: common.backward(BackwardPolicy::SharedTorso),
            estimators: common.estimators(),
            ..default
        };
        let target = target(&reward);
        let log_z = reward.log_z();
        let task = json!({ "n_steps": STEPS });
        let trainer = run.build(Line::new(STEPS)?, reward, network, task, run.rng(), LinePolicy::new)?;
        let shares = |trainer: &Trainer<Line>| -> Result<Vec<f64>> {
            Ok(histogram(evaluated(trainer, self.samples)?.rows().map(|x| cell(x[0])), self.samples))
        };
        let measure = |trainer: &_| Ok(jsd(Some(Distances::between(&shares(trainer)?, &target)?.jsd)));
        run.finish(trainer, measure, Vec::new(), |trainer, report| {
            let learned = shares(trainer)?;
            let perfect = Cumulative::new(&target);
            let mut rng = run.rng();
            let mut floor = 0.0;
            for _ in 0..FLOORS {
                let shares = histogram((0..self.samples).map(|_| perfect.draw(&mut rng)), self.samples);
                floor += Distances::between(&shares, &target)?.jsd / FLOORS as f64;
            }
            let width = (RANGE.1 - RANGE.0) / CELLS as f64;
            let curve = |name: &str, probs: &[f64]| {
                let at = |k: usize| RANGE.0 + (k as f64 + 0.5) * width;
                Curve::new(name, probs[..CELLS].iter().enumerate().map(|(k, p)| (at(k), p / width)))
            };
            let panel = Panel::new("density of the end").labels("x", "").curve(curve("target", &target));
            report.panels.push(panel.curve(curve("samples", &learned)));
            report.extend(json!({ "jsd": Distances::between(&learned, &target)?.jsd, "jsd_floor": floor,
                "samples": self.samples }));
            report.log_z_error(log_z);
            Ok(())
        })
    }
}

/// Returns the index of the cell that contains a position. All positions outside of `RANGE` have the last
/// index, `CELLS`.
fn cell(x: f64) -> usize {
    let place = (x - RANGE.0) / (RANGE.1 - RANGE.0) * CELLS as f64;
    if (0.0..CELLS as f64).contains(&place) { place as usize } else { CELLS }
}

/// Returns the share of the `n` positions that is in each cell. `cells` holds the cell of each position.
fn histogram(cells: impl Iterator<Item = usize>, n: usize) -> Vec<f64> {
    let mut shares = vec![0.0; CELLS + 1];
    for cell in cells {
        shares[cell] += 1.0 / n as f64;
    }
    shares
}

/// Returns the target's probability of each cell, integrated by the midpoint rule.
fn target(reward: &LineReward) -> Vec<f64> {
    let step = (RANGE.1 - RANGE.0) / (CELLS * PARTS) as f64;
    let density = |k: usize| (reward.log_density(RANGE.0 + (k as f64 + 0.5) * step) - reward.log_z()).exp();
    let mut shares = vec![0.0; CELLS + 1];
    for k in 0..CELLS * PARTS {
        shares[k / PARTS] += density(k) * step;
    }
    shares[CELLS] = (1.0 - shares[..CELLS].iter().sum::<f64>()).max(0.0);
    shares
}
