//! Training: the optimiser and the checkpoints from which a run goes on.

mod adam;
mod checkpoint;
mod manifest;
mod raw;
mod trainer;
mod update;

pub use adam::{Adam, AdamConfig, StepReport};
pub use checkpoint::Checkpoint;
pub use manifest::{Manifest, TensorKind, TensorSpec};
pub use trainer::{ReplayPath, StepStats, Trainer, TrainerConfig};
