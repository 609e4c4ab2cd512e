//! A target network: a copy of the policy's parameters that is updated every few steps.

use tch::Tensor;

use super::Companion;
use crate::Result;
use crate::env::Env;
use crate::objective::score_target;
use crate::optim::Average;
use crate::policy::Policy;
use crate::quantity::{Quantity, Values};
use crate::rollout::Trajectories;
use crate::train::{Context, Persist};

/// The copy (an average without memory) and the number of steps between two updates.
pub(in crate::train) struct TargetNetwork {
    pub(in crate::train) copy: Average,
    pub(in crate::train) every: usize,
}

impl<E: Env> Persist<E> for TargetNetwork {
    fn name(&self) -> &str {
        "target_network"
    }
    fn describe(&self) -> String {
        "a target network".into()
    }
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        Ok(self.copy.state())
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.copy.load_state(state)
    }
}

impl<E: Env> Companion<E> for TargetNetwork {
    fn supplies(&self) -> &'static [Quantity] {
        &[Quantity::TargetLogFlow, Quantity::TargetLogExit]
    }

    /// Evaluates the policy with the copied parameters.
    fn supply(&self, batch: &Trajectories<E>, context: &Context<E>, supplied: &mut Values) -> Result<()> {
        let needs = context.objective.needs();
        let needed = needs.has_any(&[Quantity::TargetLogFlow, Quantity::TargetLogExit]);
        if let (true, Some(parameters)) = (needed, context.policy.parameters()) {
            let scored = || score_target(&context.env, context.policy(), batch, needs);
            let found = self.copy.with(parameters, scored)??;
            for (quantity, tensor) in found {
                supplied.insert(quantity, tensor);
            }
        }
        Ok(())
    }

    fn after_step(&mut self, _batch: &Trajectories<E>, context: &Context<E>) -> Result<()> {
        match context.policy.parameters() {
            Some(parameters) if (context.step + 1).is_multiple_of(self.every) => self.copy.update(parameters),
            _ => Ok(()),
        }
    }
}
