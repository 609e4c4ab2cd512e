//! Training: the trainer's step, the loop around it, the optimiser, and checkpoints.
//!
//! | item | is |
//! |---|---|
//! | [`Trainer`] | one step: sample, replay, score, differentiate, update |
//! | [`Fit`] | the loop: observers, checkpoints, an end on Ctrl-C |
//! | [`Observer`] | a callback after each step, which may stop the run |
//! | [`Validation`], [`CountModes`], [`EarlyStop`], [`MetricsFile`] | observers: measure, count modes, stop, write a line per step |
//! | [`KeepBest`] | an observer that saves the checkpoint of the best step so far |
//! | [`ObjectSearch`] | a search for objects without the policy, for the replay buffer |
//! | [`Adam`](crate::optim::Adam) | the optimiser |
//! | [`AverageFor`] | a moving average of the parameters, for evaluation or sampling |
//! | [`Checkpoint`] | the saved state of a run |
//! | [`RandomDistillation`], [`Novelty`] | intrinsic rewards for novel states |
//! | [`Warning`](crate::error::Warning), [`OnWarning`] | signs that training goes wrong without an error, and the reaction to them |
//! | [`ConditionSource`](crate::condition::ConditionSource) | the source of a conditional policy's conditions ([`condition`](crate::condition)) |
//!
//! # Exploration
//!
//! Most means of exploration change the *behaviour*, that is, which trajectories are seen, but not the training target.
//! They need an objective that learns from any trajectory. One changes the *target*.
//!
//! | means | changes | set by |
//! |---|---|---|
//! | epsilon, temperature, exit bias | behaviour | [`TrainerConfig`], each with a schedule; epsilon by default |
//! | local search | behaviour | [`TrainerConfig::local_search`] |
//! | replay, given data | behaviour | [`Trainer::with_replay`], [`Trainer::with_data`] |
//! | other conditions for replayed objects | behaviour | [`Trainer::with_hindsight`] |
//! | noisy layers | behaviour | [`MlpConfig::noise`](crate::nn::MlpConfig::noise) |
//! | sampling by the average | behaviour | [`Trainer::with_average`] |
//! | Thompson heads | behaviour | [`Trainer::with_thompson`] |
//! | adaptive teacher | behaviour | [`Trainer::with_teacher`] |
//! | intrinsic rewards | **target**, while their coefficient isn't 0 | [`Trainer::with_intrinsic`] |

mod checkpoint;
mod checks;
mod chunked;
mod companions;
mod config;
mod equivariance;
mod fit;
mod gradients;
#[cfg(feature = "signals")]
mod interrupt;
mod observers;
mod sources;
mod trainer;

pub use checkpoint::{Checkpoint, Manifest};
pub use companions::{AverageFor, DistillationConfig, IntrinsicConfig, Novelty, RandomDistillation};
pub use config::{ReplayPath, StepStats, TrainerConfig};
pub use fit::{Ended, Fit};
pub use observers::{
    CountModes, EarlyStop, Goal, KeepBest, Metrics, MetricsFile, Observer, OnWarning, Record, Validation,
};
pub use sources::{Found, ObjectSearch, TeacherConfig, teacher_log_rewards};
pub use trainer::Trainer;

pub use crate::io::{TensorKind, TensorSpec};
