//! From what a network says to what a policy says.

use crate::Result;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, Masks, Slots};
use crate::nn::NetworkOutput;
use crate::policy::Evaluation;
use crate::quantity::{Quantities, Quantity};

impl Evaluation<GraphActionCategorical> {
    /// Distributions over the legal actions of each state, of a network's logits: P_F where there are any,
    /// P_B uniform where there are none.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for blocks of logits that aren't as the environment's actions.
    pub fn of_network<E: DiscreteEnv<Actions = Slots>>(
        env: &E,
        states: &E::States,
        wants: Quantities,
        output: NetworkOutput,
    ) -> Result<Self> {
        Self::of_masks(|direction| Ok(env.masks(direction, states)), wants, output)
    }

    /// The same, given the masks of each direction that is asked for, at most once.
    pub(crate) fn of_masks(
        mut masks: impl FnMut(Direction) -> Result<Masks>,
        wants: Quantities,
        output: NetworkOutput,
    ) -> Result<Self> {
        let pf = match output.pf.filter(|_| wants.has(Quantity::LogPf)) {
            None => None,
            Some(blocks) => {
                let pf = GraphActionCategorical::new(masks(Direction::Forward)?, &blocks)?;
                Some(match &output.pf_scale {
                    Some(scale) => pf.scaled(scale)?,
                    None => pf,
                })
            }
        };
        let pb = match (wants.has(Quantity::LogPb), output.pb) {
            (false, _) => None,
            (true, Some(blocks)) => Some(GraphActionCategorical::new(masks(Direction::Backward)?, &blocks)?),
            (true, None) => Some(GraphActionCategorical::uniform(masks(Direction::Backward)?)),
        };
        Ok(Self { pf, pb, prior: None, values: output.values })
    }
}
