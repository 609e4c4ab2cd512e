//! A policy judges each state by itself.

use super::{Asked, Taken};
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::{Error, Result};

/// Checks that what a policy gives for a state doesn't depend on the others of its batch, nor on chance, given what it gave for all at
/// once.
///
/// # Errors
/// [`Error::Contract`] for a policy that does; the errors of the policy.
pub(super) fn check<E: ReplayEnv, P: Policy<E>>(
    asked: &Asked<'_, E, P>,
    taken: &Taken<E>,
    together: &[f64],
) -> Result<()> {
    let (half, all) = (taken.len() / 2, taken.len());
    if half == 0 {
        return Ok(());
    }
    let mut in_parts = asked.log_probs(&taken.select(&(0..half).collect::<Vec<_>>()), 0)?;
    in_parts.extend(asked.log_probs(&taken.select(&(half..all).collect::<Vec<_>>()), half)?);
    let Some((k, mine, other)) = super::first_difference(together, &in_parts) else { return Ok(()) };
    let (part, state, n) = (asked.part, taken.words(k), if k < half { half } else { all - half });
    Err(Error::contract(
        "a policy judges each state by itself: what it gives for one depends neither on the others of its batch nor on chance \
         (leave batch normalisation in training mode and dropout out of the network)",
        format!(
            "the log-probability ({part}) of one action is {mine} in a batch of {all} states, and {other} in one of {n}, in {state}"
        ),
    ))
}
