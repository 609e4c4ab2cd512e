//! Sampling from densities by a controlled diffusion. The first task trains by trajectory balance or a
//! related objective on pinned Brownian motion, and has flags for off-policy training. The second task
//! fine-tunes a prior to a posterior by relative trajectory balance.

use gfn::metrics::{LogZEstimate, estimate_log_z, eubo, importance_log_z};
use gfn::objective::{MaximumLikelihood, RelativeLogPartitionVariance, RelativeTrajectoryBalance, score};
use gfn::policy::WithPrior;
use gfn::replay::RankBy;
use gfn::rollout::ReplayEnv;
use gfn_extras::explore::Search;
use gfn_extras::transport::{maximum_mean_discrepancy, wasserstein2};
use gfn_gym::diffusion::{
    BackwardSteps, CoxProcess, DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Energy, Funnel,
    GradNetConfig, Mala, MalaConfig, ManyWell, Mixture, Posterior, Process, ProcessKind, Target,
};

use crate::prelude::*;

/// A function that builds a target, and the scale sigma of the pinned Brownian motion that samples this
/// target. Following Sendera et al. (2024), sigma^2 is 5 for the grids of Gaussians, and 1 for targets with
/// many coordinates.
type MakeTarget = (fn() -> Result<Arc<dyn Target>>, f64);

const TARGETS: &[Choice<MakeTarget>] = &[
    ("gaussian", (|| Ok(Arc::new(Mixture::gaussian(vec![1.0; 2], 0.5)?)), 1.0), "A Gaussian off the origin"),
    ("two-modes", (|| Ok(Arc::new(Mixture::two_modes())), 5.0), "Two Gaussians in the plane"),
    (
        "twenty-five-modes",
        (|| Ok(Arc::new(Mixture::twenty_five_modes())), GRID_SIGMA),
        "25 Gaussians on a grid in the plane",
    ),
    ("nine-modes", (|| Ok(Arc::new(Mixture::nine_modes())), GRID_SIGMA), "9 of these with unequal weights"),
    ("forty-modes", (|| Ok(Arc::new(Mixture::forty_modes(0))), 20.0), "40 Gaussians anywhere in the plane"),
    ("funnel", (|| Ok(Arc::new(Funnel::new(10, 1.0)?)), 1.0), "Neal's funnel, 10 coordinates"),
    ("many-well", (|| Ok(Arc::new(ManyWell::new(32)?)), 1.0), "Double wells, 32 coordinates"),
    (
        "cox",
        (|| Ok(Arc::new(CoxProcess::generated(10, &mut Rng::seeded(0))?)), 1.0),
        "Log-Gaussian Cox process, 10 x 10 cells",
    ),
];

/// The scale sigma of the pinned Brownian motion for grids of Gaussians: the square root of 5.
const GRID_SIGMA: f64 = 2.236_067_977_499_79;
/// The number of trajectories from which log Z is estimated (Sendera et al. 2024).
const EVALUATED: usize = 2_000;
/// The number of samples that are matched with exact samples to compute the Wasserstein distance. The time of
/// the matching is cubic in this number.
const PAIRED: usize = 1_000;

/// Train a diffusion to sample from a density
#[derive(Args)]
pub(crate) struct Diffusion {
    /// Density to sample from
    #[arg(long, value_parser = choice(TARGETS), default_value = "two-modes")]
    target: Selection<MakeTarget>,
    /// Number of steps of each trajectory
    #[arg(long, default_value_t = 32)]
    horizon: usize,
    /// Standard deviation of additional noise in each step of a trajectory. The noise falls to 0 over the
    /// first half of training
    #[arg(long, default_value_t = 0.0)]
    exploration: f64,
    /// Add the gradient of the target's log-density to the network's drift (Langevin parametrisation)
    #[arg(long)]
    langevin: bool,
    /// Begin training with a drift of 0, by an output layer of the network whose weights are 0
    #[arg(long)]
    zero_init: bool,
    /// Run a local search by Langevin steps (MALA) every 100 training steps, which starts from replayed
    /// objects. Half of each batch is then replayed
    #[arg(long)]
    local_search: bool,
    #[command(flatten)]
    common: Common,
}

