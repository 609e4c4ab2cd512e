//! The flags that tasks share, and the training settings that follow from them.

pub(crate) mod config_file;
mod objective;

pub(crate) use objective::{Build, OBJECTIVES, ObjectiveName};

pub(crate) use crate::run::task_flags::refuse;

use clap::ArgGroup;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gfn::rollout::RolloutPlace;

use crate::prelude::*;
use crate::run::folder::RunFolder;
use crate::run::members::ThreadUse;

/// A row of a table of values that a flag accepts: the name on the command line, the value, and its help
/// text.
pub(crate) type Choice<T> = (&'static str, T, &'static str);

/// The value of a flag that is chosen by name, together with this name.
#[derive(Clone, Copy)]
pub(crate) struct Selection<T> {
    pub(crate) name: &'static str,
    pub(crate) value: T,
}

impl<T> Selection<T> {
    /// Returns the name of the chosen value, with spaces instead of hyphens.
    pub(crate) fn words(&self) -> String {
        self.name.replace('-', " ")
    }
}

/// Returns a [`Selection`] for each row of a table.
pub(crate) fn selections<T: Clone + 'static>(
    table: impl IntoIterator<Item = &'static Choice<T>>,
) -> Vec<Selection<T>> {
    table.into_iter().map(|(name, value, _)| Selection { name, value: value.clone() }).collect()
}

/// Returns a parser of a flag's value. The parser accepts the names in the table's rows.
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

