//! Relative trajectory balance: a diffusion is fitted to samples of a prior by maximum likelihood, frozen,
//! and a copy of it fine-tuned to a posterior that is given by a likelihood ratio.

use gfn::metrics::importance_log_z;
use gfn::objective::{MaximumLikelihood, Quantities, RelativeLogPartitionVariance, RelativeTrajectoryBalance, score};
use gfn::policy::WithPrior;
use gfn::rollout::ReplayEnv;
use gfn_gym::diffusion::{
    DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Energy, Mixture, Posterior, Process, ProcessKind, Target,
};

use super::densities::{EVALUATED, draw, report_log_z, report_samples};
use super::diffusion::grad_net;
use crate::flags::Build;
use crate::prelude::*;

/// Fine-tune a diffusion from 25 modes to 9 of them
#[derive(Args)]
pub(crate) struct PosteriorDiffusion {
    #[command(flatten)]
    common: Common,
}

/// Steps of a trajectory.
const HORIZON: usize = 40;
/// The scale of the process.
const SIGMA: f64 = 5.0;
/// Exact samples of the prior to learn from.
const DATA: usize = 20_000;

impl Task for PosteriorDiffusion {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        refuse_replay()?;
        refuse_validation()?;
        refuse(&["--epsilon", "--exit-bias"], "no such flag: Gaussian steps have no uniform actions and no exit")?;
        refuse(&["--backward"], "no such flag: relative to a prior P_B cancels")?;
        let objective: Build = match common.objective.name {
            "tb" => || Ok(Box::new(RelativeTrajectoryBalance::new(1.0)?)),
            "vargrad" => || Ok(Box::new(RelativeLogPartitionVariance::new(1.0)?)),
            other => return Err(Error::config("--objective", other, "tb or vargrad: both are relative to the prior")),
        };
        let recipe = Recipe { steps: 2_000, batch: 200, epsilon: 0.0, lr: 2e-3, ..Recipe::default() };
        let mut run = Run::begin(common, "diffusion_posterior", "relative trajectory balance".to_owned(), recipe)?;
        run.objective = objective;
        let process = Process::new(ProcessKind::PinnedBrownian, SIGMA, HORIZON)?;
        let env = DiffusionSampling::new(2, process)?;
        let config = DiffusionPolicyConfig {
            network: grad_net(common, true),
            log_variance_range: Some(4.0),
            ..DiffusionPolicyConfig::default()
        };
        let make = |rng: &mut Rng| DiffusionPolicy::new(&env, config.clone(), None, run.device, Kind::Float, rng);
        let mut rng = run.rng();
        let prior_target = Arc::new(Mixture::twenty_five_modes());
        let data = prior_data(&env, prior_target.as_ref(), &mut rng)?;
        // The data are bridged to the origin by the process: P_B has nothing to learn.
        let (source, replay_path) = (DataSource::new(0.0, 0.0, 1.0)?, ReplayPath::UniformBackward);
        let fitting = TrainerConfig { source, replay_path, ..run.config.clone() };
        // The prior isn't in checkpoints: a resumed run fits it again, and must fit the same.
        let task = json!({ "prior_seed": common.seed, "prior_training": fitting });
        let prior = make(&mut rng)?;
        let energy = Energy::new(prior_target);
        let fit = Trainer::new(env.clone(), energy, prior, MaximumLikelihood, fitting, rng.split())?;
        let mut fit = fit.with_data(data);
        for _ in 0..run.steps() {
            let _ = fit.step()?;
        }
        let prior = fit.into_policy();

        let ratio = Posterior::nine_of_twenty_five();
        let truth = ratio.posterior().clone();
        let policy = make(&mut rng)?;
        copy(prior.as_ref(), &policy);
        // Its first parameters are written over: they aren't drawn from the run's stream.
        let fixed = make(&mut Rng::seeded(0))?;
        copy(prior.as_ref(), &fixed);
        let policy = WithPrior { policy, prior: fixed };
        let description = run.describe(task, &config);
        let reward = Energy::new(Arc::new(ratio));
        let trainer = run.trainer(env.clone(), reward, policy, rng, &description)?;
        let Some((trainer, mut report)) = run.train(trainer, |_| Ok(jsd(None)), Vec::new())? else { return Ok(()) };

        let rng = &mut trainer.evaluation_rng();
        let trajectories = Sampler::new(&env, trainer.policy()).forward(EVALUATED, rng)?;
        let needs = Quantities::from(Quantity::LogPrior);
        let scores = tch::no_grad(|| score(&env, trainer.reward(), trainer.policy(), &trajectories, needs))?;
        let estimate = importance_log_z(&scores.relative_log_weights(1.0)?)?;
        let points = &trajectories.terminal_states().points;
        report_log_z(&estimate, &mut report);
        report.extend(json!({ "log_z_true": truth.log_z(),
            "log_z_error": truth.log_z().map(|log_z| (estimate.elbo.mean - log_z).abs()) }));
        report_samples(points, &truth, rng, &mut report)?;
        if common.out().is_some() {
            let of_prior = sample(&env, prior.as_ref(), EVALUATED, rng)?.points;
            draw(&run, &[("samples of the prior", &of_prior), ("samples of the posterior", points)])?;
        }
        run.print(report)
    }
}

/// Returns exact samples of the prior, with paths back from them.
fn prior_data(env: &DiffusionSampling, prior: &Mixture, rng: &mut Rng) -> Result<ReplayBuffer<DiffusionSampling>> {
    let (eviction, draw) = NEWEST;
    let mut data = ReplayBuffer::new(ReplayConfig { capacity: DATA, eviction, draw })?.terminal_only();
    let Some(points) = prior.sample(DATA, rng) else { return Ok(data) };
    let log_rewards = prior.log_density(&points)?;
    let paths = Sampler::new(env, &env.uniform()).backward(&env.terminal(points), rng)?;
    data.add(env, &paths.walks(env)?, &log_rewards)?;
    Ok(data)
}

/// Copies the weights of one policy to another of the same shape.
fn copy(from: &dyn Policy<DiffusionSampling>, to: &dyn Policy<DiffusionSampling>) {
    let (Some(from), Some(to)) = (from.parameters(), to.parameters()) else { return };
    tch::no_grad(|| {
        for (from, to) in from.iter().zip(to) {
            to.tensor.shallow_clone().copy_(&from.tensor);
        }
    });
}
