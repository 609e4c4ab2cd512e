//! The flags that tasks share, and what they say of training.

pub(crate) mod config_file;
mod objective;

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use gfn::Result;
use gfn::nn::{BackwardPolicy, MlpConfig};
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::MlpPolicyConfig;
use gfn::replay::{Draw, Eviction, ReplayConfig};
use gfn::runtime::DeviceKind;
use gfn::train::{Checkpoint, TrainerConfig};

pub(crate) use objective::ObjectiveName;

use crate::run::Recipe;
use crate::run::files::written;
use crate::run::folder::RunFolder;
use crate::run::members;
pub(crate) use crate::run::task_flags::refuse;

/// The flags that every training task takes; what isn't given is the task's own default.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("kept").args(["save", "run"]).multiple(true)))]
pub(crate) struct Common {
    /// TOML file of flags by name, such as `steps = 500`; flags that are given win
    #[arg(long)]
    pub(crate) config: Option<PathBuf>,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Training steps
    #[arg(long)]
    pub(crate) steps: Option<usize>,
    /// Trajectories per step, replayed ones included
    #[arg(long)]
    pub(crate) batch: Option<usize>,
    #[command(flatten)]
    pub(crate) team: Team,
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
}

/// Who takes part in a run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Team {
    /// Threads; the number changes no result unless --threads-for says otherwise
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// What several threads do
    #[arg(long, value_enum, default_value = "environment")]
    pub(crate) threads_for: ThreadsFor,
    /// Train as one of several processes that a launcher started (gfn-dist local, torchrun, srun, mpirun)
    #[arg(long, value_enum)]
    pub(crate) dist: Option<Dist>,
    /// Seconds that a process waits for the others, which may do something alone meanwhile: a validation, a checkpoint
    #[arg(long, requires = "dist", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) dist_timeout: u64,
}

/// What several threads do.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThreadsFor {
    /// They step, mask and encode states and compute rewards: used only while that is measured to be faster than one thread
    #[value(alias = "auto")]
    Environment,
    /// Each draws and scores its share of the batch: another number of threads is another run. Faster for some graph
    /// networks on cores that nobody else uses, and up to two times slower than one thread on others
    Replicas,
    /// libtorch splits its products among them, too: on cores that others use, that can be ten times slower than one thread
    Products,
}

/// How processes that a launcher started work together.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dist {
    /// Each draws and scores its share of the batch, and all make the same update
    Sync,
}

/// How the learning rates fall.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LrSchedule {
    /// In a straight line
    Linear,
    /// Along half a wave of the cosine
    Cosine,
    /// By the same factor at every step, to an --lr-end above 0
    Exponential,
}

/// P_B by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BackwardName {
    /// Uniform over legal backward actions
    Uniform,
    /// Learned, on the torso of P_F
    Shared,
    /// Learned, by a network of its own
    Separate,
}

/// Replay buffers by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BufferName {
    /// Keeps the newest, gives all alike
    Fifo,
    /// Keeps the newest, gives in proportion to the reward
    Prioritised,
    /// Keeps the best, gives in proportion to the reward
    Best,
}

/// Parses a count that can't be 0.
pub(crate) fn at_least_one(text: &str) -> std::result::Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least 1 is needed".into()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// A flag's value as it is written on the command line, in words.
pub(crate) fn words(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().replace('-', " "))
}

/// Looks at the policy during training that make a curve.
const LOOKS: usize = 30;

