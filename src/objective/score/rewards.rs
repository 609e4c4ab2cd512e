//! The rewards of a batch: rewards of terminal states, rewards of partial states, and changes of log R along
//! transitions.

use std::collections::HashMap;

use tch::Tensor;

use super::visited_states::VisitedStates;
use super::{SCORING, Scoring};
use crate::env::{Env, Grouping, Reward, Rows, check_log_rewards, training_log_rewards};
use crate::quantity::Quantity;
use crate::rollout::Trajectories;
use crate::{Error, Result};

/// The allowed difference between log R and the sum of its changes. This tolerance allows for the rounding of
/// rewards that networks compute. A difference of this size changes each probability of the target by about a
/// thousandth at most.
const CHANGE_TOLERANCE: f64 = 1e-3;

/// A further allowed difference between log R and the sum of its changes, relative to the largest absolute
/// value among them. This tolerance allows for the rounding of sums in single precision.
const CHANGE_ROUNDING: f64 = 1e-6;

/// Multiplies log-rewards by the exponent of R.
fn apply_exponent(log_rewards: &mut [f64], exponent: f64) {
    if exponent != 1.0 {
        for log_reward in log_rewards.iter_mut() {
            *log_reward *= exponent;
        }
    }
}

/// Returns log R of each terminal state twice, multiplied by `exponent`: without corrections, and corrected
/// for symmetry and for objects of several states, as in training. If the trajectories have recorded
/// log-rewards, these are used instead of the reward.
pub(in crate::objective) fn both_log_rewards<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    trajectories: &Trajectories<E>,
    exponent: f64,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let terminal = trajectories.terminal_states();
    let mut raw = match trajectories.recorded_log_rewards() {
        Some(recorded) => recorded.to_vec(),
        None => trajectories.log_rewards(reward)?,
    };
    apply_exponent(&mut raw, exponent);
    let corrected = training_log_rewards(env, terminal, raw.clone())?;
    Ok((raw, corrected))
}

/// Returns log R of the state before each transition, corrected like log R of terminal states: for symmetry,
/// and for objects of several states.
pub(in crate::objective) fn partial_log_rewards<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    trajectories: &Trajectories<E>,
    conditions: Option<&Tensor>,
    exponent: f64,
) -> Result<Vec<f64>> {
    let states = trajectories.states();
    let conditions = conditions.map(|c| c.narrow(0, 0, states.len() as i64));
    let partial = reward.partial_log_reward(states, conditions.as_ref())?;
    let mut partial = partial.ok_or_else(no_partial)?;
    check_log_rewards(&partial, states)?;
    apply_exponent(&mut partial, exponent);
    training_log_rewards(env, states, partial)
}

/// Returns the change of log R in each transition, `[transitions]`; 0 for exits. Log R is corrected for
/// symmetry and for objects of several states. `raw` and `corrected` are the log-rewards of the terminal
/// states. Unless single transitions are scored, the function checks that the changes along each trajectory
/// add up to log R.
pub(in crate::objective) fn log_reward_changes<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    visited: &VisitedStates<'_, E>,
    trajectories: &Trajectories<E>,
    [raw, corrected]: [&[f64]; 2],
    scoring: &Scoring<'_>,
) -> Result<Vec<f64>> {
    let mut change = vec![0.0; visited.n_rows];
    let inner_changes = changes_of_steps(env, reward, visited, scoring.exponent)?;
    for (&row, value) in visited.inner().0.iter().zip(inner_changes) {
        change[row] = value;
    }
    match trajectories.conditions() {
        _ if scoring.ahead.is_some() => {}
        None => check_sums(
            trajectories.offsets(),
            &env.instances(trajectories.terminal_states()),
            &change,
            corrected,
        )?,
        Some(conditions) => {
            check_ends(reward, trajectories.terminal_states(), conditions, raw, scoring.exponent)?
        }
    }
    Ok(change)
}

