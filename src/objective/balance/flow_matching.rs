use serde::Serialize;
use serde_json::Value;
use tch::Tensor;

use crate::Result;
use crate::error::check_positive;
use crate::objective::{Objective, Residuals, Scores, as_json, mean_weights};
use crate::quantity::{Quantities, Quantity};

/// Flow matching (Bengio et al., *Flow Network based Generative Models*, 2021, eq. 12), in which the logit of
/// an action is the log flow along the edge from its state to the next state.
///
/// Each visited state except the initial one has the residual `log (sum of edge flows in) - log (sum of edge
/// flows out)`, and each trajectory has the residual `log F(x -> exit) - log R(x)`. The loss is the mean over
/// the states plus `alpha` times the mean over the trajectories. A state that is visited several times counts
/// several times. If trajectories end without an exit action, the only residual of a terminal state is `log
/// (sum of edge flows in) - log R(x)`. The objective needs edge flows, so the environment must be discrete
/// and the policy must have logits. P_B isn't used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlowMatching {
    alpha: f64,
}

impl Default for FlowMatching {
    /// Returns the objective with `alpha` 1, so that the mean over states and the mean over trajectories have
    /// the same weight.
    fn default() -> Self {
        Self { alpha: 1.0 }
    }
}

impl FlowMatching {
    /// Returns the objective with the weight `alpha` for the residuals of trajectories.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless `alpha` is positive and finite.
    pub fn new(alpha: f64) -> Result<Self> {
        Ok(Self { alpha: check_positive("alpha", alpha)? })
    }
}

impl Objective for FlowMatching {
    fn name(&self) -> &'static str {
        "flow matching"
    }
    fn needs(&self) -> Quantities {
        Quantity::LogInflow | Quantity::LogOutflow | Quantity::LogTerminalFlow
    }
    fn settings(&self) -> Value {
        as_json(self)
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let flow = |quantity| scores.need(quantity, self.name());
        let states = flow(Quantity::LogInflow)? - flow(Quantity::LogOutflow)?;
        let ends = flow(Quantity::LogTerminalFlow)? - &scores.log_reward;
        let weights = Tensor::cat(&[mean_weights(&states), mean_weights(&ends) * self.alpha], 0);
        Ok(Residuals { values: Tensor::cat(&[states, ends], 0), weights })
    }
}
