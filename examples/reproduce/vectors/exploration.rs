//! Means of exploration on a grid whose reward is 0 almost everywhere: how many modes training sees, and what it ends at.

use clap::{Parser, ValueEnum};
use gfn::env::VectorStates;
use gfn::nn::{BackwardPolicy, MlpConfig};
use gfn::objective::{AugmentedDetailedBalance, AugmentedTrajectoryBalance, Objective};
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::replay::ReplayBuffer;
use gfn::train::{CountModes, DistillationConfig, IntrinsicConfig, RandomDistillation, TeacherConfig, Trainer};
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::{HyperGrid, RewardKind};
use serde_json::json;

use crate::cli::{Common, Defaults, Distance, Exact, ObjectiveName, Report, SAMPLES, sampled, train, value_words};

/// Train a perceptron on a grid of few modes, exploring by one of several means
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// How it explores, besides --epsilon
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
    /// The teacher's share of fresh trajectories, or the share of a batch that each Thompson head learns from
    #[arg(long, default_value_t = 0.5)]
    share: f64,
    /// Thompson heads
    #[arg(long, default_value_t = 8)]
    heads: usize,
    #[command(flatten)]
    common: Common,
}

/// How it explores.
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
    let common = &args.common;
    let runtime = common.runtime()?;
    let env = HyperGrid::new(args.ndim, args.height)?;
    let reward = args.reward.standard(&env)?;
    let defaults = Defaults { steps: 2_000, batch: 16, epsilon: 0.0, lr: 1e-3, ..Defaults::default() };
    let mut rng = Rng::seeded(common.seed);
    let features = KHot::new(args.ndim, args.height);
    let hidden = vec![common.embedding.unwrap_or(256); common.layers.unwrap_or(2)];
    let intrinsic = matches!(args.means, Means::Edges | Means::States | Means::Joint);
    let mut estimators = common.objective.estimators();
    estimators.flow |= intrinsic;
    let network = MlpPolicyConfig {
        mlp: MlpConfig { hidden, ..MlpConfig::default() },
        backward: common.backward.map_or(BackwardPolicy::Uniform, Into::into),
        estimators,
        heads: if args.means == Means::Thompson { args.heads } else { 1 },
        ..MlpPolicyConfig::default()
    };
    let (device, kind) = (runtime.device(), tch::Kind::Float);
    let description = json!({ "example": "exploration", "means": format!("{:?}", args.means), "ndim": args.ndim,
        "height": args.height, "reward": args.reward, "network": network });
    let policy = MlpPolicy::new(&env, features, network.clone(), device, kind, &mut rng)?;
    let novelty = RandomDistillation::new(features, DistillationConfig::default(), device, kind, &mut rng)?;
    let teacher = MlpPolicy::new(&env, features, network, device, kind, &mut rng)?;
    let config = common.trainer(&defaults);
    let (steps, adam) = (common.steps(&defaults), config.adam);
    let exact = Exact::up_to(EXACT_LIMIT, common, &env, &reward)?;
    let objective = objective(common.objective, intrinsic)?;
    let trainer = Trainer::new(env, reward.clone(), policy, objective, config, rng)?.described_by(&description)?;
    let trainer = common.replayed(trainer, &defaults, ReplayBuffer::new)?;
    let coefficient = Schedule::Linear { from: args.coefficient, to: 0.0, steps: (steps * 2 / 3).max(1) };
    let trainer = match args.means {
        Means::None => Ok(trainer),
        Means::Edges => trainer.with_intrinsic(novelty, IntrinsicConfig::edge_based(coefficient)),
        Means::States => trainer.with_intrinsic(novelty, IntrinsicConfig::state_based(coefficient)),
        Means::Joint => trainer.with_intrinsic(novelty, IntrinsicConfig::joint(coefficient)),
        Means::Teacher => {
            let adam = AdamConfig { max_norm: Some(1.0), ..adam };
            trainer.with_teacher(teacher, TeacherConfig { share: args.share, adam, ..TeacherConfig::default() })
        }
        Means::Thompson => trainer.with_thompson(args.share),
    };
    let trainer = trainer?;
    let mut modes = CountModes::new(|points: &VectorStates| reward.is_mode(points));
    let look = |trainer: &Trainer<_, MlpPolicy<KHot>>| Exact::look(exact.as_ref(), trainer);
    let Some((trainer, trained)) = train(trainer, common, ("exploration", &defaults), look, vec![&mut modes])? else {
        return Ok(());
    };

    let learned = exact.as_ref().map(|exact| exact.learned(&trainer)).transpose()?;
    let panels = exact.iter().zip(&learned).map(|(exact, (_, probs))| exact.panel("points", probs)).collect();
    let means = value_words(&args.means);
    let title = format!("exploration by {means}, grid of {}^{}, {} reward", args.height, args.ndim, args.reward);
    // The target of a frozen policy has its log Z, too.
    let summed = || reward.totals(EXACT_LIMIT as u64).ok().map(|totals| totals.log_z);
    let log_z_true = exact.as_ref().map(|exact| exact.target.log_z).or_else(summed);
    let mut extra = vec![("means", json!(means))];
    if let Some((exact, (_, probs))) = exact.as_ref().zip(learned.as_ref()) {
        extra.extend(exact.modes(probs)?);
    } else {
        extra.extend([("modes_found", json!(null)), ("modes_total", json!(null))]);
        if !common.is_frozen() {
            extra.extend(sampled(&trainer, SAMPLES)?);
        }
    }
    let distance = learned.map_or_else(|| Distance::not_listed(common, EXACT_LIMIT), |(distance, _)| distance);
    Report { title, log_z_true, distance, extra, panels }.print(common, &trained)
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
