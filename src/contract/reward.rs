//! A reward says the same of an object under any labels.

use std::collections::HashSet;

use crate::env::{Reward, Rows};
use crate::rollout::ReplayEnv;
use crate::rollout::Trajectories;
use crate::tensor::index_tensor;
use crate::{Error, Result, Rng};

/// Most objects that a reward is asked about again: it may be slow.
const ASKED: usize = 16;
/// Labellings that are tried: some change nothing that a reward looks at.
const LABELLINGS: usize = 128;
/// Allowed difference of a log-reward, per unit of its size if that is above 1: a network in single precision sums in another order.
const TOLERANCE: f64 = 1e-4;

/// Asks the reward about some objects of a batch, whose first trajectories are fresh, under other labels, where labels mean nothing. A reward that also says another
/// number of the same object, asked again, isn't refused: what differs isn't the labels.
///
/// # Errors
/// [`Error::Contract`] for a reward that depends on labels; those of the reward.
pub(crate) fn check_reward<E: ReplayEnv>(
    env: &E,
    reward: &dyn Reward<E::States>,
    batch: &Trajectories<E>,
    fresh: usize,
) -> Result<()> {
    let (objects, Some(known)) = (batch.terminal_states(), batch.recorded_log_rewards()) else { return Ok(()) };
    // More than are asked about: other labels change nothing in some. All objects come before any comes
    // again.
    let distinct = objects.group().first.into_iter().filter(|&row| row < fresh);
    let distinct: Vec<usize> = distinct.take(2 * ASKED).collect();
    let tried: Vec<usize> = distinct.into_iter().cycle().take(LABELLINGS).collect();
    let Some((both, _)) = env.symmetry().relabelled(&objects.select(&tried), &mut Rng::seeded(0)) else {
        return Ok(());
    };
    let (of, n) = (both.group().of, tried.len());
    let mut twins = HashSet::new();
    let is_new = |&k: &usize| of[k] != of[n + k] && twins.insert(of[n + k]);
    let changed: Vec<usize> = (0..n).filter(is_new).take(ASKED).collect();
    let rows: Vec<usize> = changed.iter().map(|&k| tried[k]).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let conditions = batch.conditions().map(|c| c.index_select(0, &index_tensor(&rows, c.device())));
    let ask = |states: &E::States| reward.log_reward(states, conditions.as_ref());
    let twins = both.select(&changed.iter().map(|&k| n + k).collect::<Vec<_>>());
    let said = ask(&twins)?;
    let differ = |one: f64, other: f64| (one - other).abs() > TOLERANCE * one.abs().max(1.0);
    let differing = |said: &[f64]| rows.iter().zip(said).position(|(&row, &said)| differ(known[row], said));
    let Some(k) = differing(&said) else { return Ok(()) };
    let (mine, words) = (objects.select(&rows), |states: &E::States| states.describe(k).unwrap_or_default());
    if differing(&ask(&mine)?).is_some() {
        return Ok(());
    }
    Err(Error::contract(
        "up to isomorphism a reward doesn't depend on labels (leave the numbers and the order of nodes out of it)",
        format!(
            "log R is {} of {}, and {} of the same under other labels, {}",
            known[rows[k]],
            words(&mine),
            said[k],
            words(&twins)
        ),
    ))
}