impl Common {
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
        let own = self.run_folder().map(|run| run.checkpoint()).filter(|path| Checkpoint::exists(path));
        own.or_else(|| self.resume.clone())
    }

    /// Steps between two looks at the policy: as asked, or some thirty in all where curves are drawn.
    pub(crate) fn looks(&self, steps: usize) -> Option<usize> {
        self.validate_every.or(self.out().map(|_| (steps / LOOKS).max(1)))
    }

    /// `true` if the policy stays as it is, so that its distribution says nothing.
    pub(crate) fn is_frozen(&self) -> bool {
        self.lr == Some(0.0)
    }

    /// `true` if it is worth to list all states: this member measures how far the policy is from its target.
    pub(crate) fn is_compared(&self) -> bool {
        !self.is_frozen() && members::is_first()
    }

    /// The settings of training, with a task's own where the flags say nothing.
    pub(crate) fn trainer(&self, recipe: &Recipe) -> TrainerConfig {
        let steps = self.steps.unwrap_or(recipe.steps);
        let lr = self.lr.unwrap_or(recipe.lr);
        // A frozen policy has a frozen log Z: what is measured is the same work at every step.
        let log_z_lr = if lr == 0.0 { 0.0 } else { self.log_z_lr.unwrap_or(recipe.log_z_lr) };
        let (from, to) = (1.0, self.lr_end.unwrap_or(recipe.lr_end));
        TrainerConfig {
            batch: self.batch.unwrap_or(recipe.batch),
            epsilon: Some(Schedule::Linear { from: self.epsilon(recipe), to: 0.0, steps: steps.div_ceil(2) }),
            exit_bias: Schedule::Constant(self.exit_bias),
            temperature: Schedule::Constant(self.temperature),
            lr_scale: match self.lr_schedule {
                LrSchedule::Linear => Schedule::Linear { from, to, steps },
                LrSchedule::Cosine => Schedule::Cosine { from, to, steps },
                LrSchedule::Exponential => Schedule::Exponential { from, to, steps },
            },
            adam: AdamConfig { lr, log_z_lr, ..AdamConfig::default() },
            replay_path: self.objective.replay_path(),
            ..TrainerConfig::default()
        }
    }

    /// The share of uniform actions at the start: a policy gradient is a mean under the policy itself.
    pub(crate) fn epsilon(&self, recipe: &Recipe) -> f64 {
        self.epsilon.unwrap_or(if self.objective.on_policy() { 0.0 } else { recipe.epsilon })
    }

    /// The buffer's settings; `None` for no replay.
    pub(crate) fn replay(&self, recipe: &Recipe) -> Result<Option<ReplayConfig>> {
        let capacity = self.replay.unwrap_or(if self.objective.on_policy() { 0 } else { recipe.replay });
        if capacity == 0 {
            refuse(&["--buffer", "--prefill"], "no such flag without a replay buffer: give --replay, too")?;
            return Ok(None);
        }
        let by_reward = Draw::RewardPrioritised { exponent: 1.0 };
        let (eviction, draw) = match self.buffer.unwrap_or(recipe.buffer) {
            BufferName::Fifo => (Eviction::Fifo, Draw::Uniform),
            BufferName::Prioritised => (Eviction::Fifo, by_reward),
            BufferName::Best => (Eviction::BestReward, by_reward),
        };
        Ok(Some(ReplayConfig { capacity, eviction, draw }))
    }

    /// P_B as the flags say; a network of its own where the objective trains it, or a task's default.
    pub(crate) fn backward(&self, default: BackwardPolicy) -> BackwardPolicy {
        match self.backward {
            Some(BackwardName::Uniform) => BackwardPolicy::Uniform,
            Some(BackwardName::Shared) => BackwardPolicy::SharedTorso,
            Some(BackwardName::Separate) => BackwardPolicy::Separate,
            None if self.objective.trains_backward() => BackwardPolicy::Separate,
            None => default,
        }
    }

    /// A perceptron of this width and depth, unless the flags say otherwise.
    pub(crate) fn mlp(&self, width: i64, layers: usize) -> MlpConfig {
        let hidden = vec![self.embedding.unwrap_or(width); self.layers.unwrap_or(layers)];
        MlpConfig { hidden, ..MlpConfig::default() }
    }

    /// The policy of tasks on vectors.
    pub(crate) fn perceptron(&self, backward: BackwardPolicy) -> MlpPolicyConfig {
        MlpPolicyConfig {
            mlp: self.mlp(256, 2),
            backward: self.backward(backward),
            estimators: self.objective.estimators(),
            paths: self.objective.needs_paths(),
            ..MlpPolicyConfig::default()
        }
    }

    /// Writes a table or a picture of this name, if that is wanted and this member does it.
    pub(crate) fn write(&self, name: &str, write: impl FnOnce(&PathBuf) -> Result<()>) -> Result<()> {
        let Some(folder) = self.out().filter(|_| members::is_first()) else { return Ok(()) };
        let path = folder.join(name);
        write(&path)?;
        written(&path);
        Ok(())
    }

    /// Writes a picture as SVG and as PNG, if pictures are wanted.
    pub(crate) fn draw(&self, name: &str, write: impl Fn(&PathBuf) -> Result<()>) -> Result<()> {
        ["svg", "png"].iter().try_for_each(|extension| self.write(&format!("{name}.{extension}"), &write))
    }
}

/// Refuses [`Common`]'s flags of a replay buffer.
pub(crate) fn refuse_replay() -> Result<()> {
    refuse(&["--replay", "--buffer", "--prefill"], "no such flag: this task has no replay buffer")
}

/// Refuses validation, where no distance is measured on the way.
pub(crate) fn refuse_validation() -> Result<()> {
    refuse(&["--validate-every"], "no such flag: no distance is measured on the way")
}
