//! A trainer's moving average of its parameters, for evaluation and for sampling.

use serde::{Deserialize, Serialize};

use crate::optim::Average;
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::train::Trainer;
use crate::{Error, Result};

/// The use of a trainer's moving average.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AverageFor {
    /// Evaluation only ([`Trainer::averaged`]); training isn't affected.
    Evaluation,
    /// Also for sampling new trajectories. This changes the behaviour policy but not the target, so it needs an
    /// off-policy objective.
    Sampling,
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Keeps an exponential moving average of the parameters ([`Average`]), updated after each step and saved in
    /// checkpoints.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::Config`] unless `0 <= decay < 1`.
    pub fn with_average(mut self, decay: f64, purpose: AverageFor) -> Result<Self> {
        self.keep_average(decay, purpose)?;
        Ok(self)
    }

    /// Same as [`with_average`](Self::with_average), for a borrowed trainer; the average starts now.
    ///
    /// # Errors
    /// As for [`with_average`](Self::with_average).
    pub fn keep_average(&mut self, decay: f64, purpose: AverageFor) -> Result<()> {
        let Some(parameters) = self.policy.parameters() else {
            return Err(Error::Missing {
                objective: "a moving average",
                needs: "a policy with parameters",
                remedy: "there is nothing to average",
            });
        };
        self.average = Some((Average::new(parameters, decay)?, purpose));
        Ok(())
    }

    /// Sets the policy's parameters to the average permanently, at the end of training. Evaluation, sampling and
    /// checkpoints then use the average.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no average.
    pub fn take_average(&mut self) -> Result<()> {
        match (&self.average, self.policy.parameters()) {
            (Some((average, _)), Some(parameters)) => average.give(parameters),
            _ => Err(Error::Missing {
                objective: "taking the average",
                needs: "an average of the parameters",
                remedy: "keep one while training (`with_average`)",
            }),
        }
    }

    /// Runs `f` on the policy with averaged parameters, or on the policy as it is if there is no average.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn averaged<T>(&self, f: impl FnOnce(&P) -> Result<T>) -> Result<T> {
        match (&self.average, self.policy.parameters()) {
            (Some((average, _)), Some(parameters)) => average.with(parameters, || f(&self.policy))?,
            _ => f(&self.policy),
        }
    }

    pub(in crate::train) fn update_average(&mut self) -> Result<()> {
        match (&mut self.average, self.policy.parameters()) {
            (Some((average, _)), Some(parameters)) => average.update(parameters),
            _ => Ok(()),
        }
    }
}

/// The average, if new trajectories are sampled by it.
pub(in crate::train) fn for_sampling(average: Option<&(Average, AverageFor)>) -> Option<&Average> {
    average.filter(|(_, purpose)| *purpose == AverageFor::Sampling).map(|(average, _)| average)
}