/// The settings of local search: the number of Markov chains, and the number of training steps between two
/// searches.
const SEARCH: (usize, usize) = (300, 100);
/// The default capacity of the replay buffer with --local-search.
const SEARCHED: usize = 60_000;
/// The largest shift of the mean of a backward step by a learned backward policy, in standard deviations of
/// the step. Without a shift the steps are those of a Brownian bridge.
const BACKWARD_RANGE: f64 = 0.5;

/// Returns the environment and the target of the task `diffusion` for a target's name.
pub(crate) fn target_env(name: &str, horizon: usize) -> Result<(DiffusionSampling, Arc<dyn Target>)> {
    let Some((_, (make_target, sigma), _)) = TARGETS.iter().find(|(known, ..)| *known == name) else {
        return Err(Error::config("the target", name, "a name that `diffusion --help` lists"));
    };
    let target = make_target()?;
    let process = Process::new(ProcessKind::PinnedBrownian, *sigma, horizon)?;
    Ok((DiffusionSampling::new(target.dim(), process)?, target))
}

/// Returns the environment of the task `diffusion-posterior`.
pub(crate) fn posterior_env() -> Result<DiffusionSampling> {
    DiffusionSampling::new(2, Process::new(ProcessKind::PinnedBrownian, SIGMA, HORIZON)?)
}

impl Task for Diffusion {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        refuse(
            &["--backward"],
            "a command without this flag, because the process gives P_B, unless the objective trains P_B",
        )?;
        refuse(
            &["--epsilon", "--exit-bias"],
            "a command without this flag; use --exploration, which makes Gaussian steps wider",
        )?;
        let capacity = common.replay.unwrap_or(if self.local_search { SEARCHED } else { 0 });
        if capacity == 0 {
            refuse(
                &["--local-search"],
                "a command without this flag, or with a --replay buffer, from whose objects the search \
                 starts",
            )?;
        }
        let recipe =
            Recipe { steps: 2_000, batch: 200, epsilon: 0.0, lr: 1e-3, lr_end: 1.0, ..Recipe::default() };
        let mut run = Run::begin(common, recipe)?;
        let (env, target) = target_env(self.target.name, self.horizon)?;
        let energy = Energy::new(target.clone()).along(env.process());
        run.config.noise =
            Schedule::Linear { from: self.exploration, to: 0.0, steps: run.steps().div_ceil(2) };
        let mut backward = BackwardSteps::Fixed;
        if common.objective.trains_backward() {
            backward = BackwardSteps::Learned { range: BACKWARD_RANGE };
            run.config.replay_path = ReplayPath::PolicyBackward;
        }
        let config = DiffusionPolicyConfig {
            network: grad_net(common, self.zero_init),
            langevin_clip: self.langevin.then_some(1e2),
            backward,
            estimators: common.estimators(),
            ..DiffusionPolicyConfig::default()
        };
        let task = json!({ "target": self.target.name, "horizon": self.horizon });
        let mala = Mala::new(&env, target.clone(), MalaConfig::default())?;
        let langevin = self.langevin.then(|| target.clone());
        let policy = |env: &DiffusionSampling, config, device, kind, rng: &mut Rng| {
            DiffusionPolicy::new(env, config, langevin, device, kind, rng)
        };
        let mut trainer = run.build(env, energy.clone(), config, task, run.rng(), policy)?;
        if capacity > 0 {
            let draw = Draw::WeightedRanks { by: RankBy::Reward, k: 0.01 };
            let replay = ReplayConfig { capacity, eviction: Eviction::Fifo, draw };
            trainer = trainer.with_replay(ReplayBuffer::new(replay)?.terminal_only());
        }
        if self.local_search {
            trainer = trainer.with_refill(Search::new(mala, SEARCH.1, SEARCH.0)?)?;
        }
        let measure = |trainer: &Trainer<DiffusionSampling>| {
            let rng = &mut trainer.evaluation_rng();
            let estimate = estimate_log_z(trainer.env(), trainer.policy(), &energy, EVALUATED, rng)?;
            let estimates = [("log_z_error", estimate.elbo.mean), ("log_z_reweighted_error", estimate.log_z)];
            let error = |(name, value): (&str, f64)| Some((name.to_owned(), (value - target.log_z()?).abs()));
            Ok(estimates.into_iter().filter_map(error).collect())
        };
        run.finish(trainer, measure, Vec::new(), |trainer, report| {
            let env = trainer.env();
            let policy = trainer.policy();
            let rng = &mut trainer.evaluation_rng();
            let estimate = estimate_log_z(env, policy, &energy, EVALUATED, rng)?;
            let points = sample(env, policy, EVALUATED, rng)?.points;
            if let Some(exact) = target.sample(EVALUATED, rng) {
                report.set("eubo", eubo(env, policy, &energy, &env.terminal(exact), rng)?.mean);
            }
            report_samples(target.as_ref(), &estimate, &points, rng, report)?;
            report.panels.push(plane("samples", &points));
            report.panels.extend(target.sample(EVALUATED, rng).map(|exact| plane("target", &exact)));
            Ok(())
        })
    }
}

