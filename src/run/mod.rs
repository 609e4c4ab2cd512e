//! Training runs: the loop around [`Trainer::step`](crate::train::Trainer::step), observers, and warnings.
//!
//! | item | role |
//! |---|---|
//! | [`Fit`] | the loop: observers, checkpoints, progress, an end on Ctrl-C |
//! | [`Observer`], [`Record`] | a callback after each step, which may add [`Metrics`] or stop the run |
//! | [`Validation`], [`CountModes`], [`EarlyStop`] | observers that measure, count modes, and stop |
//! | [`MetricsFile`], [`TensorBoard`] | observers that write each step: JSON Lines, event files |
//! | [`KeepBest`] | an observer that saves the best checkpoint so far |
//! | [`Warnings`], [`OnWarning`] | an observer that detects training that goes wrong without an error; on by default |
//! | [`train_seeds`] | several seeds side by side, in one process |
//! | [`Progress`] | a progress line for custom loops |

mod count_modes;
mod early_stop;
mod fit;
#[cfg(feature = "signals")]
mod interrupt;
mod keep_best;
mod metrics_file;
mod observer;
mod progress;
mod seeds;
mod tensorboard;
mod validation;
mod warnings;

pub use count_modes::CountModes;
pub use early_stop::{EarlyStop, Goal};
pub use fit::{Fit, FitOutcome};
#[cfg(feature = "signals")]
pub use interrupt::interrupted;
pub use keep_best::KeepBest;
pub use metrics_file::MetricsFile;
pub use observer::{Metrics, Observer, Record};
pub use progress::Progress;
pub use seeds::train_seeds;
pub use tensorboard::TensorBoard;
pub use validation::Validation;
pub use warnings::{OnWarning, Warnings};
