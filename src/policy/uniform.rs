use crate::quantity::{Quantities, Quantity};
use tch::Tensor;

use crate::Result;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, Slots};
use crate::policy::{Evaluation, Policy};

/// Every legal action with equal probability, forwards and backwards; no network, no parameters.
#[derive(Clone, Copy, Debug, Default)]
pub struct UniformPolicy;

impl<E: DiscreteEnv<Actions = Slots>> Policy<E> for UniformPolicy {
    type Dist = GraphActionCategorical;

    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        _: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let uniform = |direction| GraphActionCategorical::uniform(env.masks(direction, states));
        Ok(Evaluation {
            pf: wants.has(Quantity::LogPf).then(|| uniform(Direction::Forward)),
            pb: wants.has(Quantity::LogPb).then(|| uniform(Direction::Backward)),
            ..Evaluation::default()
        })
    }
}
