//! The flags that tasks share, and the training settings that follow from them.

pub(crate) mod config_file;
mod objective;

pub(crate) use objective::{Build, OBJECTIVES, ObjectiveName};

pub(crate) use crate::run::task_flags::refuse;

use clap::ArgGroup;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::prelude::*;
use crate::run::folder::RunFolder;
use crate::run::members::ThreadUse;

/// A value that a flag accepts: its name, the value, and its help text.
pub(crate) type Choice<T> = (&'static str, T, &'static str);

/// A value of a flag, with the name by which it was chosen.
#[derive(Clone, Copy)]
pub(crate) struct Selection<T> {
    pub(crate) name: &'static str,
    pub(crate) value: T,
}

impl<T> Selection<T> {
    /// Returns the name with spaces instead of hyphens.
    pub(crate) fn words(&self) -> String {
        self.name.replace('-', " ")
    }
}

/// Returns each value of a table with its name.
pub(crate) fn selections<T: Clone + 'static>(
    table: impl IntoIterator<Item = &'static Choice<T>>,
) -> Vec<Selection<T>> {
    table.into_iter().map(|(name, value, _)| Selection { name, value: value.clone() }).collect()
}

/// Returns a parser of flags that accepts the names in a table.
pub(crate) fn choice<T: Clone + Send + Sync + 'static>(
    table: impl IntoIterator<Item = &'static Choice<T>>,
) -> impl TypedValueParser<Value = Selection<T>> {
    let table: Vec<&'static Choice<T>> = table.into_iter().collect();
    let names: Vec<PossibleValue> =
        table.iter().map(|(name, _, help)| PossibleValue::new(*name).help(*help)).collect();
    PossibleValuesParser::new(names).try_map(move |given| {
        let known = table.iter().find(|(name, ..)| *name == given);
        known
            .map(|(name, value, _)| Selection { name, value: value.clone() })
            .ok_or("the name isn't one of the possible values; `--help` lists them")
    })
}

