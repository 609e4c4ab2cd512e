//! Means of exploration on a grid whose reward is 0 almost everywhere: how many modes training sees, and what
//! it ends at.

use gfn::objective::{AugmentedDetailedBalance, AugmentedTrajectoryBalance};
use gfn::optim::AdamConfig;
use gfn_extras::explore::{
    DistillationConfig, Intrinsic, IntrinsicConfig, RandomDistillation, Teacher, TeacherConfig, Thompson,
};
use gfn_gym::hypergrid::{HyperGrid, RewardKind};

use super::hypergrid::{EXACT_LIMIT, learn_counting_modes};
use crate::prelude::*;

/// Train a perceptron on a grid of few modes, exploring by one of several means
#[derive(Args)]
pub(crate) struct Exploration {
    /// Means of exploration, besides --epsilon
    #[arg(long, value_parser = choice(MEANS), default_value = "joint")]
    means: Selection<Means>,
    #[command(flatten)]
    common: Common,
}

/// A means of exploration.
#[derive(Clone, Copy)]
enum Means {
    None,
    /// Intrinsic rewards by a coefficient.
    Intrinsic(fn(Schedule) -> IntrinsicConfig),
    Teacher,
    Thompson,
}

const MEANS: &[Choice<Means>] = &[
    ("none", Means::None, "Nothing else"),
    ("edges", Means::Intrinsic(IntrinsicConfig::edge_based), "Intrinsic rewards on edges"),
    ("states", Means::Intrinsic(IntrinsicConfig::state_based), "Intrinsic rewards of terminal states"),
    ("joint", Means::Intrinsic(IntrinsicConfig::joint), "Intrinsic rewards on both"),
    ("teacher", Means::Teacher, "An adaptive teacher"),
    ("thompson", Means::Thompson, "Thompson heads"),
];

/// Points along each of two dimensions.
const HEIGHT: usize = 16;
/// The coefficient of intrinsic rewards at the start; it falls to 0 over the first two thirds of the steps.
const COEFFICIENT: f64 = 0.1;
/// The teacher's share of a batch, and the share that each Thompson head learns from.
const SHARE: f64 = 0.5;
/// The number of Thompson heads.
const HEADS: usize = 8;

impl Task for Exploration {
    fn run(&self) -> Result<()> {
        let (common, kind) = (&self.common, RewardKind::Sparse);
        let title = format!("exploration by {}, grid of {HEIGHT}^2", self.means.name);
        let recipe =
            Recipe { steps: 2_000, batch: 16, epsilon: 0.0, lr: 1e-3, exact_up_to: EXACT_LIMIT, ..Recipe::default() };
        let mut run = Run::begin(common, "exploration", title, recipe)?;
        let grid = HyperGrid::new(2, HEIGHT)?;
        let (env, reward) = (grid.env(), kind.standard(&grid)?);
        let (mut rng, device, float) = (run.rng(), run.device, Kind::Float);
        let features = KHot::new(2, HEIGHT);
        let is_intrinsic = matches!(self.means.value, Means::Intrinsic(_));
        let mut network = common.perceptron(BackwardPolicy::Uniform);
        network.heads = if matches!(self.means.value, Means::Thompson) { HEADS } else { 1 };
        network.estimators.flow |= is_intrinsic;
        let task = json!({ "means": self.means.name });
        let description = run.describe(task, &network);
        let policy = MlpPolicy::new(&env, features, network.clone(), device, float, &mut rng)?;
        let novelty = RandomDistillation::new(features, DistillationConfig::default(), device, float, &mut rng)?;
        let teacher = MlpPolicy::new(&env, features, network, device, float, &mut rng)?;
        if is_intrinsic {
            run.objective = match common.objective.name {
                "tb" => || Ok(Box::new(AugmentedTrajectoryBalance)),
                "db" => || Ok(Box::new(AugmentedDetailedBalance)),
                other => return Err(Error::config("--objective with intrinsic rewards", other, "tb or db")),
            };
        }
        let trainer = run.trainer(env, reward.clone(), policy, rng, &description)?;
        let trainer = match self.means.value {
            Means::None => trainer,
            Means::Intrinsic(config) => {
                let steps = (run.steps() * 2 / 3).max(1);
                let coefficient = Schedule::Linear { from: COEFFICIENT, to: 0.0, steps };
                trainer.with_companion(Intrinsic::new(novelty, config(coefficient))?)?
            }
            Means::Teacher => {
                let adam = AdamConfig { max_norm: Some(1.0), ..run.config.adam };
                let config = TeacherConfig { adam, ..TeacherConfig::default() };
                let teacher = Teacher::new(trainer.env(), teacher, config)?;
                trainer.with_source(SHARE, teacher)?
            }
            Means::Thompson => {
                let thompson = Thompson::new(trainer.policy(), SHARE)?;
                trainer.with_fresh(thompson)?
            }
        };
        let is_mode = |points: &VectorStates| reward.is_mode(points);
        learn_counting_modes(&run, trainer, "points", is_mode, |report, _, exact| {
            report.set("means", self.means.name);
            if exact.is_none() {
                // The target of a frozen policy has its log Z, too.
                report.set("log_z_true", reward.totals(EXACT_LIMIT as u64).ok().map(|totals| totals.log_z));
            }
            Ok(())
        })
    }
}
