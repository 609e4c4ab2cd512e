//! The forms of an `MlpPolicy` for roll-outs: on tensors, and a copy on the host.

use tch::Tensor;

use super::{MlpPolicy, masks};
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, Rows, Slots, TensorForm};
use crate::policy::estimators::checked_conditions;
use crate::policy::vectors::{EncodedVectors, HostNetwork, Inputs};
use crate::policy::{Evaluation, HostPolicy, StateFeatures, TensorPolicy};
use crate::quantity::Quantities;
use crate::{Error, Result};

impl<E: DiscreteEnv<Actions = Slots>, F: StateFeatures<E::States>> TensorPolicy<E> for MlpPolicy<F> {
    fn evaluate_tensors(
        &self,
        form: &TensorForm<E::States>,
        states: &Tensor,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let encode = || {
            let vectors = self.features.encode_tensor(states).ok_or_else(|| {
                let remedy = "use states of the environment that the policy was built for";
                Error::missing("a policy on tensors", "features that encode these states", remedy)
            })?;
            let n_conditions = self.config.estimators.n_conditions;
            let n = states.size()[0] as usize;
            let conditions = checked_conditions(conditions, n, n_conditions, &self.parameters)?;
            Ok(Inputs { vectors: EncodedVectors::from_tensors(vectors, self.parameters.kind()), conditions })
        };
        let output = self.output(encode, wants)?;
        let build = |direction, blocks: Option<&[Tensor]>| {
            form.distribution(direction, states, blocks.and_then(<[Tensor]>::first))
        };
        Evaluation::from_output(build, wants, output)
    }
}

/// A copy of an [`MlpPolicy`] on the host, which is faster for the small batches of a roll-out.
pub(super) struct HostMlpPolicy<'a, F> {
    pub(super) features: &'a F,
    pub(super) direction: Direction,
    pub(super) network: HostNetwork,
}

impl<E, F> HostPolicy<E> for HostMlpPolicy<'_, F>
where
    E: DiscreteEnv<Actions = Slots>,
    F: StateFeatures<E::States>,
{
    fn distribution(&self, env: &E, states: &E::States) -> Result<GraphActionCategorical> {
        let logits = self.network.forward(&self.features.encode(states), states.len())?;
        GraphActionCategorical::on_host(masks(env, self.direction, states)?, logits)
    }
}
