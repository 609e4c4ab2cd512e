//! Optimisation: [`Optimizer`], Adam and SGD with their settings, schedules over the steps of a run, and
//! averages of parameters.

mod adam;
mod average;
mod config;
mod optimizer;
mod schedule;
mod sgd;
mod slots;
#[cfg(test)]
mod tests;
mod update;

pub use adam::Adam;
pub use average::Average;
pub use config::AdamConfig;
pub use optimizer::{Optimizer, StepReport};
pub use schedule::{Curve, Schedule};
pub use sgd::{Sgd, SgdConfig};
