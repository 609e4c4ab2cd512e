//! Training: one step, the loop around it, the optimiser, and the checkpoints from which a run goes on.
//!
//! | what | is |
//! |---|---|
//! | [`Trainer`] | one step: collect a batch, score, differentiate, update, watch |
//! | [`Source`] | where trajectories come from, beside the policy ([`Trainer::with_source`]) or in its place ([`Trainer::with_fresh`]): replay, given data, a teacher, objects of other processes, one's own |
//! | [`Companion`] | what rides along: average, target network, novelty, one's own ([`Trainer::with_companion`]) |
//! | [`Persist`] | what a checkpoint keeps of either; [`Context`] is what both see of the trainer |
//! | [`Fit`] | the loop around it: observers, checkpoints, an end on Ctrl-C |
//! | [`Trainer::draw`], [`score`](Trainer::score), [`loss`](Trainer::loss), [`advance`](Trainer::advance) | a step in four parts, for a loop and an optimiser of one's own; [`Batch`], [`BatchScores`] |
//! | [`Observer`] | what looks at each step, and may ask to stop |
//! | [`Validation`], [`CountModes`], [`EarlyStop`] | observers: measure, count modes, stop |
//! | [`MetricsFile`], [`TensorBoard`] | observers that write each step: lines of JSON, event files |
//! | [`KeepBest`] | an observer, too: keeps the checkpoint of the best step so far |
//! | [`ObjectSearch`] | what finds objects beside the policy, for the replay buffer |
//! | [`Adam`](crate::optim::Adam) | the optimiser |
//! | [`AverageFor`] | a moving average of the parameters, to evaluate or to sample by |
//! | [`Checkpoint`] | what a run leaves on disk |
//! | [`RandomDistillation`], [`Novelty`] | intrinsic rewards: what is new is worth more |
//! | [`Warning`](crate::error::Warning), [`OnWarning`] | signs that training goes wrong without an error, and what becomes of them |
//! | [`ConditionSource`](crate::condition::ConditionSource) | what a conditional policy is told ([`condition`](crate::condition)) |
//!
//! # Exploration
//!
//! Most means of exploration change the *behaviour*: which trajectories are seen, not what they are trained towards. They take an
//! objective that learns from any trajectory. One changes the *target*.
//!
//! | means | changes | set by |
//! |---|---|---|
//! | epsilon, temperature, exit bias | behaviour | [`TrainerConfig`], each with a schedule; epsilon by default |
//! | local search | behaviour | [`TrainerConfig::local_search`] |
//! | replay, given data | behaviour | [`Trainer::with_replay`], [`Trainer::with_data`] |
//! | other conditions for what is replayed | behaviour | [`Trainer::with_hindsight`] |
//! | noisy layers | behaviour | [`MlpConfig::noise`](crate::nn::MlpConfig::noise) |
//! | sampling by the average | behaviour | [`Trainer::with_average`] |
//! | Thompson heads | behaviour | [`Trainer::with_thompson`] |
//! | adaptive teacher | behaviour | [`Trainer::with_teacher`] |
//! | intrinsic rewards | **target**, while their coefficient isn't 0 | [`Trainer::with_intrinsic`] |

mod builder;
mod checkpoint;
mod companions;
mod config;
mod context;
mod fit;
mod gradients;
mod observers;
mod policy_checks;
mod replicas;
mod sources;
mod trainer;

pub use checkpoint::{Checkpoint, Manifest, Persist};
pub use companions::{AverageFor, Companion, DistillationConfig, IntrinsicConfig, Novelty, RandomDistillation};
pub use config::{ReplayPath, StepStats, TrainerConfig, TransitionBatches};
#[doc(hidden)]
pub use context::TrainerCode;
pub use context::{Context, TrainEnv};
#[cfg(feature = "signals")]
pub use fit::interrupted;
pub use fit::{BatchScores, Ended, Fit, Progress};
pub use observers::{
    CountModes, EarlyStop, Goal, KeepBest, Metrics, MetricsFile, Observer, OnWarning, Record, TensorBoard, Validation,
};
pub use sources::{Batch, Facts, Found, ObjectSearch, Source, TeacherConfig, Wanted, teacher_log_rewards};
pub use trainer::Trainer;

pub use crate::io::{TensorKind, TensorSpec};
