//! What the tasks on molecules share: scores by name, a run, samples, and what is written of them.

mod files;
mod outputs;
mod scores;
mod train;

pub(crate) use files::{Entry, write_molecules};
pub(crate) use scores::{RewardName, score};
pub(crate) use train::{Run, RunArgs, Shared};
