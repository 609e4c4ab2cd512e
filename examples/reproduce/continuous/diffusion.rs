//! Sampling from a density by a controlled diffusion: trajectory balance and its kin on pinned Brownian
//! motion, off-policy by flag.

use gfn::metrics::{estimate_log_z, eubo};
use gfn::replay::RankBy;
use gfn_extras::explore::Search;
use gfn_gym::diffusion::{
    BackwardSteps, DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Energy, GradNetConfig, Mala, MalaConfig,
    Process, ProcessKind,
};

use super::densities::{EVALUATED, MakeTarget, TARGETS, draw, report_log_z, report_samples};
use crate::prelude::*;

/// Train a diffusion to sample from a density
#[derive(Args)]
pub(crate) struct Diffusion {
    /// Density to sample from
    #[arg(long, value_parser = choice(TARGETS), default_value = "two-modes")]
    target: Selection<MakeTarget>,
    /// Steps of a trajectory
    #[arg(long, default_value_t = 32)]
    horizon: usize,
    /// Standard deviation added to each step at the start; it falls to 0 over the first half of training
    #[arg(long, default_value_t = 0.0)]
    exploration: f64,
    /// Add the target's gradient to the drift (Langevin parametrisation)
    #[arg(long)]
    langevin: bool,
    /// Start from the process without drift: the network's output layer starts at 0
    #[arg(long)]
    zero_init: bool,
    /// Search by Langevin steps (MALA) from replayed objects every 100 steps; half of each batch is then
    /// replayed
    #[arg(long)]
    local_search: bool,
    #[command(flatten)]
    common: Common,
}

/// Chains of each local search, and steps between two.
const SEARCH: (usize, usize) = (300, 100);
/// Objects that the replay buffer of a local search holds.
const SEARCHED: usize = 60_000;
/// Range of a learned backward policy, in standard deviations of the process.
const BACKWARD_RANGE: f64 = 0.5;

impl Task for Diffusion {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        refuse(&["--backward"], "no such flag: P_B is the process's, unless the objective trains it")?;
        refuse(&["--epsilon", "--exit-bias"], "no such flag: Gaussian steps are widened by --exploration")?;
        let capacity = common.replay.unwrap_or(if self.local_search { SEARCHED } else { 0 });
        if capacity == 0 {
            refuse(&["--local-search"], "a --replay buffer that the search can start from")?;
        }
        let (make_target, sigma) = self.target.value;
        let target = make_target()?;
        let recipe = Recipe { steps: 2_000, batch: 200, epsilon: 0.0, lr: 1e-3, lr_end: 1.0, ..Recipe::default() };
        let title = format!("{}, {} steps", self.target.words(), self.horizon);
        let mut run = Run::begin(common, "diffusion", title, recipe)?;
        let process = Process::new(ProcessKind::PinnedBrownian, sigma, self.horizon)?;
        let env = DiffusionSampling::new(target.dim(), process)?;
        let energy = Energy::new(target.clone()).along(env.process());
        run.config.noise = Schedule::Linear { from: self.exploration, to: 0.0, steps: run.steps().div_ceil(2) };
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
        let (description, mut rng) = (run.describe(task, &config), run.rng());
        let langevin = self.langevin.then(|| target.clone());
        let policy = DiffusionPolicy::new(&env, config, langevin, run.device, Kind::Float, &mut rng)?;
        let mala = Mala::new(&env, target.clone(), MalaConfig::default())?;
        let mut trainer = run.trainer(env, energy.clone(), policy, rng, &description)?;
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
            let mut metrics = Metrics::new();
            if let Some(log_z) = target.log_z() {
                metrics.insert("log_z_error".to_owned(), (estimate.elbo.mean - log_z).abs());
                metrics.insert("log_z_reweighted_error".to_owned(), (estimate.log_z - log_z).abs());
            }
            Ok(metrics)
        };
        let Some((trainer, mut report)) = run.train(trainer, measure, Vec::new())? else { return Ok(()) };

        let (env, policy, rng) = (trainer.env(), trainer.policy(), &mut trainer.evaluation_rng());
        let estimate = estimate_log_z(env, policy, &energy, EVALUATED, rng)?;
        let points = sample(env, policy, EVALUATED, rng)?.points;
        let error = |value: f64| target.log_z().map(|log_z| (value - log_z).abs());
        report_log_z(&estimate, &mut report);
        report.extend(json!({ "log_z_true": target.log_z(), "log_z_error": error(estimate.elbo.mean),
            "log_z_reweighted_error": error(estimate.log_z) }));
        if let Some(exact) = target.sample(EVALUATED, rng) {
            report.set("eubo", eubo(env, policy, &energy, &env.terminal(exact), rng)?.mean);
        }
        report_samples(&points, target.as_ref(), rng, &mut report)?;
        let exact = target.sample(EVALUATED, rng);
        let mut sets = vec![("samples", &points)];
        sets.extend(exact.as_ref().map(|exact| ("target", exact)));
        draw(&run, &sets)?;
        run.print(report)
    }
}

/// Returns the network of both diffusion tasks.
pub(super) fn grad_net(common: &Common, zero_init: bool) -> GradNetConfig {
    GradNetConfig {
        hidden: common.embedding.unwrap_or(64),
        layers: common.layers.unwrap_or(2),
        zero_init,
        ..GradNetConfig::default()
    }
}
