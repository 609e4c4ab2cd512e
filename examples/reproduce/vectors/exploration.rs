//! Means of exploration on a grid whose reward is 0 almost everywhere: how many modes training sees, and what it ends at.

use clap::{Parser, ValueEnum};
use gfn::env::VectorStates;
use gfn::nn::BackwardPolicy;
use gfn::objective::{AugmentedDetailedBalance, AugmentedTrajectoryBalance, Objective};
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::replay::ReplayBuffer;
use gfn::run::CountModes;
use gfn::train::Trainer;
use gfn::{Error, Result};
use gfn_extras::explore::{
    DistillationConfig, Intrinsic, IntrinsicConfig, RandomDistillation, Teacher, TeacherConfig, Thompson,
};
use gfn_gym::hypergrid::{HyperGrid, RewardKind};
use serde_json::json;

use crate::flags::{Common, ObjectiveName, words};
use crate::run::{Recipe, Run};

/// Train a perceptron on a grid of few modes, exploring by one of several means
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Means of exploration, besides --epsilon
    #[arg(long, value_enum, default_value = "joint")]
    means: Means,
    /// Dimensions
    #[arg(long, default_value_t = 2)]
    ndim: usize,
    /// Points along each dimension
    #[arg(long, default_value_t = 16)]
    height: usize,
    /// The reward, as for `hypergrid`
    #[arg(long, default_value_t = RewardKind::Sparse)]
    reward: RewardKind,
    /// Coefficient of intrinsic rewards at the start; it falls to 0 over the first two thirds of the steps
    #[arg(long, default_value_t = 0.1)]
    coefficient: f64,
    /// The teacher's share of a batch, or the share of a batch that each Thompson head learns from
    #[arg(long, default_value_t = 0.5)]
    share: f64,
    /// Thompson heads
    #[arg(long, default_value_t = 8)]
    heads: usize,
    #[command(flatten)]
    common: Common,
}

/// Means of exploration by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Means {
    /// By nothing else
    None,
    /// Intrinsic rewards on edges
    Edges,
    /// Intrinsic rewards of terminal states
    States,
    /// Intrinsic rewards on both
    Joint,
    /// An adaptive teacher
    Teacher,
    /// Thompson heads
    Thompson,
}

/// States up to which the distribution is exact.
const EXACT_LIMIT: usize = 160_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let (common, means) = (&args.common, words(&args.means));
    let training = Recipe { steps: 2_000, batch: 16, epsilon: 0.0, lr: 1e-3, ..Recipe::default() };
    let title = format!("exploration by {means}, grid of {}^{}, {} reward", args.height, args.ndim, args.reward);
    let run = Run::begin(common, "exploration", title, Recipe { exact_up_to: EXACT_LIMIT, ..training })?;
    let grid = HyperGrid::new(args.ndim, args.height)?;
    let env = grid.env();
    let reward = args.reward.standard(&grid)?;
    let (mut rng, (device, float)) = (run.rng(), run.tensors());
    let features = KHot::new(args.ndim, args.height);
    let intrinsic = matches!(args.means, Means::Edges | Means::States | Means::Joint);
    let mut network = MlpPolicyConfig {
        heads: if args.means == Means::Thompson { args.heads } else { 1 },
        ..common.perceptron(BackwardPolicy::Uniform)
    };
    network.estimators.flow |= intrinsic;
    let description = json!({ "example": "exploration", "means": format!("{:?}", args.means), "ndim": args.ndim,
        "height": args.height, "reward": args.reward, "network": network });
    let policy = MlpPolicy::new(&env, features, network.clone(), device, float, &mut rng)?;
    let novelty = RandomDistillation::new(features, DistillationConfig::default(), device, float, &mut rng)?;
    let teacher = MlpPolicy::new(&env, features, network, device, float, &mut rng)?;
    let (config, objective) = (run.config.clone(), objective(common.objective, intrinsic)?);
    let adam = AdamConfig { max_norm: Some(1.0), ..config.adam };
    let trainer = Trainer::new(env, reward.clone(), policy, objective, config, rng)?.described_by(&description)?;
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let coefficient = Schedule::Linear { from: args.coefficient, to: 0.0, steps: (run.steps() * 2 / 3).max(1) };
    let intrinsic = |config| Intrinsic::new(novelty, config);
    let trainer = match args.means {
        Means::None => trainer,
        Means::Edges => trainer.with_companion(intrinsic(IntrinsicConfig::edge_based(coefficient))?)?,
        Means::States => trainer.with_companion(intrinsic(IntrinsicConfig::state_based(coefficient))?)?,
        Means::Joint => trainer.with_companion(intrinsic(IntrinsicConfig::joint(coefficient))?)?,
        Means::Teacher => {
            let config = TeacherConfig { adam, ..TeacherConfig::default() };
            let teacher = Teacher::new(trainer.env(), teacher, config)?;
            trainer.with_source(args.share, teacher)?
        }
        Means::Thompson => {
            let thompson = Thompson::new(trainer.policy(), args.share)?;
            trainer.with_fresh(thompson)?
        }
    };
    let mut modes = CountModes::new(|points: &VectorStates| reward.is_mode(points));
    let Some(mut learned) = run.learn(trainer, "points", vec![&mut modes])? else { return Ok(()) };
    learned.report.set("means", means);
    if learned.exact.is_none() {
        // The target of a frozen policy has its log Z, too.
        learned.report.set("log_z_true", reward.totals(EXACT_LIMIT as u64).ok().map(|totals| totals.log_z));
    }
    learned.print()
}

/// The objective that the flags name, or its augmented form.
fn objective(name: ObjectiveName, intrinsic: bool) -> Result<Box<dyn Objective>> {
    match (name, intrinsic) {
        (name, false) => name.build(),
        (ObjectiveName::Tb, true) => Ok(Box::new(AugmentedTrajectoryBalance)),
        (ObjectiveName::Db, true) => Ok(Box::new(AugmentedDetailedBalance)),
        (other, true) => Err(Error::config("--objective with intrinsic rewards", format!("{other:?}"), "tb or db")),
    }
}
