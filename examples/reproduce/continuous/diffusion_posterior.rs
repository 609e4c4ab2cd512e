//! Relative trajectory balance: a diffusion is fitted to samples of a prior by maximum likelihood, frozen, and a copy of it fine-tuned to a
//! posterior that only a likelihood ratio tells of.

use std::sync::Arc;

use clap::{Parser, ValueEnum};
use gfn::env::Reals;
use gfn::metrics::importance_log_z;
use gfn::objective::{MaximumLikelihood, Objective, RelativeLogPartitionVariance, RelativeTrajectoryBalance, score};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Policy, WithPrior};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{ReplayEnv, Sampler};
use gfn::train::{ReplayPath, Trainer};
use gfn::{Error, Result, Rng};
use gfn_gym::diffusion::{
    DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Energy, GradNetConfig, Mixture, Posterior, Process,
    ProcessKind, Target,
};
use serde_json::json;

use super::densities::{EVALUATED, draw, panels, sample_figures};
use crate::cli::{Common, Defaults, ObjectiveName, Report, members, refuse, train};

/// Fine-tune a diffusion from 25 modes to 9 of them
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Steps of a trajectory
    #[arg(long, default_value_t = 40)]
    horizon: usize,
    /// Scale of the process
    #[arg(long, default_value_t = 5.0)]
    sigma: f64,
    /// Steps of maximum likelihood for the prior; as many as of fine-tuning unless told otherwise
    #[arg(long)]
    prior_steps: Option<usize>,
    /// Exponent of the likelihood ratio; with any but 1, log Z and exact samples of the posterior aren't known
    #[arg(long, default_value_t = 1.0)]
    beta: f64,
    #[command(flatten)]
    common: Common,
}

/// The prior times the likelihood ratio to a power: no mixture of Gaussians, as between two modes both count.
struct Tempered {
    ratio: Posterior,
    beta: f64,
}

impl Target for Tempered {
    fn dim(&self) -> usize {
        self.ratio.dim()
    }

    fn log_density(&self, points: &Reals) -> Result<Vec<f64>> {
        let mut out = self.ratio.prior().log_density(points)?;
        out.iter_mut().zip(self.ratio.log_density(points)?).for_each(|(prior, ratio)| *prior += self.beta * ratio);
        Ok(out)
    }

    fn gradient(&self, points: &Reals) -> Result<Reals> {
        let mut out = self.ratio.prior().gradient(points)?;
        let ratio = self.ratio.gradient(points)?;
        out.values_mut().iter_mut().zip(ratio.values()).for_each(|(prior, ratio)| *prior += self.beta * ratio);
        Ok(out)
    }
}