/// Returns the name on the command line for this value of an enum.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The flags of every training task. A flag that is an `Option` here has a different default in each task.
#[derive(Args, Clone)]
#[command(group(ArgGroup::new("kept").args(["save", "run"]).multiple(true)))]
pub(crate) struct Common {
    /// TOML file that sets flags by name, such as `steps = 500`. Flags on the command line take precedence
    #[arg(long)]
    config: Option<PathBuf>,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Number of seeds, which are --seed, --seed + 1 and so on. With more than one, each seed trains on one
    /// thread, --threads seeds side by side; the result has means and spreads, and each seed gets a folder
    /// seed-N in each folder that a flag names
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    seeds: usize,
    /// Number of training steps
    #[arg(long)]
    pub(crate) steps: Option<usize>,
    /// Number of trajectories per training step, including replayed trajectories
    #[arg(long)]
    pub(crate) batch: Option<usize>,
    /// Number of threads, or of seeds that train side by side. Results don't depend on it, except with
    /// --threads-for replicas or products
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Work that several threads share
    #[arg(long, value_enum, default_value = "environment")]
    pub(crate) threads_for: ThreadUse,
    /// Train as one of several processes that a launcher started (gfn-dist local, torchrun, srun, mpirun).
    /// Each process draws and scores its share of the batch, and all processes make the same update
    #[arg(long, value_parser = ["sync"])]
    dist: Option<String>,
    /// Number of seconds that a process waits for another process, which may be busy validating or saving
    #[arg(long, requires = "dist", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    dist_timeout: u64,
    /// Device that holds all tensors: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    pub(crate) device: DeviceKind,
    /// Objective that training minimises
    #[arg(long, value_parser = choice(OBJECTIVES), default_value = "tb")]
    pub(crate) objective: ObjectiveName,
    /// Width of the network: of embeddings in a graph network, of hidden layers in a perceptron
    #[arg(long)]
    pub(crate) embedding: Option<i64>,
    /// Number of rounds of message passing in a graph network, or of hidden layers in a perceptron
    #[arg(long)]
    pub(crate) layers: Option<usize>,
    /// Backward policy P_B
    #[arg(long, value_parser = choice(BACKWARD))]
    pub(crate) backward: Option<Selection<BackwardPolicy>>,
    /// Place where roll-outs evaluate the policy
    #[arg(long, value_parser = choice(ROLLOUTS), default_value = "measured")]
    rollouts: Selection<RolloutPlace>,
    /// Capacity of the replay buffer, in objects; 0 for no replay buffer
    #[arg(long)]
    pub(crate) replay: Option<usize>,
    /// Share of uniform random actions in the first step. The share falls to 0 over the first half of the
    /// steps
    #[arg(long)]
    epsilon: Option<f64>,
    /// Number that is added to the exit's logit in sampling. A negative number makes trajectories longer
    #[arg(long, default_value_t = 0.0)]
    exit_bias: f64,
    /// Learning rate of the networks; 0 freezes the policy
    #[arg(long)]
    lr: Option<f64>,
    /// Learning rate of log Z
    #[arg(long)]
    log_z_lr: Option<f64>,
    /// Ratio of each learning rate in the last step to the learning rate in the first step
    #[arg(long)]
    lr_end: Option<f64>,
    /// Evaluate the policy with a moving average of its parameters. The average keeps this share of its value
    /// in each step, for example 0.999
    #[arg(long)]
    pub(crate) ema: Option<f64>,
    /// Sample training trajectories with the moving average of --ema, too
    #[arg(long, requires = "ema")]
    pub(crate) ema_sampling: bool,
    /// Folder for all files of the run: settings, metrics, result, pictures and checkpoint. If the folder
    /// holds an unfinished run, the same command resumes it
    #[arg(long, conflicts_with_all = ["out", "save", "metrics"])]
    run: Option<PathBuf>,
    /// Folder to which pictures are written
    #[arg(long)]
    out: Option<PathBuf>,
    /// Folder for the checkpoint, which is saved at the end and on Ctrl-C
    #[arg(long)]
    save: Option<PathBuf>,
    /// Number of steps between two checkpoints
    #[arg(long, requires = "kept", value_parser = at_least_one)]
    pub(crate) checkpoint_every: Option<usize>,
    /// Folder of the checkpoint from which the run resumes
    #[arg(long)]
    pub(crate) resume: Option<PathBuf>,
    /// File for the metrics of each step, one JSON object per line
    #[arg(long)]
    metrics: Option<PathBuf>,
    /// Folder for TensorBoard's event files, with the metrics of each step
    #[arg(long)]
    pub(crate) tensorboard: Option<PathBuf>,
    /// Number of steps between two measurements of the exact distance, if the measurement is cheap. The
    /// default is a thirtieth of all steps if pictures are drawn, and no measurement otherwise
    #[arg(long, value_parser = at_least_one)]
    validate_every: Option<usize>,
    /// Print the result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags for the seed, the machine and the output, in tasks that don't have the training flags of
/// `Common`.
#[derive(Args)]
pub(crate) struct Machine {
    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Number of threads of rayon and of libtorch. libtorch rounds its products differently for each number
    /// of threads, so results depend on this number
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Device that holds all tensors: cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu")]
    pub(crate) device: DeviceKind,
    /// Print the result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Machine {
    /// Sets the number of threads of this process, and returns the device of tensors.
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

/// The places of roll-outs that `--rollouts` accepts.
const ROLLOUTS: &[Choice<RolloutPlace>] = &[
    ("measured", RolloutPlace::Measured, "On a GPU the faster place, otherwise the host"),
    ("host", RolloutPlace::Host, "A copy of the policy on the host"),
    ("device", RolloutPlace::Device, "Tensors on the device of the policy"),
];

/// Parses a number that must be at least 1.
pub(crate) fn at_least_one(text: &str) -> std::result::Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("expected at least 1".into()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// The default number of times that the exact distance is measured during training. These measurements are
/// the points of the curve in the picture.
const MEASUREMENTS: usize = 30;

impl Common {
    pub(crate) fn run_folder(&self) -> Option<RunFolder> {
        self.run.as_ref().map(RunFolder::new)
    }

    /// Returns the folder for pictures; `None` if no pictures are drawn.
    pub(crate) fn out(&self) -> Option<PathBuf> {
        self.out.clone().or_else(|| Some(self.run_folder()?.pictures()))
    }

    /// Returns the folder in which the checkpoint is saved; `None` if no checkpoint is saved.
    pub(crate) fn save(&self) -> Option<PathBuf> {
        self.save.clone().or_else(|| Some(self.run_folder()?.checkpoint()))
    }

    /// Returns the file for the metrics of each step; `None` if no such file is written.
    pub(crate) fn metrics(&self) -> Option<PathBuf> {
        self.metrics.clone().or_else(|| Some(self.run_folder()?.metrics()))
    }

    /// Returns the checkpoint to resume from. This is the checkpoint in the run folder if it exists,
    /// otherwise the value of `--resume`.
    pub(crate) fn resume(&self) -> Option<PathBuf> {
        let own = self.run_folder().map(|run| run.checkpoint()).filter(|path| Checkpoint::exists(path));
        own.or_else(|| self.resume.clone())
    }

    /// Returns the number of steps between two measurements of the exact distance: the value of
    /// `--validate-every`, or a thirtieth of all steps if pictures are drawn.
    pub(crate) fn measures_every(&self, steps: usize) -> Option<usize> {
        self.validate_every.or(self.out().map(|_| (steps / MEASUREMENTS).max(1)))
    }

    /// Returns `true` if the learning rate is 0. The policy then isn't trained, and its distribution isn't
    /// reported.
    pub(crate) fn is_frozen(&self) -> bool {
        self.lr == Some(0.0)
    }

    /// Returns the settings of the trainer. A flag takes precedence over the default in `recipe`. If the
    /// policy is frozen, log Z is frozen, too, so that every step does the same work.
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
            rollouts: self.rollouts.value,
            ..TrainerConfig::default()
        }
    }

