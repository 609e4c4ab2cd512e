//! Sampling from a density by a controlled diffusion: trajectory balance and its kin on the process that the flags name, off-policy if wanted.

use clap::{Parser, ValueEnum};
use gfn::Result;
use gfn::metrics::estimate_log_z;
use gfn::optim::Schedule;
use gfn::replay::{Draw, Eviction, RankBy, ReplayBuffer, ReplayConfig};
use gfn::run::{Metrics, Observer, Validation};
use gfn::train::{ReplayPath, Trainer};
use gfn_extras::explore::Search;
use gfn_gym::diffusion::{
    BackwardSteps, DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Energy, GradNetConfig, Mala, MalaConfig,
    Process, ProcessKind,
};
use serde_json::json;

use super::densities::{EVALUATED, TargetName, draw, estimates, sample_figures};
use crate::flags::{Common, refuse, words};
use crate::run::{Recipe, Report, Run, peak_memory_mib};

/// Train a diffusion to sample from a density
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Density to sample from
    #[arg(long, value_enum, default_value = "two-modes")]
    target: TargetName,
    /// Coordinates of targets that come in several dimensions: gaussian, funnel, many-well, cox, script
    #[arg(long)]
    dim: Option<usize>,
    /// TorchScript file of --target script
    #[arg(long, required_if_eq("target", "script"))]
    script: Option<std::path::PathBuf>,
    /// Process that is steered
    #[arg(long, value_enum, default_value = "brownian")]
    process: ProcessName,
    /// Scale of the process; the target's own unless told otherwise
    #[arg(long)]
    sigma: Option<f64>,
    /// Steps of a trajectory
    #[arg(long, default_value_t = 32)]
    horizon: usize,
    /// Standard deviation added to each step at the start; it falls to 0 over the first half of training
    #[arg(long, default_value_t = 0.0)]
    exploration: f64,
    /// Add the target's gradient to the drift (Langevin parametrisation)
    #[arg(long)]
    langevin: bool,
    /// Learn the variance of P_F
    #[arg(long)]
    learn_variance: bool,
    /// Learn P_B: how far it may go from the process reversed, in its standard deviations (0.5, say)
    #[arg(long)]
    learn_backward: Option<f64>,
    /// Start from the process without drift: the network's output layer starts at 0
    #[arg(long)]
    zero_init: bool,
    /// Search by Langevin steps (MALA) from replayed objects every 100 steps; half of each batch is then replayed
    #[arg(long)]
    local_search: bool,
    /// Transitions scored at once, for less memory and some more time; all at once unless told otherwise
    #[arg(long)]
    chunk: Option<usize>,
    #[command(flatten)]
    common: Common,
}

/// Processes by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum ProcessName {
    /// Brownian motion pinned to the origin
    Brownian,
    /// Ornstein-Uhlenbeck from the origin, rate 1
    Ou,
    /// Variance-preserving, beta from 0.3 down to 0.01
    Vp,
}

/// Chains of each local search, and steps between two.
const SEARCH: (usize, usize) = (300, 100);

