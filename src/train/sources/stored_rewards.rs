//! Notices a reward that gives a replayed object another value than the replay buffer has.

use super::Batch;
use crate::Result;
use crate::env::Rows;
use crate::error::Warning;
use crate::rollout::Container;
use crate::train::TrainEnv;
use crate::train::Trainer;

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

impl<E: TrainEnv> Trainer<E> {
    /// Asks the reward about a few replayed objects again, after step 10 and after every 100 steps, and warns once
    /// if it has changed. Draws no random number; the calls aren't counted.
    ///
    /// # Errors
    /// Those of the reward; [`Error::Warned`](crate::Error::Warned) if warnings are errors.
    pub(in crate::train) fn check_stored_rewards(&mut self, batch: &Batch<E>) -> Result<()> {
        let step = self.context.step;
        let is_due = step == FIRST_CHECK || step.is_multiple_of(CHECK_INTERVAL);
        let has_warned = self.warnings().iter().any(|warning| matches!(warning, Warning::RewardChanged { .. }));
        // Trajectories from elsewhere bring log-rewards that this reward need not give.
        if !is_due || has_warned || self.sources.replay.is_none() || self.sources.elsewhere.is_some() {
            return Ok(());
        }
        let replayed = batch.rows.first().filter(|rows| !rows.is_empty() && rows.end <= batch.trajectories.len());
        let Some(rows) = replayed else { return Ok(()) };
        let some = batch.trajectories.select(rows.start..rows.end.min(rows.start + MAX_OBJECTS))?;
        let Some(known) = some.recorded_log_rewards() else { return Ok(()) };
        let changed = find_changed(known, || some.log_rewards(self.context.reward.as_ref()))?;
        let Some((row, now)) = changed else { return Ok(()) };
        let object = some.terminal_states().describe(row).unwrap_or_else(|| "a replayed object".to_owned());
        let warning = Warning::RewardChanged { step, object, before: known[row], now };
        self.sentinel.warn(warning, self.context.config.on_warning)
    }
}

/// Asks a reward about objects of known log-reward; returns the row of the first one that has another log-reward
/// now, and that log-reward. Returns none if the reward is only noisy: it changes about as much between two calls.
///
/// # Errors
/// Those of the reward.
pub(in crate::train) fn find_changed(
    known: &[f64],
    ask: impl Fn() -> Result<Vec<f64>>,
) -> Result<Option<(usize, f64)>> {
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
