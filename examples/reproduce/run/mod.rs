//! The run of a task: its settings, training, measurements and report.

mod exact;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod members;
pub(crate) mod seeds;
mod spread;
mod steps;
pub(crate) mod task_flags;
mod training;

pub(crate) use exact::{Exact, compare, evaluated, heat_maps, list_states, log_z, sampled};
pub(crate) use training::{Report, jsd, unmeasured};

use gfn::runtime::Threads;

use crate::prelude::*;
use files::try_folder;
use task_flags::TaskFlags;

/// The defaults of a task: the values of training flags that the user doesn't give, and the settings that
/// have no flag.
pub(crate) struct Recipe {
    pub(crate) steps: usize,
    pub(crate) batch: usize,
    /// The capacity of the replay buffer; 0 for no replay buffer.
    pub(crate) replay: usize,
    pub(crate) buffer: (Eviction, Draw),
    /// `true` if the replay buffer stores a graph again each time it is sampled; `false` if it stores each
    /// graph once.
    pub(crate) repeats_graphs: bool,
    /// The number of uniform random trajectories that fill the replay buffer before training.
    pub(crate) prefill: usize,
    pub(crate) epsilon: f64,
    pub(crate) lr: f64,
    pub(crate) log_z_lr: f64,
    pub(crate) lr_end: f64,
    /// The largest number of states for which the policy's exact distribution is computed after training.
    pub(crate) exact_up_to: usize,
    /// The largest number of states for which the exact distance is also measured during training.
    pub(crate) measure_up_to: usize,
    /// The number of samples from which a policy is measured if it has too many states for exact distances; 0
    /// to skip this measurement.
    pub(crate) samples: usize,
}

/// The settings of a replay buffer that keeps the newest objects and draws them uniformly.
pub(crate) const NEWEST: (Eviction, Draw) = (Eviction::Fifo, Draw::Uniform);

impl Default for Recipe {
    /// Returns defaults for a task with a few hundred states. There is no replay, and learning rates fall to
    /// 0.
    fn default() -> Self {
        Self {
            steps: 1_500,
            batch: 64,
            replay: 0,
            buffer: (Eviction::BestReward, Draw::RewardPrioritised { exponent: 1.0 }),
            repeats_graphs: false,
            prefill: 0,
            epsilon: 0.1,
            lr: 3e-3,
            log_z_lr: 1e-1,
            lr_end: 0.0,
            exact_up_to: 100_000,
            measure_up_to: 1 << 12,
            samples: 2_000,
        }
    }
}

/// Adds the entries of the JSON object `from` to the JSON object `to`.
pub(crate) fn merge(to: &mut Value, from: Value) {
    if let (Value::Object(to), Value::Object(from)) = (to, from) {
        to.extend(from);
    }
}

/// A run whose threads, device and folders are set up.
pub(crate) struct Run<'a> {
    pub(crate) common: &'a Common,
    pub(crate) recipe: Recipe,
    /// The settings of training that follow from the flags and the recipe. A task may change them before it
    /// builds its trainer.
    pub(crate) config: TrainerConfig,
    /// The objective that `--objective` names. A task may change it before it builds its trainer.
    pub(crate) objective: Build,
    pub(crate) device: Device,
}

impl<'a> Run<'a> {
    /// Sets up threads, memory allocator and device. Also checks that all output files can be written, before
    /// any time is spent on training.
    pub(crate) fn begin(common: &'a Common, recipe: Recipe) -> Result<Self> {
        if common.steps == Some(0) {
            return Err(Error::config("--steps", 0, "at least 1"));
        }
        let threads = common.threads;
        let libtorch = if common.threads_for == members::ThreadUse::Products { threads } else { 1 };
        if members::is_first() {
            if let (Some(run), Some(flags)) = (common.run_folder(), TaskFlags::of_process()) {
                run.claim(flags, common.resume.as_deref())?;
            }
            common.out().as_deref().map_or(Ok(()), try_folder)?;
            common.save().as_ref().map_or(Ok(()), Checkpoint::try_path)?;
            common.metrics().as_deref().map_or(Ok(()), try_file)?;
            common.tensorboard.as_deref().map_or(Ok(()), try_folder)?;
        }
        let runtime = Runtime::new(Threads { rayon: threads, libtorch }, common.device)?;
        let config = common.trainer(&recipe);
        let objective = common.objective.value;
        Ok(Self { common, recipe, config, objective, device: runtime.device() })
    }