/// Returns the settings of the network that both diffusion tasks use.
fn grad_net(common: &Common, zero_init: bool) -> GradNetConfig {
    GradNetConfig {
        hidden: common.embedding.unwrap_or(64),
        layers: common.layers.unwrap_or(2),
        zero_init,
        ..GradNetConfig::default()
    }
}

/// Fine-tune a diffusion, which samples a mixture of 25 modes, to a posterior on 9 of these modes
#[derive(Args)]
pub(crate) struct PosteriorDiffusion {
    #[command(flatten)]
    common: Common,
}

/// The number of steps of each trajectory.
const HORIZON: usize = 40;
/// The scale sigma of the pinned Brownian motion.
const SIGMA: f64 = 5.0;
/// The number of exact samples of the prior. The prior's diffusion is fitted to these samples.
const DATA: usize = 20_000;

impl Task for PosteriorDiffusion {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        refuse_replay()?;
        refuse_validation()?;
        refuse(
            &["--epsilon", "--exit-bias"],
            "a command without this flag, because Gaussian steps have no uniform actions and no exit",
        )?;
        refuse(
            &["--backward"],
            "a command without this flag, because P_B cancels in objectives relative to a prior",
        )?;
        let objective: Build = match common.objective.name {
            "tb" => || Ok(Box::new(RelativeTrajectoryBalance::new(1.0)?)),
            "vargrad" => || Ok(Box::new(RelativeLogPartitionVariance::new(1.0)?)),
            other => {
                return Err(Error::config(
                    "--objective",
                    other,
                    "tb or vargrad, which exist relative to the prior",
                ));
            }
        };
        let recipe = Recipe { steps: 2_000, batch: 200, epsilon: 0.0, lr: 2e-3, ..Recipe::default() };
        let mut run = Run::begin(common, recipe)?;
        run.objective = objective;
        let env = posterior_env()?;
        let config = DiffusionPolicyConfig {
            network: grad_net(common, true),
            log_variance_range: Some(4.0),
            ..DiffusionPolicyConfig::default()
        };
        let make =
            |rng: &mut Rng| DiffusionPolicy::new(&env, config.clone(), None, run.device, Kind::Float, rng);
        let mut rng = run.rng();
        let prior_target = Arc::new(Mixture::twenty_five_modes());
        let data = prior_data(&env, prior_target.as_ref(), &mut rng)?;
        // A data set is the only source of trajectories. They are drawn backwards from its objects to the
        // origin, by the fixed P_B of the pinned Brownian motion.
        let source = DataSource::new(0.0, 0.0, 1.0)?;
        let replay_path = ReplayPath::UniformBackward;
        let fitting = TrainerConfig { source, replay_path, ..run.config.clone() };
        // Checkpoints don't contain the prior, and a resumed run fits it again. The seed and the settings of
        // this fit are stored in the checkpoint, so that a run with another prior can't resume it.
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
        // The parameters of `fixed` are overwritten by `copy`. A separate random stream draws their initial
        // values, so that the run's stream isn't changed.
        let fixed = make(&mut Rng::seeded(0))?;
        copy(prior.as_ref(), &fixed);
        let policy = WithPrior { policy, prior: fixed };
        let description = run.describe(task, &config);
        let reward = Energy::new(Arc::new(ratio));
        let trainer = run.trainer(env.clone(), reward, policy, rng, &description)?;
        run.finish(trainer, unmeasured, Vec::new(), |trainer, report| {
            let rng = &mut trainer.evaluation_rng();
            let trajectories = Sampler::new(&env, trainer.policy()).forward(EVALUATED, rng)?;
            let needs = Quantities::from(Quantity::LogPrior);
            let scores =
                tch::no_grad(|| score(&env, trainer.reward(), trainer.policy(), &trajectories, needs))?;
            let estimate = importance_log_z(&scores.relative_log_weights(1.0)?)?;
            let points = &trajectories.terminal_states().points;
            report_samples(&truth, &estimate, points, rng, report)?;
            if common.out().is_some() {
                let of_prior = sample(&env, prior.as_ref(), EVALUATED, rng)?.points;
                report.panels.push(plane("samples of the prior", &of_prior));
                report.panels.push(plane("samples of the posterior", points));
            }
            Ok(())
        })
    }
}

