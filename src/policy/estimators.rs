//! Conversion of the output of a network to the evaluation of a policy.

use crate::Result;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, Masks};
use crate::nn::NetworkOutput;
use crate::policy::Evaluation;
use crate::quantity::{Quantities, Quantity};

impl Evaluation<GraphActionCategorical> {
    /// Creates distributions over the legal actions of each state from the logits of a network. Without
    /// logits of P_F the result has no P_F; without logits of P_B its P_B is uniform. `masks` is called at
    /// most once per direction.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the logits of an action type don't have the shape that the
    /// masks require; the errors of `masks`.
    pub(crate) fn from_masks(
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
