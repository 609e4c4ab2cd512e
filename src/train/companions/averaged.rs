//! A moving average of the parameters: to evaluate, and to sample by.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::Companion;
use crate::Result;
use crate::env::Env;
use crate::optim::Average;
use crate::policy::Policy;
use crate::rollout::Trajectories;
use crate::train::{Context, Persist};

/// What a trainer's moving average is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AverageFor {
    /// Looking alone ([`Trainer::averaged`](crate::train::Trainer::averaged)): training goes on as without.
    Evaluation,
    /// Drawing fresh trajectories, too: the behaviour changes, not what is trained, so it needs an off-policy objective.
    Sampling,
}

/// An average, and what it is for.
pub(in crate::train) struct Averaged {
    pub(in crate::train) average: Average,
    pub(in crate::train) purpose: AverageFor,
}

impl Averaged {
    /// The average that fresh trajectories are drawn by.
    pub(in crate::train) fn for_sampling(&self) -> Option<&Average> {
        (self.purpose == AverageFor::Sampling).then_some(&self.average)
    }
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

impl<E: Env, P: Policy<E>> Companion<E, P> for Averaged {
    fn after_step(&mut self, _batch: &Trajectories<E>, context: &Context<E, P>) -> Result<()> {
        context.policy.parameters().map_or(Ok(()), |parameters| self.average.update(parameters))
    }
}
