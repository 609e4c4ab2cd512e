//! Conversion of the output of a network to the evaluation of a policy.

use tch::Tensor;

use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, Masks};
use crate::nn::{NetworkOutput, Parameters};
use crate::policy::Evaluation;
use crate::quantity::{Quantities, Quantity};
use crate::tensor::to_device;
use crate::{Error, Result};

/// Checks and returns the conditions of `n_states` states, `[n_states, n_conditions]`, in the dtype and on
/// the device of `parameters`; `None` for a policy without conditions.
///
/// # Errors
/// [`Error::Shape`] for conditions of another shape, and for missing conditions.
pub(super) fn checked_conditions(
    conditions: Option<&Tensor>,
    n_states: usize,
    n_conditions: i64,
    parameters: &Parameters,
) -> Result<Option<Tensor>> {
    let expected = [n_states as i64, n_conditions];
    match conditions {
        None if n_conditions == 0 => Ok(None),
        // The conditions of stacked policies are indices, which are read on the host.
        Some(c) if c.size() == expected && parameters.n_stacked().is_some() => Ok(Some(c.shallow_clone())),
        Some(c) if c.size() == expected => {
            Ok(Some(to_device(c, parameters.device()).to_kind(parameters.kind())))
        }
        conditions => Err(Error::shape(
            "the conditions",
            expected.to_vec(),
            conditions.map_or_else(Vec::new, Tensor::size),
            "give one row of `n_conditions` numbers per state",
        )),
    }
}

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
        let build = |direction, blocks: Option<&[Tensor]>| {
            let masks = masks(direction)?;
            match blocks {
                Some(blocks) => GraphActionCategorical::new(masks, blocks),
                None => Ok(GraphActionCategorical::uniform(masks)),
            }
        };
        Self::from_output(build, wants, output)
    }

    /// Creates distributions as [`from_masks`](Self::from_masks) does. `build` creates the distribution of a
    /// direction from its blocks of logits, or the uniform distribution if there are none.
    pub(crate) fn from_output(
        mut build: impl FnMut(Direction, Option<&[Tensor]>) -> Result<GraphActionCategorical>,
        wants: Quantities,
        output: NetworkOutput,
    ) -> Result<Self> {
        let pf = match output.pf.filter(|_| wants.has(Quantity::LogPf)) {
            None => None,
            Some(blocks) => {
                let pf = build(Direction::Forward, Some(&blocks))?;
                Some(match &output.pf_scale {
                    Some(scale) => pf.scaled(scale)?,
                    None => pf,
                })
            }
        };
        let mut pb = None;
        if wants.has(Quantity::LogPb) {
            pb = Some(build(Direction::Backward, output.pb.as_deref())?);
        }
        Ok(Self { pf, pb, prior: None, values: output.values })
    }
}
