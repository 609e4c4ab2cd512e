use crate::quantity::Quantities;
use tch::Tensor;

use crate::Result;
use crate::distribution::GraphActionCategorical;
use crate::env::{DiscreteEnv, Slots};
use crate::policy::{Evaluation, Policy};

/// The policy under which every legal action of a state has the same probability, forward and backward. The
/// policy has no network and no parameters.
#[derive(Clone, Copy, Debug, Default)]
pub struct UniformPolicy;

impl<E: DiscreteEnv<Actions = Slots>> Policy<E> for UniformPolicy {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        _: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let uniform = |direction| GraphActionCategorical::uniform(env.masks(direction, states));
        Ok(Evaluation::from_directions(wants, uniform))
    }
}
