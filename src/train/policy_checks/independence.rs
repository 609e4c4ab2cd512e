//! A policy judges each state by itself.

use tch::Tensor;

use super::{Part, Walks};
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::{Error, Result};

/// Checks that what a policy gives for a state doesn't depend on the others of its batch, nor on chance.
///
/// # Errors
/// [`Error::Contract`] for a policy that does; the errors of the policy.
pub(super) fn check<E: ReplayEnv, P: Policy<E>>(
    env: &E,
    policy: &P,
    walks: &Walks<E>,
    conditions: Option<&Tensor>,
) -> Result<()> {
    for part in Part::ALL {
        let taken = walks.taken(part.direction());
        let (half, all) = (taken.len() / 2, taken.len());
        if half == 0 {
            continue;
        }
        let asked = |from: usize, to: usize| {
            let conditions = conditions.map(|c| c.f_narrow(0, from as i64, (to - from) as i64)).transpose()?;
            taken.select(&(from..to).collect::<Vec<_>>()).log_probs((env, policy, conditions.as_ref()), part)
        };
        let (together, mut in_parts) = (asked(0, all)?, asked(0, half)?);
        in_parts.extend(asked(half, all)?);
        let Some((k, mine, other)) = super::first_difference(&together, &in_parts) else { continue };
        let n = if k < half { half } else { all - half };
        let state = taken.words(k);
        return Err(Error::contract(
            "a policy judges each state by itself: what it gives for one depends neither on the others of its batch nor on chance \
             (leave batch normalisation in training mode and dropout out of the network)",
            format!(
                "the log-probability ({part}) of one action is {mine} in a batch of {all} states, and {other} in one of {n}, \
                 in {state}"
            ),
        ));
    }
    Ok(())
}
