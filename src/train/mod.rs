//! Training: the trainer with its single training step, the sources of trajectories, companions, and
//! checkpoints.
//!
//! | item | role |
//! |---|---|
//! | [`Trainer`] | one step: [`draw`](Trainer::draw), [`score`](Trainer::score), [`loss`](Trainer::loss), [`apply`](Trainer::apply), [`advance`](Trainer::advance), the same methods that a custom loop calls |
//! | [`Source`] | supplies trajectories: the policy, a replay buffer, given data, or a custom source ([`Trainer::with_source`], [`Trainer::with_fresh`]) |
//! | [`Companion`] | runs beside training: a target network, or a custom companion ([`Trainer::with_companion`]) |
//! | [`AverageFor`] | a moving average of the parameters, for evaluation or for sampling |
//! | [`Persist`] | the state of a source or companion in a checkpoint; [`Context`] holds the parts of the trainer that both see |
//! | [`Checkpoint`] | a saved run: parameters, optimizer, random stream, replay buffer |
//! | [`load`], [`load_with_env`] | a policy from a checkpoint, for sampling without a trainer |
//! | [`ConditionSource`](crate::condition::ConditionSource) | supplies the conditions of a conditional policy ([`condition`](crate::condition)) |
//!
//! The loop around the step, with observers, metrics and warnings, is [`run`](crate::run).
//!
//! # Exploration
//!
//! Exploration changes the trajectories that the policy is trained on, but not the distribution that the
//! policy is trained towards. Exploration needs an objective that learns from any trajectory.
//!
//! | method | set by |
//! |---|---|
//! | epsilon, temperature, exit bias | [`TrainerConfig`], each with a schedule; epsilon by default |
//! | local search | [`TrainerConfig::local_search`] |
//! | replay, given data | [`Trainer::with_replay`], [`Trainer::with_data`] |
//! | other conditions for replayed objects | [`Trainer::with_hindsight`] |
//! | noisy layers | [`MlpConfig::noise`](crate::nn::MlpConfig::noise) |
//! | sampling by the average | [`Trainer::with_average`] |
//!
//! The package `gfn-extras` has more: an adaptive teacher, Thompson sampling, search among objects, and
//! intrinsic rewards, which change the target while their coefficient isn't 0.

mod builder;
mod checkpoint;
mod companions;
mod config;
mod context;
mod gradients;
mod inspect;
mod replicas;
mod rollouts;
mod seeds;
mod sources;
mod trainer;

pub use checkpoint::{BuildPolicy, Checkpoint, LoadedPolicy, Manifest, Persist, load, load_with_env};
pub(crate) use checkpoint::{LAYOUT, to_json};
pub use companions::{AverageFor, Companion};
pub(crate) use config::check_interval;
pub use config::{ReplayPath, StepStats, TrainerConfig, TransitionBatches};
#[doc(hidden)]
pub use context::TrainerCode;
pub use context::{Context, TrainEnv};
pub use gradients::BatchScores;
pub use sources::{Batch, BatchRequest, Refill, Source, SourceTraits};
pub use trainer::Trainer;

pub use crate::io::{TensorKind, TensorSpec};
