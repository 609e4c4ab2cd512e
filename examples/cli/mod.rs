//! What the examples share: their flags, the training loop with progress and curves, and the JSON line.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "each example uses a part")]

mod config_file;
pub mod diffusion;
mod exact;
pub mod molecules;
mod objective;
mod outcome;
mod outputs;
pub mod products;
mod sampled;
mod saved;
mod training;
mod vectors;
mod words;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gfn::nn::BackwardPolicy;
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::replay::{Draw, Eviction, ReplayConfig};
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Checkpoint, TrainerConfig};
use gfn::{Error, Result};

pub use config_file::{parse, parse_from};
pub use exact::{Exact, draw_sheet};
pub use objective::ObjectiveName;
pub use outcome::{Distance, Outcome};
pub use outputs::{Written, try_file, try_folder};
pub use sampled::{SAMPLES, sampled};
pub use saved::Saved;
pub use training::{Trained, train, train_observed};
pub use vectors::{VectorRun, VectorTask, VectorTrainer};
pub use words::{cell, value_words, words};

/// The flags that every training example takes; what isn't given is the example's own default.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// TOML file of flags by name, such as `steps = 500`; flags that are given win
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Training steps
    #[arg(long)]
    pub steps: Option<usize>,
    /// Trajectories per step, replayed ones included
    #[arg(long)]
    pub batch: Option<usize>,
    /// Threads of rayon and of libtorch; each number rounds libtorch's products differently, so another one is another run
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Where tensors live: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    pub device: DeviceKind,
    /// What is minimised
    #[arg(long, value_enum, default_value = "tb")]
    pub objective: ObjectiveName,
    /// Width of embeddings (graphs) or of hidden layers (grids)
    #[arg(long)]
    pub embedding: Option<i64>,
    /// Rounds of message passing, or hidden layers
    #[arg(long)]
    pub layers: Option<usize>,
    /// What P_B is
    #[arg(long, value_enum)]
    pub backward: Option<BackwardName>,
    /// Objects that the replay buffer holds; 0 for no replay
    #[arg(long)]
    pub replay: Option<usize>,
    /// What the replay buffer keeps and gives, where there is one
    #[arg(long, value_enum)]
    pub buffer: Option<BufferName>,
    /// Uniform random walks that the replay buffer starts with, where there is one
    #[arg(long)]
    pub prefill: Option<usize>,
    /// Share of uniform actions at the start; it falls to 0 over the first half of the steps
    #[arg(long)]
    pub epsilon: Option<f64>,
    /// Added to the exit's logit in sampling: negative for longer trajectories
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    pub exit_bias: f64,
    /// Logits are divided by it in sampling
    #[arg(long, default_value_t = 1.0)]
    pub temperature: f64,
    /// Learning rate; 0 freezes the policy
    #[arg(long)]
    pub lr: Option<f64>,
    /// Learning rate of log Z
    #[arg(long)]
    pub log_z_lr: Option<f64>,
    /// Share of the learning rates that is left at the end
    #[arg(long)]
    pub lr_end: Option<f64>,
    /// How the learning rates get there
    #[arg(long, value_enum, default_value = "linear")]
    pub lr_schedule: LrSchedule,
    /// Evaluate by a moving average of the parameters, of which so much stays at each step: 0.999, say
    #[arg(long)]
    pub ema: Option<f64>,
    /// Draw training trajectories by the average, too
    #[arg(long, requires = "ema")]
    pub ema_sampling: bool,
    /// Folder for pictures
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Folder to save the checkpoint in, at the end and on Ctrl-C
    #[arg(long)]
    pub save: Option<PathBuf>,
    /// Steps after which it is saved, too
    #[arg(long, requires = "save", value_parser = at_least_one)]
    pub checkpoint_every: Option<usize>,
    /// Checkpoint to go on from
    #[arg(long)]
    pub resume: Option<PathBuf>,
    /// File to write the figures of each step to, one JSON object per line
    #[arg(long)]
    pub metrics: Option<PathBuf>,
    /// Steps after which the exact distance is measured, where that is cheap; a thirtieth of all where curves are drawn
    #[arg(long, value_parser = at_least_one)]
    pub validate_every: Option<usize>,
    /// Stop when the exact distance hasn't fallen in so many measurements
    #[arg(long, requires = "validate_every", value_parser = at_least_one)]
    pub patience: Option<usize>,
    /// Print one line of JSON at the end
    #[arg(long)]
    pub json: bool,
    /// What the run has written.
    #[arg(skip)]
    pub written: Written,
}