    /// Returns the number of training steps of the whole run, including the steps before a resume.
    pub(crate) fn steps(&self) -> usize {
        self.common.steps.unwrap_or(self.recipe.steps)
    }

    pub(crate) fn rng(&self) -> Rng {
        Rng::seeded(self.common.seed)
    }

    /// Returns the description that checkpoints of the task contain: the task's name, its settings `task` and
    /// the settings of its network.
    pub(crate) fn describe(&self, task: Value, network: &impl Serialize) -> Value {
        let mut description = json!({ "example": task_flags::example(), "network": network });
        merge(&mut description, task);
        description
    }

    /// Builds a trainer. The trainer has a replay buffer if the flags or the recipe set a capacity above 0.
    pub(crate) fn trainer<E: TrainEnv>(
        &self,
        env: E,
        reward: impl Reward<E::States> + 'static,
        policy: impl Policy<E> + Send + 'static,
        rng: Rng,
        description: &Value,
    ) -> Result<Trainer<E>> {
        let objective = (self.objective)()?;
        let config = self.config.clone();
        let trainer =
            Trainer::new(env, reward, policy, objective, config, rng)?.with_description(description)?;
        match self.common.replay(&self.recipe) {
            Some(config) => Ok(trainer.with_replay(ReplayBuffer::new(config)?)),
            None => Ok(trainer),
        }
    }

    /// Builds a policy from the settings of its network, and a [`trainer`](Self::trainer) for this policy.
    pub(crate) fn build<E: TrainEnv, N: Serialize, P: Policy<E> + Send + 'static>(
        &self,
        env: E,
        reward: impl Reward<E::States> + 'static,
        network: N,
        task: Value,
        mut rng: Rng,
        policy: impl FnOnce(&E, N, Device, Kind, &mut Rng) -> Result<P>,
    ) -> Result<Trainer<E>> {
        let description = self.describe(task, &network);
        let policy = policy(&env, network, self.device, Kind::Float, &mut rng)?;
        self.trainer(env, reward, policy, rng, &description)
    }

    /// Replaces the trainer's replay buffer, if it has one, by a buffer that stores each graph only once.
    /// Keeps the buffer if the recipe allows repeated graphs.
    pub(crate) fn distinct(&self, trainer: Trainer<GraphEnv>) -> Result<Trainer<GraphEnv>> {
        match self.common.replay(&self.recipe).filter(|_| !self.recipe.repeats_graphs) {
            Some(config) => Ok(trainer.with_replay(ReplayBuffer::distinct(config)?)),
            None => Ok(trainer),
        }
    }

    /// Builds a trainer for a graph network. The trainer's replay buffer is set up by
    /// [`distinct`](Self::distinct).
    pub(crate) fn graph_trainer(
        &self,
        env: GraphEnv,
        reward: impl Reward<GraphStates> + 'static,
        network: GraphNetConfig,
        task: Value,
    ) -> Result<Trainer<GraphEnv>> {
        self.distinct(self.build(
            env,
            reward,
            network,
            task,
            self.rng(),
            |env, network, device, kind, rng| GraphNet::new(env, network, device, kind, rng).map(GraphPolicy),
        )?)
    }

    /// Builds a trainer for a perceptron on vectors.
    pub(crate) fn perceptron(
        &self,
        env: VectorEnv,
        reward: impl Reward<VectorStates> + 'static,
        network: MlpPolicyConfig,
        task: Value,
    ) -> Result<Trainer<VectorEnv>> {
        self.build(env, reward, network, task, self.rng(), |env, network, device, kind, rng| {
            MlpPolicy::new(env, KHot::from_env(env), network, device, kind, rng)
        })
    }
}
