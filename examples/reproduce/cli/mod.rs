//! What the tasks share: their flags, the training loop with progress and curves, and the JSON line.

mod config_file;
mod exact;
pub(crate) mod members;
mod objective;
mod outcome;
mod outputs;
pub(crate) mod products;
mod sampled;
mod saved;
mod training;
mod vectors;
mod words;

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use gfn::nn::BackwardPolicy;
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::Policy;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::ReplayEnv;
use gfn::runtime::{DeviceKind, Runtime, Threads};
use gfn::train::{Checkpoint, Trainer, TrainerConfig};
use gfn::{Error, Result};

pub(crate) use config_file::{matches, parse};
pub(crate) use exact::{Exact, draw_sheet, listed};
pub(crate) use objective::ObjectiveName;
pub(crate) use outcome::{Distance, Report, forget_peak_memory, peak_memory_mib};
pub(crate) use outputs::{Written, try_file, try_folder};
pub(crate) use sampled::{SAMPLES, sampled};
pub(crate) use saved::Saved;
pub(crate) use training::{LrSchedule, Trained, train, train_with_actors};
pub(crate) use vectors::{Extra, VectorRun, VectorTask};
pub(crate) use words::{cell, value_words, words};

use crate::runs::{Asked, RunFolder};
use members::{Dist, ThreadsFor};

/// The flags that every training task takes; what isn't given is the task's own default.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("kept").args(["save", "run"]).multiple(true)))]
pub(crate) struct Common {
    /// TOML file of flags by name, such as `steps = 500`; flags that are given win
    #[arg(long)]
    pub(crate) config: Option<PathBuf>,
    /// Time one of so many replicas by itself, with what it says for what the others would say; the policy must be frozen (--lr 0)
    #[arg(long, hide = true, requires = "lr", conflicts_with_all = ["dist", "threads"], value_parser = at_least_one)]
    pub(crate) as_one_of: Option<usize>,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Training steps
    #[arg(long)]
    pub(crate) steps: Option<usize>,
    /// Trajectories per step, replayed ones included
    #[arg(long)]
    pub(crate) batch: Option<usize>,
    /// Threads; each number rounds differently, so another one is another run
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// What several threads do
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) threads_for: ThreadsFor,
    /// Train as one of several processes that a launcher started (gfn-dist local, torchrun, srun, mpirun)
    #[arg(long, value_enum)]
    #[allow(dead_code, reason = "read before a task is run, by `members`")]
    pub(crate) dist: Option<Dist>,
    /// Processes that train as one with --dist async, each with actors of its own; the rest are the actors
    #[arg(long, requires = "dist", value_parser = at_least_one)]
    #[allow(dead_code, reason = "read before a task is run, by `members`")]
    pub(crate) learners: Option<usize>,
    /// Seconds that a process waits for the others, which may do something alone meanwhile: a validation, a checkpoint
    #[arg(long, requires = "dist", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    #[allow(dead_code, reason = "read before a task is run, by `members`")]
    pub(crate) dist_timeout: u64,
    /// Where tensors live: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    pub(crate) device: DeviceKind,
    /// What is minimised
    #[arg(long, value_enum, default_value = "tb")]
    pub(crate) objective: ObjectiveName,
    /// Width of embeddings (graphs) or of hidden layers (grids)
    #[arg(long)]
    pub(crate) embedding: Option<i64>,
    /// Rounds of message passing, or hidden layers
    #[arg(long)]
    pub(crate) layers: Option<usize>,
    /// What P_B is
    #[arg(long, value_enum)]
    pub(crate) backward: Option<BackwardName>,
    /// Objects that the replay buffer holds; 0 for no replay
    #[arg(long)]
    pub(crate) replay: Option<usize>,
    /// What the replay buffer keeps and gives, where there is one
    #[arg(long, value_enum)]
    pub(crate) buffer: Option<BufferName>,
    /// Uniform random walks that the replay buffer starts with, where there is one
    #[arg(long)]
    pub(crate) prefill: Option<usize>,
    /// Share of uniform actions at the start; it falls to 0 over the first half of the steps
    #[arg(long)]
    pub(crate) epsilon: Option<f64>,
    /// Added to the exit's logit in sampling: negative for longer trajectories
    #[arg(long, default_value_t = 0.0)]
    pub(crate) exit_bias: f64,
    /// Logits are divided by it in sampling
    #[arg(long, default_value_t = 1.0)]
    pub(crate) temperature: f64,
    /// Learning rate; 0 freezes the policy
    #[arg(long)]
    pub(crate) lr: Option<f64>,
    /// Learning rate of log Z
    #[arg(long)]
    pub(crate) log_z_lr: Option<f64>,
    /// Share of the learning rates that is left at the end
    #[arg(long)]
    pub(crate) lr_end: Option<f64>,
    /// How the learning rates get there
    #[arg(long, value_enum, default_value = "linear")]
    pub(crate) lr_schedule: LrSchedule,
    /// Evaluate by a moving average of the parameters, of which so much stays at each step: 0.999, say
    #[arg(long)]
    pub(crate) ema: Option<f64>,
    /// Draw training trajectories by the average, too
    #[arg(long, requires = "ema")]
    pub(crate) ema_sampling: bool,
    /// Folder for everything of the run: settings, metrics, result, pictures and checkpoint; the same command goes on with a run there
    /// that stopped before its end
    #[arg(long, conflicts_with_all = ["out", "save", "metrics"])]
    pub(crate) run: Option<PathBuf>,
    /// Folder for pictures
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Folder to save the checkpoint in, at the end and on Ctrl-C
    #[arg(long)]
    pub(crate) save: Option<PathBuf>,
    /// Steps after which it is saved, too
    #[arg(long, requires = "kept", value_parser = at_least_one)]
    pub(crate) checkpoint_every: Option<usize>,
    /// Checkpoint to go on from
    #[arg(long)]
    pub(crate) resume: Option<PathBuf>,
    /// File to write the figures of each step to, one JSON object per line
    #[arg(long)]
    pub(crate) metrics: Option<PathBuf>,
    /// Folder for event files, in which TensorBoard follows the run
    #[arg(long)]
    pub(crate) tensorboard: Option<PathBuf>,
    /// Steps after which the exact distance is measured, where that is cheap; a thirtieth of all where curves are drawn
    #[arg(long, value_parser = at_least_one)]
    pub(crate) validate_every: Option<usize>,
    /// Stop when the exact distance hasn't fallen in so many measurements
    #[arg(long, requires = "validate_every", value_parser = at_least_one)]
    pub(crate) patience: Option<usize>,
    /// Print one line of JSON at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// What the run has written.
    #[arg(skip)]
    pub(crate) written: Written,
}

