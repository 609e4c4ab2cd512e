//! A policy draws by what it is trained by.

use super::{Asked, Part, Taken, log_probs};
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::{Error, Result};

/// Checks that the form of a policy that roll-outs are drawn by on the host gives what the policy itself gave.
///
/// # Errors
/// [`Error::Contract`] where it doesn't; the errors of the policy.
pub(super) fn check<E: ReplayEnv, P: Policy<E>>(
    asked: &Asked<'_, E, P>,
    taken: &Taken<E>,
    trained: &[f64],
) -> Result<()> {
    // Roll-outs without conditions alone are drawn on the host, and none by a prior.
    let (part, none) = (asked.part, asked.conditions.is_some() || matches!(asked.part, Part::Prior));
    let Some(on_host) = asked.policy.on_host(part.direction()).filter(|_| !none) else { return Ok(()) };
    let drawn = on_host.distribution(asked.env, &taken.states)?;
    let drawn = log_probs(Some(drawn), &taken.actions, taken.len())?;
    let Some((k, trained, drawn)) = super::first_difference(trained, &drawn) else { return Ok(()) };
    Err(Error::contract(
        "a policy draws by what it is trained by: its form on the host (`Policy::on_host`) gives what it gives \
         itself, up to rounding",
        format!(
            "the log-probability ({part}) of one action is {trained}, and {drawn} on the host, in {}",
            taken.words(k)
        ),
    ))
}
