//! A policy treats all labellings of an object alike.

use tch::Tensor;

use super::{Part, Taken, Walks};
use crate::env::Rows;
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::{Error, Result, Rng};

/// Checks that a policy gives the same probabilities for a state under other labels, where labels mean nothing.
///
/// # Errors
/// [`Error::Contract`] for a policy that depends on labels; the errors of the policy.
pub(super) fn check<E: ReplayEnv, P: Policy<E>>(
    env: &E,
    policy: &P,
    walks: &Walks<E>,
    conditions: Option<&Tensor>,
) -> Result<()> {
    Part::ALL.into_iter().try_for_each(|part| compare(env, policy, walks.taken(part.direction()), conditions, part))
}

/// Compares the probabilities of these actions with those of the same actions under other labels.
fn compare<E: ReplayEnv, P: Policy<E>>(
    env: &E,
    policy: &P,
    taken: &Taken<E>,
    conditions: Option<&Tensor>,
    part: Part,
) -> Result<()> {
    let n = taken.len();
    let Some((both, classes)) = env.relabelled(&taken.states, &mut Rng::seeded(0)) else { return Ok(()) };
    let twins: Vec<usize> = (n..both.len()).collect();
    let actions = env.translate(part.direction(), &both, (&classes, &twins), &taken.actions, true)?;
    let renamed = Taken::<E> { states: both.select(&twins), actions };
    let asked = (env, policy, conditions);
    let (mine, others) = (taken.log_probs(asked, part)?, renamed.log_probs(asked, part)?);
    let Some((k, mine, other)) = super::first_difference(&mine, &others) else { return Ok(()) };
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