/// Looks at the policy during training that make a curve.
const LOOKS: usize = 30;

/// What P_B is.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BackwardName {
    /// Uniform over legal backward actions
    Uniform,
    /// Learned, on the torso of P_F
    Shared,
    /// Learned, by a network of its own
    Separate,
}

impl From<BackwardName> for BackwardPolicy {
    fn from(name: BackwardName) -> Self {
        match name {
            BackwardName::Uniform => Self::Uniform,
            BackwardName::Shared => Self::SharedTorso,
            BackwardName::Separate => Self::Separate,
        }
    }
}

/// Parses a count that can't be 0.
pub(crate) fn at_least_one(text: &str) -> std::result::Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least 1 is needed".into()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// What a replay buffer keeps and gives.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BufferName {
    /// Keeps the newest, gives all alike
    Fifo,
    /// Keeps the newest, gives in proportion to the reward
    Prioritised,
    /// Keeps the best, gives in proportion to the reward
    Best,
}

impl BufferName {
    fn config(self, capacity: usize) -> ReplayConfig {
        let by_reward = Draw::RewardPrioritised { exponent: 1.0 };
        let (eviction, draw) = match self {
            Self::Fifo => (Eviction::Fifo, Draw::Uniform),
            Self::Prioritised => (Eviction::Fifo, by_reward),
            Self::Best => (Eviction::BestReward, by_reward),
        };
        ReplayConfig { capacity, eviction, draw }
    }
}