/// Exact samples of the prior to learn from.
const DATA: usize = 20_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let runtime = common.runtime()?;
    common.refuse_replay()?;
    common.refuse_discrete_exploration("no such flag: Gaussian steps are widened by --temperature")?;
    refuse("--validate-every", common.validate_every.is_some(), "no such flag: nothing is measured on the way")?;
    refuse("--backward", common.backward.is_some(), "no such flag: relative to a prior P_B cancels")?;
    let objective: Box<dyn Objective> = match common.objective {
        ObjectiveName::Tb => Box::new(RelativeTrajectoryBalance::new(args.beta)?),
        ObjectiveName::Vargrad => Box::new(RelativeLogPartitionVariance::new(args.beta)?),
        other => {
            let got = other.to_possible_value().map_or_else(String::new, |name| name.get_name().to_owned());
            let expected = "tb or vargrad: both are taken relative to the prior";
            return Err(Error::config("--objective", got, expected));
        }
    };
    let process = Process::new(ProcessKind::PinnedBrownian, args.sigma, args.horizon)?;
    let env = DiffusionSampling::new(2, process)?;
    let mut rng = Rng::seeded(common.seed);
    let config = DiffusionPolicyConfig {
        network: GradNetConfig {
            hidden: common.embedding.unwrap_or(64),
            layers: common.layers.unwrap_or(2),
            zero_init: true,
            ..GradNetConfig::default()
        },
        log_variance_range: Some(4.0),
        ..DiffusionPolicyConfig::default()
    };
    let make =
        |rng: &mut Rng| DiffusionPolicy::new(&env, config.clone(), None, runtime.device(), tch::Kind::Float, rng);
    let defaults = Defaults { steps: 2_000, batch: 200, epsilon: 0.0, lr: 2e-3, ..Defaults::default() };
    let (steps, training) = (common.steps(&defaults), common.trainer(&defaults));

    let prior_target = Arc::new(Mixture::twenty_five_modes());
    let data = prior_data(&env, prior_target.as_ref(), &mut rng)?;
    // With schedules of its own length.
    let prior_steps = args.prior_steps.unwrap_or(steps);
    let mut fitting = Common { steps: Some(prior_steps), ..common.clone() }.trainer(&defaults);
    // The data are bridged to the origin by the process: P_B has nothing to learn.
    (fitting.source, fitting.replay_path) = (DataSource::new(0.0, 0.0, 1.0)?, ReplayPath::UniformBackward);
    // The prior isn't in checkpoints: a resumed run fits it again, and must fit the same.
    let fitted = fitting.clone();
    let prior = make(&mut rng)?;
    let mut fit =
        Trainer::new(env.clone(), Energy::new(prior_target.clone()), prior, MaximumLikelihood, fitting, rng.split())?
            .with_data(data);
    for _ in 0..prior_steps {
        let _ = fit.step()?;
    }
    let prior = fit.policy();

    let ratio = Posterior::nine_of_twenty_five();
    let truth: Arc<dyn Target> = match args.beta {
        1.0 => Arc::new(ratio.posterior().clone()),
        beta => Arc::new(Tempered { ratio: ratio.clone(), beta }),
    };
    let policy = make(&mut rng)?;
    copy(prior, &policy);
    let policy = WithPrior { policy, prior };
    let trainer = Trainer::new(env.clone(), Energy::new(Arc::new(ratio)), policy, objective, training, rng)?
        .described_by(&json!({ "example": "diffusion_posterior", "horizon": args.horizon, "sigma": args.sigma,
            "beta": args.beta, "prior_steps": prior_steps, "prior_seed": common.seed, "network": config,
            "prior_training": fitted }))?;
    let trained = train(trainer, common, ("diffusion_posterior", &defaults), |_| Ok(None), Vec::new())?;
    let Some((trainer, trained)) = trained.filter(|_| members::is_first()) else { return Ok(()) };

    let rng = &mut trainer.evaluation_rng();
    let trajectories = Sampler::new(&env, trainer.policy()).forward(EVALUATED, rng)?;
    let needs = Quantities::from(Quantity::LogPrior);
    let scores = tch::no_grad(|| score(&env, trainer.reward(), trainer.policy(), &trajectories, needs))?;
    let estimate = importance_log_z(&scores.relative_log_weights(args.beta)?)?;
    let log_z_true = truth.log_z();
    let mut extra = vec![
        ("log_z_bound", json!(estimate.elbo.mean)),
        ("log_z_error", json!(log_z_true.map(|log_z| (estimate.elbo.mean - log_z).abs()))),
        ("log_z_reweighted", json!(estimate.log_z)),
        ("log_z_reweighted_interval", json!([estimate.interval.0, estimate.interval.1])),
        ("ess", json!(estimate.effective_samples / EVALUATED as f64)),
    ];
    extra.extend(sample_figures(&trajectories.terminal_states().points, truth.as_ref(), rng)?);
    if common.out().is_some() {
        let mut both = panels("prior", &env, prior, prior_target.as_ref(), rng)?;
        both.truncate(1);
        both.extend(panels("posterior", &env, trainer.policy(), truth.as_ref(), rng)?);
        draw(common, "samples", "a prior, and the posterior by relative trajectory balance", &both)?;
    }
    let title = "relative trajectory balance".into();
    Report { title, log_z_true, extra, ..Report::default() }.print(common, &trained)
}

/// Exact samples of the prior, for paths to be drawn back from.
fn prior_data(env: &DiffusionSampling, prior: &Mixture, rng: &mut Rng) -> Result<ReplayBuffer<DiffusionSampling>> {
    let config = ReplayConfig { capacity: DATA, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut data = ReplayBuffer::new(config)?.terminal_only();
    let Some(points) = prior.sample(DATA, rng) else { return Ok(data) };
    let log_rewards = prior.log_density(&points)?;
    let paths = Sampler::new(env, &env.uniform()).backward(&env.terminal(points), rng)?;
    data.add(env, &paths.walks(env)?, &log_rewards)?;
    Ok(data)
}

/// Gives one policy the weights of another of the same make.
fn copy(from: &DiffusionPolicy, to: &DiffusionPolicy) {
    let parameters = |policy| Policy::<DiffusionSampling>::parameters(policy);
    if let (Some(from), Some(to)) = (parameters(from), parameters(to)) {
        tch::no_grad(|| {
            from.iter().zip(to).for_each(|(from, to)| {
                to.tensor.shallow_clone().copy_(&from.tensor);
            })
        });
    }
}