    /// Returns the share of uniform random actions in the first step. The default is 0 for on-policy
    /// objectives, because their gradients are means over samples of the policy itself.
    pub(crate) fn epsilon(&self, recipe: &Recipe) -> f64 {
        self.epsilon.unwrap_or(if self.objective.is_on_policy() { 0.0 } else { recipe.epsilon })
    }

    /// Returns the settings of the replay buffer; `None` if the run has no replay buffer.
    pub(crate) fn replay(&self, recipe: &Recipe) -> Option<ReplayConfig> {
        let capacity = self.replay.unwrap_or(if self.objective.is_on_policy() { 0 } else { recipe.replay });
        let (eviction, draw) = recipe.buffer;
        (capacity > 0).then_some(ReplayConfig { capacity, eviction, draw })
    }

    /// Returns the backward policy: the value of `--backward` if it is given, otherwise a separate network if
    /// the objective trains the backward policy, otherwise `default`.
    pub(crate) fn backward(&self, default: BackwardPolicy) -> BackwardPolicy {
        self.backward.map_or_else(|| self.objective.backward(default), |named| named.value)
    }

    /// Returns settings with the estimates, such as state flows, that the objective needs from the network.
    pub(crate) fn estimators(&self) -> EstimatorsConfig {
        self.objective.estimators()
    }

    /// Returns the settings of a perceptron. `width` and `layers` are the defaults of `--embedding` and
    /// `--layers`.
    pub(crate) fn mlp(&self, width: i64, layers: usize) -> MlpConfig {
        let hidden = vec![self.embedding.unwrap_or(width); self.layers.unwrap_or(layers)];
        MlpConfig { hidden, ..MlpConfig::default() }
    }

    /// Returns the settings of a perceptron policy for tasks on vectors.
    pub(crate) fn perceptron(&self, backward: BackwardPolicy) -> MlpPolicyConfig {
        self.objective.perceptron(self.mlp(256, 2), self.backward(backward))
    }

    /// Returns the settings of a graph network. `layers` and `width` are the defaults of `--layers` and
    /// `--embedding`.
    pub(crate) fn graph_net(&self, layers: usize, width: i64, backward: BackwardPolicy) -> GraphNetConfig {
        GraphNetConfig {
            layers: self.layers.unwrap_or(layers),
            embedding: self.embedding.unwrap_or(width),
            backward: self.backward(backward),
            estimators: self.estimators(),
            ..GraphNetConfig::default()
        }
    }

    /// Writes a file called `name` to the folder for pictures. Writes nothing if there is no such folder. If
    /// several threads or processes train together, only the first of them writes the file.
    pub(crate) fn write(&self, name: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let Some(folder) = self.out().filter(|_| members::is_first()) else { return Ok(()) };
        let path = folder.join(name);
        write(&path)?;
        report_file(&path);
        Ok(())
    }

    /// Writes a picture called `name` as SVG and as PNG, if the run draws pictures.
    pub(crate) fn draw(&self, name: &str, write: impl Fn(&Path) -> Result<()>) -> Result<()> {
        ["svg", "png"].iter().try_for_each(|extension| self.write(&format!("{name}.{extension}"), &write))
    }
}

/// Returns an error if the command line has `--replay`. Tasks without a replay buffer call this function.
pub(crate) fn refuse_replay() -> Result<()> {
    refuse(&["--replay"], "a command without this flag, because this task has no replay buffer")
}

/// The flags of networks and of training, which have no effect on a search without a policy.
const TRAINING_FLAGS: &str = "--objective --embedding --layers --backward --rollouts --replay --epsilon \
    --exit-bias --lr --log-z-lr --lr-end --ema --save --checkpoint-every --resume --metrics --tensorboard \
    --validate-every";

/// Returns an error if the command line has a flag of networks or of training. Searches without a policy call
/// this function.
pub(crate) fn refuse_training() -> Result<()> {
    let expected =
        "a command without this flag, or with --by policy, because a search without a policy trains nothing";
    TRAINING_FLAGS.split(' ').try_for_each(|flag| refuse(&[flag], expected))
}

/// Returns an error if the command line has `--validate-every`. Tasks that measure no distance during
/// training call this function.
pub(crate) fn refuse_validation() -> Result<()> {
    refuse(
        &["--validate-every"],
        "a command without this flag, because this task measures no distance during training",
    )
}