/// A task's own defaults.
pub(crate) struct Defaults {
    pub(crate) steps: usize,
    pub(crate) batch: usize,
    pub(crate) replay: usize,
    pub(crate) buffer: BufferName,
    pub(crate) prefill: usize,
    pub(crate) epsilon: f64,
    pub(crate) lr: f64,
    pub(crate) log_z_lr: f64,
    pub(crate) lr_end: f64,
    /// P_B of the tasks on vectors.
    pub(crate) backward: BackwardPolicy,
}

impl Default for Defaults {
    /// Enough for some hundred states: without replay, and with learning rates that fall to 0.
    fn default() -> Self {
        Self {
            steps: 1_500,
            batch: 64,
            replay: 0,
            buffer: BufferName::Best,
            prefill: 0,
            epsilon: 0.1,
            lr: 3e-3,
            log_z_lr: 1e-1,
            lr_end: 0.0,
            backward: BackwardPolicy::Uniform,
        }
    }
}

impl Common {
    /// Threads, allocator and device, before anything else; what can't be written is refused before anything is worked for.
    pub(crate) fn runtime(&self) -> Result<Runtime> {
        let libtorch = if self.threads_for == ThreadsFor::Products { self.threads } else { 1 };
        let threads = Threads { rayon: self.threads, libtorch };
        let trains = self.as_one_of.is_some() && !self.is_frozen();
        refuse("--as-one-of", trains, "no such flag while the policy learns: give --lr 0")?;
        if !members::is_first() {
            return Runtime::new(threads, self.device);
        }
        if let (Some(run), Some(asked)) = (self.run_folder(), Asked::of_process()) {
            run.claim(asked, self.resume.as_deref())?;
        }
        self.out().as_deref().map_or(Ok(()), try_folder)?;
        self.save().as_ref().map_or(Ok(()), Checkpoint::try_path)?;
        self.metrics.as_deref().map_or(Ok(()), try_file)?;
        self.tensorboard.as_deref().map_or(Ok(()), try_folder)?;
        Runtime::new(threads, self.device)
    }

    pub(crate) fn run_folder(&self) -> Option<RunFolder> {
        self.run.as_ref().map(RunFolder::new)
    }

    /// The folder for pictures, if they are wanted.
    pub(crate) fn out(&self) -> Option<PathBuf> {
        self.out.clone().or_else(|| Some(self.run_folder()?.pictures()))
    }

    /// Where the checkpoint is saved, if that is wanted.
    pub(crate) fn save(&self) -> Option<PathBuf> {
        self.save.clone().or_else(|| Some(self.run_folder()?.checkpoint()))
    }

    /// The checkpoint to go on from: that of the run folder, or the one that is named.
    pub(crate) fn resume(&self) -> Option<PathBuf> {
        let own = self.run_folder().map(|run| run.checkpoint()).filter(|path| path.exists());
        own.or_else(|| self.resume.clone())
    }

    /// Steps between two looks at the policy: as asked, or some thirty in all where curves are drawn.
    pub(crate) fn looks(&self, steps: usize) -> Option<usize> {
        self.validate_every.or(self.out().map(|_| (steps / LOOKS).max(1)))
    }

    /// Whether the policy stays as it is, so that its distribution says nothing.
    pub(crate) fn is_frozen(&self) -> bool {
        self.lr == Some(0.0)
    }

    /// Whether it is worth to list all states: somebody asks how far the policy is from its target.
    pub(crate) fn is_compared(&self) -> bool {
        !self.is_frozen() && members::measures()
    }

    pub(crate) fn steps(&self, defaults: &Defaults) -> usize {
        self.steps.unwrap_or(defaults.steps)
    }

