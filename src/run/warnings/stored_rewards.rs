//! A check that the reward still returns the values that the replay buffer stores.

use crate::Result;
use crate::error::Warning;
use crate::rollout::Container;
use crate::train::{TrainEnv, Trainer};

/// The step after which the rewards of replayed objects are checked for the first time.
const FIRST_CHECK: usize = 10;
/// The number of steps between two checks of the rewards of replayed objects, after the first check.
const CHECK_INTERVAL: usize = 100;
/// The largest number of replayed objects whose reward is computed again in a check. The number is small
/// because the reward may be slow.
const MAX_OBJECTS: usize = 8;
/// The largest difference of log-rewards, relative to 1 + |log R|, that counts as rounding. Other machines
/// and other batch sizes may round differently.
const TOLERANCE: f64 = 1e-4;
/// The limit above which a reward counts as noisy. It applies to a ratio: the difference between two
/// consecutive calls, divided by the difference between stored and new log-rewards. If fewer than
/// `MAX_OBJECTS` objects are compared, any difference between the two calls beyond rounding counts as noise,
/// because the noise of few objects may be small by chance.
const NOISE_SHARE: f64 = 0.05;

/// Computes the rewards of a few replayed objects again, after step 10 and after every 100 steps, and returns
/// a warning if a reward has changed. The check draws no random numbers, and the trainer doesn't count its
/// reward calls.
///
/// # Errors
/// The errors of the reward.
pub(super) fn find_changed_reward<E: TrainEnv>(trainer: &Trainer<E>) -> Result<Option<Warning>> {
    let step = trainer.steps_done();
    let is_due = step == FIRST_CHECK || step.is_multiple_of(CHECK_INTERVAL);
    // The stored log-rewards of an external source may come from another reward, so they aren't checked.
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
    let Some((row, now)) = find_changed(known, || probes.log_rewards(trainer.reward()))? else {
        return Ok(None);
    };
    let object = trainer
        .env()
        .describe_state(probes.terminal_states(), row)
        .unwrap_or_else(|| "a replayed object".to_owned());
    Ok(Some(Warning::RewardChanged { step, object, before: known[row], now }))
}

/// Calls `ask` to compute the log-rewards of objects again, and compares them with the stored log-rewards
/// `known`. Returns the index of the first object whose log-reward has changed, and its new log-reward.
/// Returns `None` if no log-reward has changed. Also returns `None` for a noisy reward: two consecutive calls
/// of `ask` differ by more than [`NOISE_SHARE`] allows.
///
/// # Errors
/// The errors of the reward.
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
