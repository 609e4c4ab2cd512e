//! A policy treats all labellings of an object alike.

use super::{Asked, Taken};
use crate::env::Rows;
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::{Error, Result, Rng};

/// Checks that a policy gives the same probabilities for a state under other labels, where labels mean nothing, given what it gave for
/// these.
///
/// # Errors
/// [`Error::Contract`] for a policy that depends on labels; the errors of the policy.
pub(super) fn check<E: ReplayEnv, P: Policy<E>>(asked: &Asked<'_, E, P>, taken: &Taken<E>, mine: &[f64]) -> Result<()> {
    let (env, part) = (asked.env, asked.part);
    let Some((both, classes)) = env.relabelled(&taken.states, &mut Rng::seeded(0)) else { return Ok(()) };
    let twins: Vec<usize> = (taken.len()..both.len()).collect();
    let actions = env.translate(part.direction(), &both, (&classes, &twins), &taken.actions, true)?;
    let renamed = Taken { states: both.select(&twins), actions };
    let others = asked.log_probs(&renamed, 0)?;
    let Some((k, mine, other)) = super::first_difference(mine, &others) else { return Ok(()) };
    Err(Error::contract(
        "up to isomorphism a policy is equivariant: relabelling a graph changes no probability \
         (leave node identity, the order of nodes and chance out of the network)",
        format!(
            "the log-probability ({part}) of one action is {mine} in {}, and {other} in the same under other labels, {}",
            taken.words(k),
            renamed.words(k)
        ),
    ))
}