    pub(crate) fn trainer(&self, defaults: &Defaults) -> TrainerConfig {
        let steps = self.steps(defaults);
        let lr = self.lr.unwrap_or(defaults.lr);
        // A frozen policy has a frozen log Z: what is measured is the same work at every step.
        let log_z_lr = if lr == 0.0 { 0.0 } else { self.log_z_lr.unwrap_or(defaults.log_z_lr) };
        TrainerConfig {
            batch: self.batch.unwrap_or(defaults.batch),
            epsilon: Some(Schedule::Linear {
                // A policy gradient is a mean under the policy itself.
                from: self.epsilon.unwrap_or(if self.objective.on_policy() { 0.0 } else { defaults.epsilon }),
                to: 0.0,
                steps: steps.div_ceil(2),
            }),
            exit_bias: Schedule::Constant(self.exit_bias),
            temperature: Schedule::Constant(self.temperature),
            lr_scale: self.lr_schedule.to(self.lr_end.unwrap_or(defaults.lr_end), steps),
            adam: AdamConfig { lr, log_z_lr, ..AdamConfig::default() },
            replay_path: self.objective.replay_path(),
            ..TrainerConfig::default()
        }
    }

    /// The trainer with the replay buffer that `make` makes of the flags' settings; without one where there is to be no replay.
    pub(crate) fn replayed<E: ReplayEnv, P: Policy<E>>(
        &self,
        trainer: Trainer<E, P>,
        defaults: &Defaults,
        make: impl FnOnce(ReplayConfig) -> Result<ReplayBuffer<E>>,
    ) -> Result<Trainer<E, P>> {
        Ok(match self.replay(defaults)? {
            Some(config) => trainer.with_replay(make(config)?),
            None => trainer,
        })
    }

    /// The buffer's settings; `None` for no replay.
    pub(crate) fn replay(&self, defaults: &Defaults) -> Result<Option<ReplayConfig>> {
        let capacity = self.replay.unwrap_or(if self.objective.on_policy() { 0 } else { defaults.replay });
        if capacity == 0 {
            self.refuse_buffer("no such flag without a replay buffer: give --replay, too")?;
            return Ok(None);
        }
        Ok(Some(self.buffer.unwrap_or(defaults.buffer).config(capacity)))
    }

    /// Refuses validation, where no distance is measured on the way.
    pub(crate) fn refuse_validation(&self) -> Result<()> {
        let expected = "no such flag: no distance is measured on the way";
        refuse("--validate-every", self.validate_every.is_some(), expected)
    }

    /// Refuses --replay, --buffer and --prefill, for tasks that have no replay buffer.
    pub(crate) fn refuse_replay(&self) -> Result<()> {
        const EXPECTED: &str = "no such flag: this task has no replay buffer";
        refuse("--replay", self.replay.is_some_and(|capacity| capacity > 0), EXPECTED)?;
        self.refuse_buffer(EXPECTED)
    }

    /// Refuses --epsilon and --exit-bias where steps are Gaussian, and no trajectory ends early.
    pub(crate) fn refuse_discrete_exploration(&self, expected: &'static str) -> Result<()> {
        refuse("--epsilon", self.epsilon.is_some_and(|epsilon| epsilon != 0.0), expected)?;
        refuse("--exit-bias", self.exit_bias != 0.0, expected)
    }

    fn refuse_buffer(&self, expected: &'static str) -> Result<()> {
        refuse("--buffer", self.buffer.is_some(), expected)?;
        refuse("--prefill", self.prefill.is_some_and(|n| n > 0), expected)
    }

    /// Where to write a picture or a table of this name, if that is wanted and this member does it; the result lists it.
    pub(crate) fn picture(&self, name: &str) -> Option<PathBuf> {
        let path = self.out().filter(|_| members::is_first())?.join(name);
        self.written.add(&path);
        Some(path)
    }

    /// Writes a picture as SVG and as PNG, if pictures are wanted.
    pub(crate) fn draw(&self, name: &str, write: impl Fn(PathBuf) -> Result<()>) -> Result<()> {
        let paths = ["svg", "png"].map(|extension| self.picture(&format!("{name}.{extension}")));
        paths.into_iter().flatten().try_for_each(write)
    }
}

/// Refuses a flag that was given, where it would do nothing.
pub(crate) fn refuse(flag: &'static str, given: bool, expected: &'static str) -> Result<()> {
    (!given).then_some(()).ok_or_else(|| Error::config(flag, "given", expected))
}
