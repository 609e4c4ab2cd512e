//! A copy of the policy that lags behind the one that is trained: a target network.

use tch::Tensor;

use super::{Companion, Supplied};
use crate::Result;
use crate::env::Env;
use crate::objective::lagged_exits;
use crate::optim::Average;
use crate::policy::Policy;
use crate::rollout::Trajectories;
use crate::train::{Context, Persist};

/// A lagging copy (an average without memory) and how often it catches up.
pub(in crate::train) struct Lagged {
    pub(in crate::train) copy: Average,
    pub(in crate::train) every: usize,
}

impl<E: Env> Persist<E> for Lagged {
    fn name(&self) -> &str {
        "lagged"
    }
    fn describe(&self) -> String {
        "a companion that keeps a lagging copy of its parameters".into()
    }
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        Ok(self.copy.state())
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        self.copy.load_state(state)
    }
}

impl<E: Env, P: Policy<E>> Companion<E, P> for Lagged {
    /// log P_F of the exits by the copy, whose values stand in for the parameters' own meanwhile.
    fn supply(&self, batch: &Trajectories<E>, context: &Context<E, P>, supplied: &mut Supplied) -> Result<()> {
        let needed = context.objective.needs().lagged_log_p_exit;
        if let (true, Some(parameters)) = (needed, context.policy.parameters()) {
            let exits = self.copy.with(parameters, || lagged_exits(&context.env, &context.policy, batch))?;
            supplied.lagged_log_p_exit = Some(exits?);
        }
        Ok(())
    }

    fn after_step(&mut self, _batch: &Trajectories<E>, context: &Context<E, P>) -> Result<()> {
        match context.policy.parameters() {
            Some(parameters) if (context.step + 1).is_multiple_of(self.every) => self.copy.update(parameters),
            _ => Ok(()),
        }
    }
}
