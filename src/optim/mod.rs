//! Optimisation: Adam and its settings, schedules over the steps of a run, and averages of parameters.

mod adam;
mod average;
mod config;
mod schedule;
mod update;

pub use adam::{Adam, StepReport};
pub use average::Average;
pub use config::AdamConfig;
pub use schedule::Schedule;
