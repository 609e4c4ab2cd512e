//! The unit box: a continuous environment under the same sampler, losses and trainer as the graphs.

use gfn::rollout::{ReplayEnv, Walks};
use gfn_gym::boxes::{BetaMixtures, BoxEnv, BoxPolicy, BoxPolicyConfig, BoxReward, Coupling, GridHistogram};

use crate::prelude::*;

/// Train a perceptron to sample the points of the unit square
#[derive(Args)]
pub(crate) struct Boxes {
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
    /// A mixture for each axis instead of one of products
    #[arg(long)]
    per_axis: bool,
    #[command(flatten)]
    common: Common,
}

/// Final samples that are compared with the target.
const SAMPLES: usize = 10_000;
/// Cells along each axis of the histogram that samples are compared by.
const BINS: usize = 50;
/// Samples of perfect samplers that the noise floor is an average of.
pub(super) const FLOORS: usize = 20;
/// Norm above which gradients are clipped: a density has no upper bound.
pub(super) const MAX_NORM: f64 = 10.0;
/// Share of each batch with --polar that leads to uniform points of the box, by steps back from them: modes
/// off the diagonal are many steps one way, and seldom met.
const POLAR_SHARE: f64 = 0.25;
/// The number of those points.
const POINTS: usize = 50_000;

impl Task for Boxes {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        let (shape, objective) = (if self.polar { "polar" } else { "Cartesian" }, common.objective.words());
        let recipe = Recipe { steps: 5_000, batch: 128, log_z_lr: 1e-2, ..Recipe::default() };
        let title = format!("{shape} box, delta {}, {objective}", self.delta);
        let mut run = Run::begin(common, "box", title, recipe)?;
        run.config.adam.max_norm = Some(MAX_NORM);
        let mut rng = run.rng();
        let env = if self.polar { BoxEnv::polar(self.delta)? } else { BoxEnv::cartesian(2, self.delta)? };
        let (reward, default) = (BoxReward::default(), BoxPolicyConfig::default());
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
        let is_given_points = self.polar && !common.objective.is_on_policy();
        let mut data = None;
        if is_given_points {
            data = Some(uniform_points(&env, &reward, &mut rng)?);
            // What is left is sampled afresh, half of it replayed if there is a buffer.
            let has_replay = common.replay(&run.recipe).is_some();
            let replay = if has_replay { (1.0 - POLAR_SHARE) / 2.0 } else { 0.0 };
            run.config.source = DataSource::new(1.0 - POLAR_SHARE - replay, replay, POLAR_SHARE)?;
            run.config.replay_path = ReplayPath::PolicyBackward;
        }
        let (log_z, grid) = (reward.log_z(2), GridHistogram::new(BINS, reward.cells(BINS))?);
        let mut trainer = run.trainer(env, reward, policy, rng, &description)?;
        if let Some(data) = data {
            trainer = trainer.with_data(data);
        }
        let sample =
            |trainer: &Trainer<BoxEnv>| sample(trainer.env(), trainer.policy(), SAMPLES, &mut trainer.evaluation_rng());
        let measure = |trainer: &_| Ok(jsd(Some(grid.jsd(&sample(trainer)?)?)));
        let Some((trainer, mut report)) = run.train(trainer, measure, Vec::new())? else { return Ok(()) };

        let points = sample(&trainer)?;
        let shares = grid.counts(&points)?.iter().map(|count| count / SAMPLES as f64).collect();
        report.panels.extend(heat_maps(BINS, [("target", grid.target().to_vec()), ("samples", shares)]));
        // Rewards of given points aren't among the calls that training counts.
        report.extend(json!({ "jsd": grid.jsd(&points)?, "jsd_floor": grid.floor(SAMPLES, FLOORS, &mut run.rng())?,
            "samples": points.len(), "given_points": if is_given_points { POINTS } else { 0 }, "log_z_true": log_z,
            "log_z_error": (report.stats.log_z() - log_z).abs() }));
        run.print(report)
    }
}

/// Returns uniform points of the box, which are learned from by backward steps.
fn uniform_points(env: &BoxEnv, reward: &BoxReward, rng: &mut Rng) -> Result<ReplayBuffer<BoxEnv>> {
    let mut terminal = Reals::filled(env.ndim(), POINTS, 0.0);
    terminal.values_mut().iter_mut().for_each(|x| *x = rng.uniform());
    let log_r = log_rewards(reward, &terminal, None)?;
    let points = Walks { actions: env.no_actions(), offsets: vec![0; POINTS + 1], terminal, conditions: None };
    let (eviction, draw) = NEWEST;
    let mut data = ReplayBuffer::new(ReplayConfig { capacity: POINTS, eviction, draw })?.terminal_only();
    data.add(env, &points, &log_r)?;
    Ok(data)
}
