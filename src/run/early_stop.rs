//! An observer that stops a run if a metric no longer improves.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::env::Env;
use crate::run::{Observer, Record};
use crate::train::Trainer;
use crate::train::to_json;
use crate::{Error, Result};

/// The direction in which a metric improves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// Smaller values are better, as for distances and losses.
    Smaller,
    /// Larger values are better, as for modes found and rewards.
    Larger,
}

impl Goal {
    /// Returns `true` if a value is better than the best value so far by more than `min_change`, or if there
    /// is no best value yet. A value that isn't finite is never better.
    pub(super) fn improves(self, value: f64, best: Option<f64>, min_change: f64) -> bool {
        let gain = best.map(|best| match self {
            Self::Smaller => best - value,
            Self::Larger => value - best,
        });
        value.is_finite() && gain.is_none_or(|gain| gain > min_change)
    }
}

/// An observer that stops a run if a metric hasn't improved for a number of measurements. Add this observer
/// after the observer that measures the metric.
///
/// The metric is one of the record's metrics or a number that every step reports ([`Record::figure`]). Steps
/// at which the metric isn't measured don't count, nor does a measurement that is made only because the run
/// ends. NaN is no improvement. The best value and the number of measurements since then are saved in
/// checkpoints.
#[derive(Clone, PartialEq, Debug)]
pub struct EarlyStop {
    name: String,
    metric: String,
    goal: Goal,
    patience: usize,
    min_change: f64,
    state: StopState,
}

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
struct StopState {
    best: Option<f64>,
    /// The number of consecutive measurements without improvement since the best value.
    stale: usize,
}

impl EarlyStop {
    /// Returns an observer that stops a run after `patience` consecutive measurements of `metric` without
    /// improvement.
    ///
    /// # Errors
    /// [`Error::Config`] for a patience of 0.
    pub fn new(metric: &str, goal: Goal, patience: usize) -> Result<Self> {
        if patience == 0 {
            return Err(Error::config(
                "patience",
                "0",
                "at least one measurement without improvement before a run is stopped",
            ));
        }
        let name = "early_stop".to_owned();
        let metric = metric.to_owned();
        Ok(Self { name, metric, goal, patience, min_change: 0.0, state: StopState::default() })
    }

    /// Sets the name of the observer's state in checkpoints, instead of `early_stop`. Several early-stop
    /// observers in a run need different names.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the change that an improvement must exceed. The default is 0.
    ///
    /// # Errors
    /// [`Error::Config`] unless `min_change` is finite and at least 0.
    pub fn min_change(mut self, min_change: f64) -> Result<Self> {
        if !(min_change.is_finite() && min_change >= 0.0) {
            let got = min_change.to_string();
            return Err(Error::config("min_change", got, "a finite number of at least 0"));
        }
        self.min_change = min_change;
        Ok(self)
    }

    /// Returns the best value so far; `None` before the first finite measurement.
    #[must_use]
    pub fn best(&self) -> Option<f64> {
        self.state.best
    }

    /// Compares a new measurement with the best value so far. Returns `true` if the run should stop.
    fn add_measurement(&mut self, value: f64) -> bool {
        if self.goal.improves(value, self.state.best, self.min_change) {
            self.state = StopState { best: Some(value), stale: 0 };
        } else {
            self.state.stale += 1;
        }
        self.state.stale >= self.patience
    }
}

impl<E: Env> Observer<E> for EarlyStop {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self, _trainer: &Trainer<E>, state: Option<&Value>) -> Result<()> {
        if let Some(state) = state {
            self.state = StopState::deserialize(state).map_err(|error| {
                Error::contract(
                    "a checkpoint must be able to store an early stop's best value and count",
                    error,
                )
            })?;
        }
        Ok(())
    }

    fn after_step(&mut self, _trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        let out_of_turn = record.at_end.contains(&self.metric);
        match record.figure_if_measured(&self.metric)? {
            Some(value) if !out_of_turn && self.add_measurement(value) => Ok(ControlFlow::Break(())),
            _ => Ok(ControlFlow::Continue(())),
        }
    }

    fn save(&mut self) -> Result<Value> {
        to_json(&self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_counts_measurements_without_improvement() {
        let mut stop = EarlyStop::new("tv", Goal::Smaller, 3).unwrap().min_change(0.1).unwrap();
        let stops =
            [1.0, 0.95, 0.85, 0.84, f64::NAN, 0.7, 0.7, 0.65, 0.61].map(|value| stop.add_measurement(value));
        assert_eq!(stops, [false, false, false, false, false, false, false, false, true]);
        assert_eq!((stop.best(), stop.state.stale), (Some(0.7), 3));
        let mut stop = EarlyStop::new("modes", Goal::Larger, 1).unwrap();
        assert_eq!(
            [f64::NEG_INFINITY, 1.0, 2.0, 2.0].map(|value| stop.add_measurement(value)),
            [true, false, false, true]
        );
        assert!(EarlyStop::new("tv", Goal::Smaller, 0).is_err());
        assert!(EarlyStop::new("tv", Goal::Smaller, 1).unwrap().min_change(f64::NAN).is_err());
    }
}
