//! Detects a reward that returns another value for a replayed object than the replay buffer holds.

use crate::Result;
use crate::env::Rows;
use crate::error::Warning;
use crate::rollout::Container;
use crate::train::{TrainEnv, Trainer};

/// The step of the first check.
const FIRST_CHECK: usize = 10;
/// The number of steps between later checks.
const CHECK_INTERVAL: usize = 100;
/// The most objects that the reward is asked about again: it may be slow.
const MAX_OBJECTS: usize = 8;
/// The allowed difference of log-rewards, relative to 1 + |log R|: machines, and batches of another size, round
/// differently.
const TOLERANCE: f64 = 1e-4;
/// A reward is noisy if two calls in a row differ by a larger share of its change. For fewer than `MAX_OBJECTS`
/// objects any difference is noise: of few objects, noise may by chance stay below a share.
const NOISE_SHARE: f64 = 0.05;

/// Asks the reward about a few replayed objects again, after step 10 and after every 100 steps. Draws no random number;
/// the calls aren't counted.
///
/// # Errors
/// Those of the reward.
pub(super) fn find_changed_reward<E: TrainEnv>(trainer: &Trainer<E>) -> Result<Option<Warning>> {
    let step = trainer.steps_done();
    let is_due = step == FIRST_CHECK || step.is_multiple_of(CHECK_INTERVAL);
    // Trajectories of a custom sampler may bring log-rewards of another reward.
    if !is_due || trainer.is_sampled_outside() {
        return Ok(None);
    }
    let Some(batch) = trainer.latest_batch() else { return Ok(None) };
    let rows = batch.replayed.clone();
    if rows.is_empty() || rows.end > batch.trajectories.len() {
        return Ok(None);
    }
    let probes = batch.trajectories.select(rows.start..rows.end.min(rows.start + MAX_OBJECTS))?;
    let Some(known) = probes.recorded_log_rewards() else { return Ok(None) };
    let Some((row, now)) = find_changed(known, || probes.log_rewards(trainer.reward()))? else { return Ok(None) };
    let object = probes.terminal_states().describe(row).unwrap_or_else(|| "a replayed object".to_owned());
    Ok(Some(Warning::RewardChanged { step, object, before: known[row], now }))
}

/// Asks a reward about objects of known log-reward; returns the row of the first one that has another log-reward
/// now, and that log-reward. Returns none if the reward is only noisy: it changes about as much between two calls.
///
/// # Errors
/// Those of the reward.
fn find_changed(known: &[f64], ask: impl Fn() -> Result<Vec<f64>>) -> Result<Option<(usize, f64)>> {
    let now = ask()?;
    let tolerance = |value: &f64| TOLERANCE * (1.0 + value.abs());
    let differs = |row: &usize| (now[*row] - known[*row]).abs() > tolerance(&known[*row]);
    let Some(row) = (0..known.len()).find(differs) else { return Ok(None) };
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
    let share = if known.len() < MAX_OBJECTS { 0.0 } else { NOISE_SHARE };
    let allowed = share * distance(&now, known) + known.iter().map(tolerance).sum::<f64>();
    let is_noise = distance(&ask()?, &now) > allowed;
    Ok((!is_noise).then_some((row, now[row])))
}
