//! One run of a task: what it is set to, how it is trained, measured and reported.

mod exact;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod lines;
pub(crate) mod made;
pub(crate) mod members;
#[cfg(feature = "dist")]
mod processes;
mod report;
mod sampled;
pub(crate) mod task_flags;
mod training;

use gfn::nn::BackwardPolicy;
use gfn::objective::Objective;
use gfn::replay::{ReplayBuffer, ReplayConfig};
use gfn::runtime::{Runtime, Threads};
use gfn::train::TrainEnv;
use gfn::train::{Checkpoint, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use tch::{Device, Kind};

pub(crate) use exact::{Exact, draw_sheet, listed};
pub(crate) use gfn::metrics::sample_objects as sample;
pub(crate) use report::{Report, number, table};
pub(crate) use sampled::{peak_memory_mib, sampled};
pub(crate) use training::Trained;

use crate::flags::{BufferName, Common, ThreadsFor};
use files::{try_file, try_folder};
use task_flags::TaskFlags;

/// A task's own settings, where the flags say nothing else.
pub(crate) struct Recipe {
    pub(crate) steps: usize,
    pub(crate) batch: usize,
    pub(crate) replay: usize,
    pub(crate) buffer: BufferName,
    pub(crate) prefill: usize,
    pub(crate) epsilon: f64,
    pub(crate) lr: f64,
    pub(crate) log_z_lr: f64,
    pub(crate) lr_end: f64,
    /// States up to which the distribution is exact.
    pub(crate) exact_up_to: usize,
    /// States up to which the curves over training show the exact distance, too.
    pub(crate) look_up_to: usize,
    /// Samples that a policy is measured by where it isn't exact; 0 for none.
    pub(crate) samples: usize,
}

impl Default for Recipe {
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
            exact_up_to: 100_000,
            look_up_to: 1 << 12,
            samples: 2_000,
        }
    }
}

/// A run that has begun: threads, device and folders are there.
pub(crate) struct Run<'a> {
    /// The task's name in the line of JSON.
    pub(crate) example: &'static str,
    /// The title of its pictures.
    pub(crate) title: String,
    pub(crate) common: &'a Common,
    pub(crate) recipe: Recipe,
    /// What the flags and the recipe say of training; tasks may change it before they build their trainer.
    pub(crate) config: TrainerConfig,
    pub(crate) device: Device,
}

impl<'a> Run<'a> {
    /// Threads, allocator and device, before anything else; what can't be written is refused before anything is worked for.
    pub(crate) fn begin(common: &'a Common, example: &'static str, title: String, recipe: Recipe) -> Result<Self> {
        let threads = common.team.threads;
        let libtorch = if common.team.threads_for == ThreadsFor::Products { threads } else { 1 };
        if members::is_first() {
            if let (Some(run), Some(asked)) = (common.run_folder(), TaskFlags::of_process()) {
                run.claim(asked, common.resume.as_deref())?;
            }
            common.out().as_deref().map_or(Ok(()), try_folder)?;
            common.save().as_ref().map_or(Ok(()), Checkpoint::try_path)?;
            common.metrics.as_deref().map_or(Ok(()), try_file)?;
            common.tensorboard.as_deref().map_or(Ok(()), try_folder)?;
        }
        let runtime = Runtime::new(Threads { rayon: threads, libtorch }, common.device)?;
        let config = common.trainer(&recipe);
        Ok(Self { example, title, common, recipe, config, device: runtime.device() })
    }

    /// Steps in all.
    pub(crate) fn steps(&self) -> usize {
        self.common.steps.unwrap_or(self.recipe.steps)
    }

    pub(crate) fn rng(&self) -> Rng {
        Rng::seeded(self.common.seed)
    }

    /// Device and kind of networks.
    pub(crate) fn tensors(&self) -> (Device, Kind) {
        (self.device, Kind::Float)
    }

    pub(crate) fn objective(&self) -> Result<Box<dyn Objective>> {
        self.common.objective.build()
    }

    /// P_B as the flags say, or learned on the torso of P_F.
    pub(crate) fn shared_backward(&self) -> BackwardPolicy {
        self.common.backward(BackwardPolicy::SharedTorso)
    }

    /// The trainer with the replay buffer that `make` makes of the flags' settings; without one where there is to be no replay.
    pub(crate) fn replayed<E: TrainEnv>(
        &self,
        trainer: Trainer<E>,
        make: impl FnOnce(ReplayConfig) -> Result<ReplayBuffer<E>>,
    ) -> Result<Trainer<E>> {
        Ok(match self.common.replay(&self.recipe)? {
            Some(config) => trainer.with_replay(make(config)?),
            None => trainer,
        })
    }
}
