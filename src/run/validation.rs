//! An observer that measures metrics during training.

use std::ops::ControlFlow;

use crate::env::Env;
use crate::run::{Metrics, Observer, Record};
use crate::train::Trainer;
use crate::train::check_interval;
use crate::{Error, Result};

/// An observer that measures metrics every few steps, and at the last planned step of a run.
///
/// If a finished run is continued, it has one measurement more than a run that was planned to be longer from
/// the start: the measurement at the first planned end. [`EarlyStop`](super::EarlyStop) doesn't count that
/// measurement. Several validations in a run need different names for their metrics.
///
/// Measurements that use random numbers should take them from [`Trainer::evaluation_rng`], so that they don't
/// change the training.
#[derive(Debug)]
pub struct Validation<F> {
    every: usize,
    measure: F,
}

impl<F> Validation<F> {
    /// Returns an observer that calls `measure` every `every` steps and adds the returned metrics to the
    /// record. [`Fit`](crate::run::Fit) has an example.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for an interval of 0 steps.
    pub fn every<E: Env>(every: usize, measure: F) -> Result<Self>
    where
        F: FnMut(&Trainer<E>) -> Result<Metrics>,
    {
        check_interval("steps between validations", Some(every))?;
        Ok(Self { every, measure })
    }
}

impl<E: Env, F: FnMut(&Trainer<E>) -> Result<Metrics>> Observer<E> for Validation<F> {
    fn name(&self) -> &str {
        "validation"
    }

    fn after_step(&mut self, trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        let due = record.step.is_multiple_of(self.every);
        if !due && !record.last {
            record.partial = true;
            return Ok(ControlFlow::Continue(()));
        }
        let mut measured = (self.measure)(trainer)?;
        if let Some(name) = measured.keys().find(|name| record.metrics.contains_key(*name)) {
            return Err(Error::config(
                "the metrics of a validation",
                format!("`{name}`, which an earlier observer measures, too"),
                "metrics of different names",
            ));
        }
        if !due {
            record.at_end.extend(measured.keys().cloned());
        }
        record.metrics.append(&mut measured);
        record.validated = true;
        Ok(ControlFlow::Continue(()))
    }
}
