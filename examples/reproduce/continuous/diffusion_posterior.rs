//! Relative trajectory balance: a diffusion is fitted to samples of a prior by maximum likelihood, frozen, and a copy of it fine-tuned to a
//! posterior that only a likelihood ratio tells of.

use std::sync::Arc;

use clap::Parser;
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

use super::densities::{EVALUATED, draw, of_log_z, sample_figures};
use crate::flags::{Common, ObjectiveName, refuse, refuse_replay, refuse_validation, words};
use crate::run::{Recipe, Report, Run, sample};

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
    refuse_replay()?;
    refuse_validation()?;
    refuse(&["--epsilon", "--exit-bias"], "no such flag: Gaussian steps are widened by --temperature")?;
    refuse(&["--backward"], "no such flag: relative to a prior P_B cancels")?;
    let objective: Box<dyn Objective> = match common.objective {
        ObjectiveName::Tb => Box::new(RelativeTrajectoryBalance::new(args.beta)?),
        ObjectiveName::Vargrad => Box::new(RelativeLogPartitionVariance::new(args.beta)?),
        other => {
            let expected = "tb or vargrad: both are taken relative to the prior";
            return Err(Error::config("--objective", words(&other), expected));
        }
    };
    let recipe = Recipe { steps: 2_000, batch: 200, epsilon: 0.0, lr: 2e-3, ..Recipe::default() };
    let run = Run::begin(common, "diffusion_posterior", "relative trajectory balance".to_owned(), recipe)?;
    let process = Process::new(ProcessKind::PinnedBrownian, args.sigma, args.horizon)?;
    let env = DiffusionSampling::new(2, process)?;
    let mut rng = run.rng();
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
    let make = |rng: &mut Rng| DiffusionPolicy::new(&env, config.clone(), None, run.device, tch::Kind::Float, rng);

    let prior_target = Arc::new(Mixture::twenty_five_modes());
    let data = prior_data(&env, prior_target.as_ref(), &mut rng)?;
    // With schedules of its own length.
    let prior_steps = args.prior_steps.unwrap_or(run.steps());
    let mut fitting = Common { steps: Some(prior_steps), ..common.clone() }.trainer(&run.recipe);
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
    let prior = fit.into_policy();

    let ratio = Posterior::nine_of_twenty_five();
    let truth: Arc<dyn Target> = match args.beta {
        1.0 => Arc::new(ratio.posterior().clone()),
        beta => Arc::new(Tempered { ratio: ratio.clone(), beta }),
    };
    let policy = make(&mut rng)?;
    copy(prior.as_ref(), &policy);
    // Its first parameters are written over: they aren't drawn from the run's stream.
    let fixed = make(&mut Rng::seeded(0))?;
    copy(prior.as_ref(), &fixed);
    let policy = WithPrior { policy, prior: fixed };
    let (reward, training) = (Energy::new(Arc::new(ratio)), run.config.clone());
    let trainer = Trainer::new(env.clone(), reward, policy, objective, training, rng)?.described_by(
        &json!({ "example": "diffusion_posterior", "horizon": args.horizon, "sigma": args.sigma,
            "beta": args.beta, "prior_steps": prior_steps, "prior_seed": common.seed, "network": config,
            "prior_training": fitted }),
    )?;
    let Some((trainer, trained)) = run.train(trainer, |_| Ok(None), Vec::new())? else { return Ok(()) };

    let rng = &mut trainer.evaluation_rng();
    let trajectories = Sampler::new(&env, trainer.policy()).forward(EVALUATED, rng)?;
    let needs = Quantities::from(Quantity::LogPrior);
    let scores = tch::no_grad(|| score(&env, trainer.reward(), trainer.policy(), &trajectories, needs))?;
    let estimate = importance_log_z(&scores.relative_log_weights(args.beta)?)?;
    let points = &trajectories.terminal_states().points;
    let mut report = Report::default();
    report.set("log_z_true", truth.log_z());
    report.set("log_z_error", truth.log_z().map(|log_z| (estimate.elbo.mean - log_z).abs()));
    report.extend(of_log_z(&estimate));
    report.extend(sample_figures(points, truth.as_ref(), rng)?);
    if common.out().is_some() {
        let of_prior = sample(&env, prior.as_ref(), EVALUATED, rng)?.points;
        draw(common, &run.title, &[("samples of the prior", &of_prior), ("samples of the posterior", points)])?;
    }
    run.print(&trained, report)
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
fn copy(from: &dyn Policy<DiffusionSampling>, to: &dyn Policy<DiffusionSampling>) {
    if let (Some(from), Some(to)) = (from.parameters(), to.parameters()) {
        tch::no_grad(|| {
            from.iter().zip(to).for_each(|(from, to)| {
                to.tensor.shallow_clone().copy_(&from.tensor);
            })
        });
    }
}
