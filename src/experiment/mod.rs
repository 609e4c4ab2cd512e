//! Experiments: from an environment and a reward to a trained policy and its exact distance to the target.
//!
//! | type | purpose |
//! |---|---|
//! | [`Experiment`] | the builder: an environment, a reward, and settings with defaults |
//! | [`DefaultPolicy`] | the environments that have a default policy: graphs and vectors |
//! | [`Trained`] | the result: the trainer, and objects sampled from its policy |
//! | [`ExactEvaluation`] | the exact distribution of the policy and the target distribution |
//!
//! An experiment combines parts of the other modules. [`Experiment::trainer`] returns the
//! [`Trainer`](crate::train::Trainer), to which parts can be added that the builder doesn't have (replay,
//! observers, checkpoints).

mod builder;
mod default_policy;
mod exact;
#[cfg(test)]
mod tests;
mod trained;

pub use builder::Experiment;
pub use default_policy::DefaultPolicy;
pub use exact::ExactEvaluation;
pub use trained::Trained;