/// Returns the name by which a flag accepts this value.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The flags of every training task. Each task has its own defaults for flags without one here.
#[derive(Args, Clone)]
#[command(group(ArgGroup::new("kept").args(["save", "run"]).multiple(true)))]
pub(crate) struct Common {
    /// TOML file of flags by name, such as `steps = 500`; flags on the command line win
    #[arg(long)]
    config: Option<PathBuf>,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Training steps
    #[arg(long)]
    pub(crate) steps: Option<usize>,
    /// Trajectories per step, replayed ones included
    #[arg(long)]
    pub(crate) batch: Option<usize>,
    /// Threads; the number changes no result unless --threads-for names another use
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Use of several threads
    #[arg(long, value_enum, default_value = "environment")]
    pub(crate) threads_for: ThreadUse,
    /// Train as one of several processes that a launcher started (gfn-dist local, torchrun, srun, mpirun):
    /// each draws and scores its share of the batch, and all make the same update
    #[arg(long, value_parser = ["sync"])]
    dist: Option<String>,
    /// Seconds that a process waits for the others, which may validate or save alone meanwhile
    #[arg(long, requires = "dist", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    dist_timeout: u64,
    /// Device of tensors: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    pub(crate) device: DeviceKind,
    /// Objective that is minimised
    #[arg(long, value_parser = choice(OBJECTIVES), default_value = "tb")]
    pub(crate) objective: ObjectiveName,
    /// Width of embeddings (graphs) or of hidden layers (grids)
    #[arg(long)]
    pub(crate) embedding: Option<i64>,
    /// Rounds of message passing, or hidden layers
    #[arg(long)]
    pub(crate) layers: Option<usize>,
    /// Backward policy
    #[arg(long, value_parser = choice(BACKWARD))]
    pub(crate) backward: Option<Selection<BackwardPolicy>>,
    /// Objects that the replay buffer holds; 0 for no replay
    #[arg(long)]
    pub(crate) replay: Option<usize>,
    /// Share of uniform actions at the start; it falls to 0 over the first half of the steps
    #[arg(long)]
    epsilon: Option<f64>,
    /// Number added to the exit's logit in sampling: negative for longer trajectories
    #[arg(long, default_value_t = 0.0)]
    exit_bias: f64,
    /// Learning rate; 0 freezes the policy
    #[arg(long)]
    lr: Option<f64>,
    /// Learning rate of log Z
    #[arg(long)]
    log_z_lr: Option<f64>,
    /// Share of the learning rates that is left at the end
    #[arg(long)]
    lr_end: Option<f64>,
    /// Evaluate by a moving average of the parameters, which keeps this share of itself at each step: 0.999,
    /// for example
    #[arg(long)]
    pub(crate) ema: Option<f64>,
    /// Draw training trajectories by the average, too
    #[arg(long, requires = "ema")]
    pub(crate) ema_sampling: bool,
    /// Folder for everything of the run: settings, metrics, result, pictures and checkpoint; the same command
    /// resumes a run there that stopped before its end
    #[arg(long, conflicts_with_all = ["out", "save", "metrics"])]
    run: Option<PathBuf>,
    /// Folder for pictures
    #[arg(long)]
    out: Option<PathBuf>,
    /// Folder to save the checkpoint in, at the end and on Ctrl-C
    #[arg(long)]
    save: Option<PathBuf>,
    /// Steps between checkpoints
    #[arg(long, requires = "kept", value_parser = at_least_one)]
    pub(crate) checkpoint_every: Option<usize>,
    /// Checkpoint to resume from
    #[arg(long)]
    pub(crate) resume: Option<PathBuf>,
    /// File for the figures of each step, one JSON object per line
    #[arg(long)]
    metrics: Option<PathBuf>,
    /// Folder for event files, in which TensorBoard follows the run
    #[arg(long)]
    pub(crate) tensorboard: Option<PathBuf>,
    /// Steps between measurements of the exact distance, if they are cheap; a thirtieth of all steps if
    /// curves are drawn
    #[arg(long, value_parser = at_least_one)]
    validate_every: Option<usize>,
    /// Print one line of JSON at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of tasks that need no trainer.
#[derive(Args)]
pub(crate) struct Machine {
    /// Seed of everything that is random
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Threads of rayon and of libtorch; each number of threads rounds libtorch's products differently, so
    /// another number gives another run
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Device of tensors: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    pub(crate) device: DeviceKind,
    /// Print one line of JSON at the end
    #[arg(long)]
    pub(crate) json: bool,
}

impl Machine {
    /// Sets the threads, and returns the device.
    pub(crate) fn device(&self) -> Result<tch::Device> {
        Ok(Runtime::new(self.threads, self.device)?.device())
    }
}

/// The backward policies that `--backward` accepts.
const BACKWARD: &[Choice<BackwardPolicy>] = &[
    ("uniform", BackwardPolicy::Uniform, "Uniform over legal backward actions"),
    ("shared", BackwardPolicy::SharedTorso, "Learned, on the torso of the forward policy"),
    ("separate", BackwardPolicy::Separate, "Learned, by its own network"),
];

/// Parses a count that can't be 0.
pub(crate) fn at_least_one(text: &str) -> std::result::Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("expected at least 1".into()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// The number of points of a curve that is measured during training.
const MEASUREMENTS: usize = 30;

impl Common {
    pub(crate) fn run_folder(&self) -> Option<RunFolder> {
        self.run.as_ref().map(RunFolder::new)
    }

    /// Returns the folder for pictures; `None` if no pictures are drawn.
    pub(crate) fn out(&self) -> Option<PathBuf> {
        self.out.clone().or_else(|| Some(self.run_folder()?.pictures()))
    }

    /// Returns the folder for the checkpoint; `None` if no checkpoint is saved.
    pub(crate) fn save(&self) -> Option<PathBuf> {
        self.save.clone().or_else(|| Some(self.run_folder()?.checkpoint()))
    }

    /// Returns the file for the metrics of each step; `None` if no such file is written.
    pub(crate) fn metrics(&self) -> Option<PathBuf> {
        self.metrics.clone().or_else(|| Some(self.run_folder()?.metrics()))
    }

    /// Returns the checkpoint to resume from: the run folder's checkpoint if there is one, otherwise the
    /// value of `--resume`.
    pub(crate) fn resume(&self) -> Option<PathBuf> {
        let own = self.run_folder().map(|run| run.checkpoint()).filter(|path| Checkpoint::exists(path));
        own.or_else(|| self.resume.clone())
    }

    /// Returns the number of steps between two measurements: the value of `--validate-every`, or a thirtieth
    /// of all steps if pictures are drawn.
    pub(crate) fn measures_every(&self, steps: usize) -> Option<usize> {
        self.validate_every.or(self.out().map(|_| (steps / MEASUREMENTS).max(1)))
    }

    /// Returns `true` if the learning rate is 0. The policy isn't trained then, so its distribution is
    /// meaningless.
    pub(crate) fn is_frozen(&self) -> bool {
        self.lr == Some(0.0)
    }

    /// Returns the settings of training by flags and recipe. If the policy is frozen, log Z is frozen, too,
    /// so that every step does the same work.
    pub(crate) fn trainer(&self, recipe: &Recipe) -> TrainerConfig {
        let steps = self.steps.unwrap_or(recipe.steps);
        let lr = self.lr.unwrap_or(recipe.lr);
        let log_z_lr = if lr == 0.0 { 0.0 } else { self.log_z_lr.unwrap_or(recipe.log_z_lr) };
        TrainerConfig {
            batch: self.batch.unwrap_or(recipe.batch),
            epsilon: Some(Schedule::Linear { from: self.epsilon(recipe), to: 0.0, steps: steps.div_ceil(2) }),
            exit_bias: Schedule::Constant(self.exit_bias),
            lr_scale: Schedule::Linear { from: 1.0, to: self.lr_end.unwrap_or(recipe.lr_end), steps },
            adam: AdamConfig { lr, log_z_lr, ..AdamConfig::default() },
            replay_path: self.objective.replay_path(),
            ..TrainerConfig::default()
        }
    }

    /// Returns the share of uniform actions at the start. The default is 0 for on-policy objectives, whose
    /// gradients are means under the policy itself.
    pub(crate) fn epsilon(&self, recipe: &Recipe) -> f64 {
        self.epsilon.unwrap_or(if self.objective.is_on_policy() { 0.0 } else { recipe.epsilon })
    }

    /// Returns the settings of the replay buffer; `None` if there is no buffer.
    pub(crate) fn replay(&self, recipe: &Recipe) -> Option<ReplayConfig> {
        let capacity = self.replay.unwrap_or(if self.objective.is_on_policy() { 0 } else { recipe.replay });
        let (eviction, draw) = recipe.buffer;
        (capacity > 0).then_some(ReplayConfig { capacity, eviction, draw })
    }

    /// Returns the backward policy: the value of `--backward`, a separate network if the objective trains the
    /// backward policy, or the task's default.
    pub(crate) fn backward(&self, default: BackwardPolicy) -> BackwardPolicy {
        self.backward.map_or_else(|| self.objective.backward(default), |named| named.value)
    }

    /// Returns the estimates that the objective needs from the network besides the policies.
    pub(crate) fn estimators(&self) -> EstimatorsConfig {
        self.objective.estimators()
    }

    /// Returns the settings of a perceptron. Flags override this width and number of layers.
    pub(crate) fn mlp(&self, width: i64, layers: usize) -> MlpConfig {
        let hidden = vec![self.embedding.unwrap_or(width); self.layers.unwrap_or(layers)];
        MlpConfig { hidden, ..MlpConfig::default() }
    }

    /// Returns the settings of the policy for tasks on vectors.
    pub(crate) fn perceptron(&self, backward: BackwardPolicy) -> MlpPolicyConfig {
        self.objective.perceptron(self.mlp(256, 2), self.backward(backward))
    }

    /// Returns the settings of a graph network. Flags override this number of layers and width.
    pub(crate) fn graph_net(&self, layers: usize, width: i64, backward: BackwardPolicy) -> GraphNetConfig {
        GraphNetConfig {
            layers: self.layers.unwrap_or(layers),
            embedding: self.embedding.unwrap_or(width),
            backward: self.backward(backward),
            estimators: self.estimators(),
            ..GraphNetConfig::default()
        }
    }

    /// Writes a file of this name to the folder for pictures, if there is such a folder and this member of
    /// the run is the first.
    pub(crate) fn write(&self, name: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let Some(folder) = self.out().filter(|_| members::is_first()) else { return Ok(()) };
        let path = folder.join(name);
        write(&path)?;
        report_file(&path);
        Ok(())
    }

    /// Writes a picture of this name as SVG and as PNG, if pictures are drawn.
    pub(crate) fn draw(&self, name: &str, write: impl Fn(&Path) -> Result<()>) -> Result<()> {
        ["svg", "png"].iter().try_for_each(|extension| self.write(&format!("{name}.{extension}"), &write))
    }
}

/// Returns an error if `--replay` is given, for tasks without a replay buffer.
pub(crate) fn refuse_replay() -> Result<()> {
    refuse(&["--replay"], "a command without this flag, because this task has no replay buffer")
}

/// Returns an error if `--validate-every` is given, for tasks that measure no distance during training.
pub(crate) fn refuse_validation() -> Result<()> {
    refuse(
        &["--validate-every"],
        "a command without this flag, because this task measures no distance during training",
    )
}