/// What P_B is.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackwardName {
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

/// How the learning rates fall.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LrSchedule {
    /// In a straight line
    Linear,
    /// Along half a wave of the cosine
    Cosine,
    /// By the same factor at every step, to an --lr-end above 0
    Exponential,
}

impl LrSchedule {
    fn to(self, to: f64, steps: usize) -> Schedule {
        match self {
            Self::Linear => Schedule::Linear { from: 1.0, to, steps },
            Self::Cosine => Schedule::Cosine { from: 1.0, to, steps },
            Self::Exponential => Schedule::Exponential { from: 1.0, to, steps },
        }
    }
}

/// Parses a count that can't be 0.
pub fn at_least_one(text: &str) -> std::result::Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least 1 is needed".into()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// What a replay buffer keeps and gives.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferName {
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

/// An example's own defaults.
pub struct Defaults {
    pub steps: usize,
    pub batch: usize,
    pub replay: usize,
    pub buffer: BufferName,
    pub prefill: usize,
    pub epsilon: f64,
    pub lr: f64,
    pub log_z_lr: f64,
    pub lr_end: f64,
    /// P_B of the tasks on vectors.
    pub backward: BackwardPolicy,
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
    pub fn runtime(&self) -> Result<Runtime> {
        self.out.as_deref().map_or(Ok(()), try_folder)?;
        self.save.as_ref().map_or(Ok(()), Checkpoint::try_path)?;
        self.metrics.as_deref().map_or(Ok(()), try_file)?;
        Runtime::new(self.threads, self.device)
    }

    /// Whether the policy stays as it is, so that its distribution says nothing.
    pub fn is_frozen(&self) -> bool {
        self.lr == Some(0.0)
    }

    pub fn steps(&self, defaults: &Defaults) -> usize {
        self.steps.unwrap_or(defaults.steps)
    }

    pub fn trainer(&self, defaults: &Defaults) -> TrainerConfig {
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

    /// The buffer's settings, and how many random walks fill it; `None` for no replay.
    pub fn replay(&self, defaults: &Defaults) -> Result<Option<(ReplayConfig, usize)>> {
        let capacity = self.replay.unwrap_or(if self.objective.on_policy() { 0 } else { defaults.replay });
        if capacity == 0 {
            self.refuse_buffer("no such flag without a replay buffer: give --replay, too")?;
            return Ok(None);
        }
        let buffer = self.buffer.unwrap_or(defaults.buffer);
        Ok(Some((buffer.config(capacity), self.prefill.unwrap_or(defaults.prefill))))
    }

    /// Refuses validation, where no distance is measured on the way.
    pub fn refuse_validation(&self) -> Result<()> {
        let expected = "no such flag: no distance is measured on the way";
        refuse("--validate-every", self.validate_every.is_some(), expected)
    }

    /// Refuses --replay, --buffer and --prefill, for examples that have no replay buffer.
    pub fn refuse_replay(&self) -> Result<()> {
        const EXPECTED: &str = "no such flag: this example has no replay buffer";
        refuse("--replay", self.replay.is_some_and(|capacity| capacity > 0), EXPECTED)?;
        self.refuse_buffer(EXPECTED)
    }

    /// Refuses --epsilon and --exit-bias where steps are Gaussian, and no trajectory ends early.
    pub fn refuse_discrete_exploration(&self, expected: &'static str) -> Result<()> {
        refuse("--epsilon", self.epsilon.is_some_and(|epsilon| epsilon != 0.0), expected)?;
        refuse("--exit-bias", self.exit_bias != 0.0, expected)
    }

    fn refuse_buffer(&self, expected: &'static str) -> Result<()> {
        refuse("--buffer", self.buffer.is_some(), expected)?;
        refuse("--prefill", self.prefill.is_some_and(|n| n > 0), expected)
    }

    /// Where to write a picture or a table of this name, if that is wanted; the result lists it.
    pub fn picture(&self, name: &str) -> Option<PathBuf> {
        let path = self.out.as_ref()?.join(name);
        self.written.add(&path);
        Some(path)
    }
}

/// Refuses a flag that was given, where it would do nothing.
pub fn refuse(flag: &'static str, given: bool, expected: &'static str) -> Result<()> {
    match given {
        true => Err(Error::Config { setting: flag, got: "given".into(), expected }),
        false => Ok(()),
    }
}

/// Runs an example's body, and says what went wrong if it did.
pub fn main_of(body: impl FnOnce() -> Result<()>) -> std::process::ExitCode {
    match body() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
