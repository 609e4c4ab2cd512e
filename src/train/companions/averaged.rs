//! A trainer's moving average of its parameters: to evaluate, and to sample by.

use serde::{Deserialize, Serialize};

use crate::optim::Average;
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::train::Trainer;
use crate::{Error, Result};

/// What a trainer's moving average is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AverageFor {
    /// Looking alone ([`Trainer::averaged`]): training goes on as without.
    Evaluation,
    /// Drawing fresh trajectories, too: the behaviour changes, not what is trained, so it needs an off-policy objective.
    Sampling,
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Keeps an exponential moving average of the parameters ([`Average`]), updated after each step and saved in checkpoints.
    ///
    /// # Errors
    /// [`Error::Missing`] for a policy without parameters; [`Error::Config`] unless `0 <= decay < 1`.
    pub fn with_average(mut self, decay: f64, purpose: AverageFor) -> Result<Self> {
        self.keep_average(decay, purpose)?;
        Ok(self)
    }

    /// The same for a trainer that is lent: from now on.
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

    /// Gives the policy the averaged parameters for good, once training is over: what it then evaluates, samples and saves is the average.
    ///
    /// # Errors
    /// [`Error::Missing`] where no average is kept.
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

    /// Runs `f` on the policy with averaged parameters; on the policy as it is where no average is kept.
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

/// The average that fresh trajectories are drawn by.
pub(in crate::train) fn for_sampling(average: Option<&(Average, AverageFor)>) -> Option<&Average> {
    average.filter(|(_, purpose)| *purpose == AverageFor::Sampling).map(|(average, _)| average)
}
