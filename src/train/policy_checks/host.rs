//! A policy draws by what it is trained by.

use super::{COMPARED, Part, Walks, log_probs};
use crate::env::Rows;
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::{Error, Result};

/// Checks that the form of a policy that roll-outs are drawn by on the host gives what the policy itself gives.
///
/// # Errors
/// [`Error::Contract`] where it doesn't; the errors of the policy.
pub(super) fn check<E: ReplayEnv, P: Policy<E>>(env: &E, policy: &P, walks: &Walks<E>) -> Result<()> {
    let distinct = walks.0.states().group().first;
    let apart = distinct.len().div_ceil(COMPARED).max(1);
    let compared: Vec<usize> = distinct.into_iter().step_by(apart).collect();
    for part in [Part::Forward, Part::Backward] {
        let Some(on_host) = policy.on_host(part.direction()) else { continue };
        let (rows, actions) = walks.taken(&compared, part.direction());
        if rows.is_empty() {
            continue;
        }
        let drawn = on_host.distribution(env, &walks.0.states().select(&rows))?;
        let drawn = log_probs(Some(drawn), &actions, rows.len())?;
        let trained = walks.log_probs((env, policy, None), part, (&rows, &actions))?;
        let Some((k, trained, drawn)) = super::first_difference(&trained, &drawn) else { continue };
        return Err(Error::contract(
            "a policy draws by what it is trained by: its form on the host (`Policy::on_host`, `Torso::on_host`) gives what it gives \
             itself, up to rounding",
            format!(
                "the log-probability ({part}) of one action is {trained}, and {drawn} on the host, in {}",
                walks.words(rows[k])
            ),
        ));
    }
    Ok(())
}