/// Returns the change of log R in each transition that isn't an exit. Equal transitions are evaluated once.
fn changes_of_steps<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    visited: &VisitedStates<'_, E>,
    exponent: f64,
) -> Result<Vec<f64>> {
    let (inner, after) = visited.inner();
    let ends = visited.group_of(inner).into_iter().zip(visited.group_of(after));
    let distinct = Grouping::by_key(ends);
    let select = |rows: &[usize]| distinct.first.iter().map(|&k| rows[k]).collect::<Vec<_>>();
    let (before, conditions) = visited.at(&select(inner));
    let (after, _) = visited.at(&select(after));
    let change = reward.log_reward_change(&before, &after, conditions.as_ref())?;
    let mut change = change.ok_or_else(no_partial)?;
    check_log_rewards(&change, &before)?;
    apply_exponent(&mut change, exponent);
    let measure = |states: &E::States| training_log_rewards(env, states, vec![0.0; states.len()]);
    let before = measure(&before)?;
    let after = measure(&after)?;
    for (change, (after, before)) in change.iter_mut().zip(after.iter().zip(before)) {
        *change += after - before;
    }
    Ok(distinct.group_of.into_iter().map(|group| change[group]).collect())
}

/// Checks that the changes of log R along each trajectory add up to log R, for trajectories without
/// conditions. Log R minus the sum of the changes is log R of the initial state, which all trajectories of an
/// instance share. This difference must therefore be the same for all trajectories of the instance.
fn check_sums(offsets: &[usize], instances: &[u32], change: &[f64], log_rewards: &[f64]) -> Result<()> {
    let tolerance = tolerance(log_rewards.iter().chain(change));
    let mut starts = HashMap::new();
    for (i, ends) in offsets.windows(2).enumerate() {
        let gained: f64 = change[ends[0]..ends[1]].iter().sum();
        let start: f64 = *starts.entry(instances[i]).or_insert(log_rewards[i] - gained);
        if (log_rewards[i] - gained - start).abs() > tolerance {
            return Err(mismatch(i, log_rewards[i], start + gained));
        }
    }
    Ok(())
}

/// Checks the changes of log R along trajectories with conditions. Log R of the initial state may depend on
/// the condition, so trajectories can't be compared with each other. Instead, if the reward has partial
/// rewards, the partial reward of each terminal state must be equal to the reward of the state.
fn check_ends<S: Rows>(
    reward: &dyn Reward<S>,
    terminal: &S,
    conditions: &Tensor,
    whole: &[f64],
    exponent: f64,
) -> Result<()> {
    let Some(mut partial) = reward.partial_log_reward(terminal, Some(conditions))? else { return Ok(()) };
    check_log_rewards(&partial, terminal)?;
    apply_exponent(&mut partial, exponent);
    let tolerance = tolerance(whole.iter());
    for (i, (&whole, &partial)) in whole.iter().zip(&partial).enumerate() {
        if (whole - partial).abs() > tolerance {
            return Err(mismatch(i, whole, partial));
        }
    }
    Ok(())
}

/// Returns the allowed difference between log R and the sum of its changes. `values` are the log-rewards (and
/// changes of log R) that are compared.
fn tolerance<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    CHANGE_TOLERANCE + CHANGE_ROUNDING * values.fold(0.0, |largest: f64, value| largest.max(value.abs()))
}

fn mismatch(trajectory: usize, whole: f64, partial: f64) -> Error {
    Error::contract(
        "the changes of log R between partial states add up to log R of the finished object (let \
         `Reward::partial_log_reward` return the same as `Reward::log_reward` for states that can be \
         finished, or choose an objective that doesn't use rewards of partial states)",
        format!(
            "trajectory {trajectory} ends in an object of log R {whole}, but the rewards of partial states \
             add up to {partial}"
        ),
    )
}

fn no_partial() -> Error {
    Quantity::StateLogReward.missing(SCORING)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the tolerance is larger for larger values, because sums of large numbers have larger
    /// rounding errors.
    #[test]
    fn large_rewards_have_a_larger_tolerance() {
        assert!(tolerance([0.0].iter()) == CHANGE_TOLERANCE);
        assert!((tolerance([3.0, -2e6].iter()) - 2.001).abs() < 1e-9);
    }
}
