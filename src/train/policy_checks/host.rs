//! A policy draws by what it is trained by.

use super::{Part, Walks, log_probs};
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::{Error, Result};

/// Checks that the form of a policy that roll-outs are drawn by on the host gives what the policy itself gives.
///
/// # Errors
/// [`Error::Contract`] where it doesn't; the errors of the policy.
pub(super) fn check<E: ReplayEnv, P: Policy<E>>(env: &E, policy: &P, walks: &Walks<E>) -> Result<()> {
    for part in [Part::Forward, Part::Backward] {
        let taken = walks.taken(part.direction());
        let Some(on_host) = policy.on_host(part.direction()).filter(|_| taken.len() > 0) else { continue };
        let drawn = on_host.distribution(env, &taken.states)?;
        let drawn = log_probs(Some(drawn), &taken.actions, taken.len())?;
        let trained = taken.log_probs((env, policy, None), part)?;
        let Some((k, trained, drawn)) = super::first_difference(&trained, &drawn) else { continue };
        return Err(Error::contract(
            "a policy draws by what it is trained by: its form on the host (`Policy::on_host`, `Torso::on_host`) gives what it gives \
             itself, up to rounding",
            format!(
                "the log-probability ({part}) of one action is {trained}, and {drawn} on the host, in {}",
                taken.words(k)
            ),
        ));
    }
    Ok(())
}
