//! The rewards of a batch: of finished objects, of partial states, and their changes along steps.

use std::collections::HashMap;

use tch::Tensor;

use super::visited::Visited;
use super::{SCORING, Scoring};
use crate::env::{Env, Reward, Rows, check_log_rewards, log_rewards, training_log_rewards};
use crate::quantity::Quantity;
use crate::rollout::Trajectories;
use crate::{Error, Result};

/// Allowed difference between log R and the sum of its changes. Rewards computed by networks are rounded, and such a
/// difference changes no probability by more than a thousandth.
const CHANGE_TOLERANCE: f64 = 1e-3;

/// The same, relative to the largest number: the rounding of sums in single precision.
const CHANGE_ROUNDING: f64 = 1e-6;

/// log R to a power other than 1.
fn temper(log_rewards: &mut [f64], exponent: f64) {
    if exponent != 1.0 {
        log_rewards.iter_mut().for_each(|log_reward| *log_reward *= exponent);
    }
}

/// log R of each finished object, and the log-reward for training, by the environment's measure over states. Recorded log-rewards are
/// reused.
pub(in crate::objective) fn both_log_rewards<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    trajectories: &Trajectories<E>,
    exponent: f64,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let terminal = trajectories.terminal_states();
    let mut raw = match trajectories.recorded_log_rewards() {
        Some(known) => known.to_vec(),
        None => log_rewards(reward, terminal, trajectories.conditions())?,
    };
    temper(&mut raw, exponent);
    let corrected = training_log_rewards(env, terminal, raw.clone())?;
    Ok((raw, corrected))
}

/// log R of the state before each transition, by the same measure as that of finished objects.
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
    check_log_rewards(&partial, states.len())?;
    temper(&mut partial, exponent);
    training_log_rewards(env, states, partial)
}

/// The change of log R in each step, by the same measure, `[transitions]`; 0 for exits. `raw` and `corrected` are
/// the log-rewards of the finished objects. Of single transitions no changes add up to a reward.
pub(in crate::objective) fn log_reward_changes<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    visited: &Visited<'_, E>,
    trajectories: &Trajectories<E>,
    [raw, corrected]: [&[f64]; 2],
    scoring: &Scoring<'_>,
) -> Result<Vec<f64>> {
    let mut change = vec![0.0; visited.n_rows];
    let of_inner = changes_of_steps(env, reward, visited, scoring.exponent)?;
    visited.inner().0.iter().zip(of_inner).for_each(|(&row, value)| change[row] = value);
    match trajectories.conditions() {
        _ if scoring.ahead.is_some() => {}
        None => check_sums(trajectories.offsets(), &env.instances(trajectories.terminal_states()), &change, corrected)?,
        Some(conditions) => check_ends(reward, trajectories.terminal_states(), conditions, raw, scoring.exponent)?,
    }
    Ok(change)
}

/// The change of log R in each step except exits. Equal steps are evaluated once.
fn changes_of_steps<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    visited: &Visited<'_, E>,
    exponent: f64,
) -> Result<Vec<f64>> {
    let (inner, after) = visited.inner();
    let ends = visited.groups(inner).into_iter().zip(visited.groups(after));
    let (mut known, mut first) = (HashMap::with_capacity(inner.len()), Vec::new());
    let of: Vec<usize> = ends
        .enumerate()
        .map(|(k, ends)| {
            *known.entry(ends).or_insert_with(|| {
                first.push(k);
                first.len() - 1
            })
        })
        .collect();
    let rows = |of: &[usize]| first.iter().map(|&k| of[k]).collect::<Vec<_>>();
    let ((before, conditions), (after, _)) = (visited.at(&rows(inner)), visited.at(&rows(after)));
    let change = reward.log_reward_change(&before, &after, conditions.as_ref())?;
    let mut change = change.ok_or_else(no_partial)?;
    check_log_rewards(&change, before.len())?;
    temper(&mut change, exponent);
    let measure = |states: &E::States| training_log_rewards(env, states, vec![0.0; states.len()]);
    let (before, after) = (measure(&before)?, measure(&after)?);
    change.iter_mut().zip(after.iter().zip(before)).for_each(|(change, (after, before))| *change += after - before);
    Ok(of.into_iter().map(|k| change[k]).collect())
}

/// Checks that changes add up. Without conditions all trajectories of an instance start at the same state, so log R minus the sum of
/// changes must be the same for all of them.
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

/// Checks that changes add up under conditions, where each trajectory starts at a log R of its own. It compares the
/// reward of finished objects as partial states, if the reward has one.
fn check_ends<S: Rows>(
    reward: &dyn Reward<S>,
    terminal: &S,
    conditions: &Tensor,
    whole: &[f64],
    exponent: f64,
) -> Result<()> {
    let Some(mut partial) = reward.partial_log_reward(terminal, Some(conditions))? else { return Ok(()) };
    check_log_rewards(&partial, terminal.len())?;
    temper(&mut partial, exponent);
    let tolerance = tolerance(whole.iter());
    match (0..whole.len()).find(|&i| (whole[i] - partial[i]).abs() > tolerance) {
        None => Ok(()),
        Some(i) => Err(mismatch(i, whole[i], partial[i])),
    }
}

fn tolerance<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    CHANGE_TOLERANCE + CHANGE_ROUNDING * values.fold(0.0, |largest: f64, value| largest.max(value.abs()))
}

fn mismatch(trajectory: usize, whole: f64, partial: f64) -> Error {
    Error::contract(
        "changes of log R between partial states add up to log R of the finished object (let \
                `Reward::partial_log_reward` be `Reward::log_reward` where a state can be finished, or choose an objective that \
                doesn't take the one for the other)",
        format!(
            "trajectory {trajectory} ends in an object of log R {whole}, by the rewards of partial states {partial}"
        ),
    )
}

fn no_partial() -> Error {
    Quantity::StateLogReward.missing(SCORING)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of large numbers are rounded by more, of either sign.
    #[test]
    fn large_rewards_have_a_larger_tolerance() {
        assert!(tolerance([0.0].iter()) == CHANGE_TOLERANCE);
        assert!((tolerance([3.0, -2e6].iter()) - 2.001).abs() < 1e-9);
    }
}
