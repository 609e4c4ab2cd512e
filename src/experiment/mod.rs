//! From an environment and a reward to a trained policy and its exact distance to the target.
//!
//! | what | is |
//! |---|---|
//! | [`Experiment`] | the builder: an environment of graphs, a reward, and settings that have defaults |
//! | [`Trained`] | what comes of it: the trainer, objects sampled from its policy |
//! | [`ExactEvaluation`] | the policy's exact distribution beside the one that the reward asks for |
//!
//! There is nothing here that the other rooms don't have: [`Experiment::trainer`] gives the
//! [`Trainer`](crate::train::Trainer) itself, to add what the builder doesn't name (replay, observers, checkpoints).

mod builder;
mod exact;
#[cfg(test)]
mod tests;
mod trained;

pub use builder::Experiment;
pub use exact::ExactEvaluation;
pub use trained::Trained;