type DiffusionTrainer = Trainer<DiffusionSampling>;

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    refuse(&["--backward"], "no such flag: P_B is the process's, unless --learn-backward is given")?;
    refuse(&["--buffer"], "no such flag: the buffer draws by ranks of the reward")?;
    refuse(&["--patience"], "no such flag: no distance is measured on the way")?;
    refuse(
        &["--epsilon", "--exit-bias"],
        "no such flag: Gaussian steps are widened by --exploration and --temperature",
    )?;
    if common.lr_end.is_none() {
        refuse(&["--lr-schedule"], "no such flag without --lr-end: here learning rates stay as they are")?;
    }
    let capacity = common.replay.unwrap_or(if args.local_search { 60_000 } else { 0 });
    if capacity == 0 {
        refuse(&["--local-search"], "a --replay buffer that the search can start from")?;
        refuse(&["--prefill"], "no such flag without a replay buffer: give --replay, too")?;
    }
    let target = args.target.build(args.dim, args.script.as_deref())?;
    let kind = match args.process {
        ProcessName::Brownian => ProcessKind::PinnedBrownian,
        ProcessName::Ou => ProcessKind::OrnsteinUhlenbeck { rate: 1.0 },
        ProcessName::Vp => ProcessKind::VariancePreserving { beta_min: 0.01, beta_max: 0.3 },
    };
    let recipe = Recipe { steps: 2_000, batch: 200, epsilon: 0.0, lr: 1e-3, lr_end: 1.0, ..Recipe::default() };
    let title = format!("{}, {} steps, process {}", words(&args.target), args.horizon, words(&args.process));
    let mut run = Run::begin(common, "diffusion", title, recipe)?;
    let sigma = args.sigma.unwrap_or(args.target.sigma());
    let env = DiffusionSampling::new(target.dim(), Process::new(kind, sigma, args.horizon)?)?;
    let energy = Energy::new(target.clone()).along(env.process());
    let steps = run.steps();
    run.config.noise = Schedule::Linear { from: args.exploration, to: 0.0, steps: steps.div_ceil(2) };
    run.config.chunk = args.chunk;
    let learned_backward = args.learn_backward.or(common.objective.trains_backward().then_some(0.5));
    let backward = learned_backward.map_or(BackwardSteps::Fixed, |range| BackwardSteps::Learned { range });
    if backward != BackwardSteps::Fixed {
        run.config.replay_path = ReplayPath::PolicyBackward;
    }
    let config = DiffusionPolicyConfig {
        network: GradNetConfig {
            hidden: common.embedding.unwrap_or(64),
            layers: common.layers.unwrap_or(2),
            zero_init: args.zero_init,
            ..GradNetConfig::default()
        },
        log_variance_range: args.learn_variance.then_some(4.0),
        langevin_clip: args.langevin.then_some(1e2),
        backward,
        estimators: common.objective.estimators(),
        ..DiffusionPolicyConfig::default()
    };
    let description = json!({ "example": "diffusion", "target": format!("{:?}", args.target), "dim": env.dim(),
        "process": env.process().kind(), "sigma": sigma, "horizon": args.horizon, "network": config });
    let mut rng = run.rng();
    let langevin = args.langevin.then(|| target.clone());
    let policy = DiffusionPolicy::new(&env, config, langevin, run.device, tch::Kind::Float, &mut rng)?;
    let mala = Mala::new(&env, target.clone(), MalaConfig::default())?;
    let mut trainer = Trainer::new(env, energy.clone(), policy, run.objective()?, run.config.clone(), rng)?
        .described_by(&description)?;
    if capacity > 0 {
        let draw = Draw::WeightedRanks { by: RankBy::Reward, k: 0.01 };
        let replay = ReplayConfig { capacity, eviction: Eviction::Fifo, draw };
        trainer = trainer.with_replay(ReplayBuffer::new(replay)?.terminal_only());
    }
    if args.local_search {
        trainer = trainer.with_refill(Search::new(mala, SEARCH.1, SEARCH.0)?)?;
    }
    let measure = |trainer: &DiffusionTrainer| {
        let rng = &mut trainer.evaluation_rng();
        trainer.averaged(|policy| {
            let estimate = estimate_log_z(trainer.env(), policy, &energy, EVALUATED, rng)?;
            let figures = [("log_z_error", estimate.elbo.mean), ("log_z_reweighted_error", estimate.log_z)];
            let off = |truth: f64| figures.map(|(name, value)| (name.to_owned(), (value - truth).abs()));
            Ok(target.log_z().map(off).into_iter().flatten().collect::<Metrics>())
        })
    };
    let mut validation = common.looks(steps).map(|every| Validation::every(every, measure)).transpose()?;
    let observers = validation.iter_mut().map(|validation| validation as &mut dyn Observer<_>).collect();
    let Some((trainer, trained)) = run.train(trainer, |_| Ok(None), observers)? else { return Ok(()) };

    let mut report = Report::default();
    // Before evaluation, which holds more states at once.
    report.set("peak_memory_mib", peak_memory_mib());
    report.set("log_z_true", target.log_z());
    let rng = &mut trainer.evaluation_rng();
    let (figures, points) = estimates(trainer.env(), trainer.policy(), &energy, rng)?;
    report.extend(figures);
    report.extend(sample_figures(&points, target.as_ref(), rng)?);
    let exact = target.sample(EVALUATED, rng);
    let drawn = [Some(("samples", &points)), exact.as_ref().map(|exact| ("target", exact))];
    draw(common, &run.title, &drawn.into_iter().flatten().collect::<Vec<_>>())?;
    run.print(&trained, report)
}
