//! What the examples on molecules share: scores by name, a run, samples, and what is written of them.

mod files;
mod outputs;
mod run;
mod scores;

pub use files::{Entry, write_molecules};
pub use run::{Run, RunArgs, Shared};
pub use scores::{RewardName, score};