/// Returns a data set of exact samples of the prior, from which trajectories are drawn backwards.
fn prior_data(
    env: &DiffusionSampling,
    prior: &Mixture,
    rng: &mut Rng,
) -> Result<ReplayBuffer<DiffusionSampling>> {
    let (eviction, draw) = NEWEST;
    let mut data = ReplayBuffer::new(ReplayConfig { capacity: DATA, eviction, draw })?.terminal_only();
    let Some(points) = prior.sample(DATA, rng) else { return Ok(data) };
    let log_rewards = prior.log_density(&points)?;
    let paths = Sampler::new(env, &env.uniform()).backward(&env.terminal(points), rng)?;
    data.add(env, &paths.walks(env)?, &log_rewards)?;
    Ok(data)
}

/// Copies the weights of one policy to another policy of the same architecture.
fn copy(from: &dyn Policy<DiffusionSampling>, to: &dyn Policy<DiffusionSampling>) {
    let (Some(from), Some(to)) = (from.parameters(), to.parameters()) else { return };
    tch::no_grad(|| {
        for (from, to) in from.iter().zip(to) {
            to.tensor.shallow_clone().copy_(&from.tensor);
        }
    });
}

/// Reports estimates of log Z, distances between the policy's samples and exact samples of the target, and
/// the number of the target's modes that have a sample.
fn report_samples(
    target: &dyn Target,
    estimate: &LogZEstimate,
    points: &Reals,
    rng: &mut Rng,
    report: &mut Report,
) -> Result<()> {
    let bound = estimate.elbo.mean;
    let log_z = estimate.log_z;
    let truth = target.log_z();
    let error = |value: f64| truth.map(|truth| (value - truth).abs());
    report.extend(json!({ "log_z_true": truth, "log_z_bound": bound, "log_z_error": error(bound),
        "log_z_reweighted": log_z, "log_z_reweighted_error": error(log_z),
        "log_z_reweighted_interval": [estimate.interval.0, estimate.interval.1],
        "ess": estimate.effective_samples / EVALUATED as f64 }));
    if let Some(exact) = target.sample(2 * PAIRED, rng) {
        let part = |points: &Reals, from: usize| points.select(&(from..from + PAIRED).collect::<Vec<_>>());
        let samples = part(points, 0);
        let first = part(&exact, 0);
        let second = part(&exact, PAIRED);
        report.extend(
            json!({ "w2": wasserstein2(&samples, &first)?, "w2_perfect": wasserstein2(&second, &first)?,
            "mmd": maximum_mean_discrepancy(&samples, &first)? }),
        );
    }
    if let Some((centres, radius)) = target.modes() {
        let is_near = |centre: &[f64]| {
            points
                .rows()
                .any(|x| x.iter().zip(centre).map(|(a, b)| (a - b).powi(2)).sum::<f64>() <= radius * radius)
        };
        let found = centres.rows().filter(|centre| is_near(centre)).count();
        report.extend(json!({ "modes_found": found, "modes_total": centres.len() }));
    }
    Ok(())
}

/// Returns a panel of the first two coordinates of each point.
fn plane(title: &str, points: &Reals) -> Panel {
    let shown = points.rows().filter(|x| x.len() > 1).map(|x| (x[0], x[1])).collect::<Vec<_>>();
    Panel::scatter(title, shown).equal_aspect().labels("x1", "x2")
}
