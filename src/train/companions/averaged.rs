//! A moving average of the parameters: to evaluate, and to sample by.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::Companion;
use crate::env::Env;
use crate::optim::Average;
use crate::policy::Policy;
use crate::rollout::Trajectories;
use crate::train::TrainEnv;
use crate::train::{Context, Persist, Trainer};
use crate::{Error, Result};

/// The purpose of a trainer's moving average.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AverageFor {
    /// Looking alone ([`Trainer::averaged`]): training goes on as without.
    Evaluation,
    /// Drawing fresh trajectories, too: the behaviour changes, not what is trained, so it needs an off-policy objective.
    Sampling,
}

/// An average, and its purpose.
pub(in crate::train) struct Averaged {
    pub(in crate::train) average: Average,
    pub(in crate::train) purpose: AverageFor,
}

impl<E: Env> Persist<E> for Averaged {
    fn name(&self) -> &str {
        "average"
    }
    fn describe(&self) -> String {
        "a companion that keeps an average of its parameters".into()
    }
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        Ok(self.average.state())
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.average.load_state(state)
    }
}

impl<E: Env> Companion<E> for Averaged {
    fn after_step(&mut self, _batch: &Trajectories<E>, context: &Context<E>) -> Result<()> {
        context.policy.parameters().map_or(Ok(()), |parameters| self.average.update(parameters))
    }
}

impl<E: TrainEnv> Trainer<E> {
    /// Gives the policy the averaged parameters for good, once training is over: what it then evaluates, samples and saves is the average.
    ///
    /// # Errors
    /// [`Error::Missing`] where no average is kept.
    pub fn take_average(&mut self) -> Result<()> {
        match (&self.companions.average, self.context.policy.parameters()) {
            (Some(kept), Some(parameters)) => kept.average.give(parameters),
            _ => Err(Error::missing(
                "taking the average",
                "an average of the parameters",
                "keep one while training (`with_average`)",
            )),
        }
    }

    /// Runs `f` on the policy with averaged parameters; on the policy as it is where no average is kept.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn averaged<T>(&self, f: impl FnOnce(&dyn Policy<E>) -> Result<T>) -> Result<T> {
        let policy = self.context.policy();
        match (&self.companions.average, policy.parameters()) {
            (Some(kept), Some(parameters)) => kept.average.with(parameters, || f(policy))?,
            _ => f(policy),
        }
    }
}
