//! A moving average of the parameters: to evaluate, and to sample by.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::Result;
use crate::env::Env;
use crate::optim::Average;
use crate::train::Persist;

/// The purpose of a trainer's moving average.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AverageFor {
    /// Evaluation only ([`Trainer::averaged`](crate::train::Trainer::averaged)): training doesn't change.
    Evaluation,
    /// Sampling of fresh trajectories, too. The behaviour changes, so the objective must be off-policy.
    Sampling,
}

/// A moving average and its purpose.
pub(in crate::train) struct Averaged {
    pub(in crate::train) average: Average,
    pub(in crate::train) purpose: AverageFor,
}

impl<E: Env> Persist<E> for Averaged {
    fn name(&self) -> &str {
        "average"
    }
    fn describe(&self) -> String {
        "a part that keeps an average of its parameters".into()
    }
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        Ok(self.average.state())
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.average.load_state(state)
    }
}
