//! Statistics of the latest trajectories over several steps, and the warnings based on them.

use std::collections::VecDeque;

use crate::error::Warning;

/// A value that is large for a log-reward, but common for a reward that was passed without taking its
/// logarithm.
const HUGE_LOG_REWARD: f64 = 100.0;
/// The ratio of the greatest log-reward to the median above which the greatest stands out.
const FAR_OUT: f64 = 10.0;
/// The value above which a number is too large for any plausible log-reward.
const IMPOSSIBLE_LOG_REWARD: f64 = 10_000.0;
/// The number of log-rewards from which the share of different ones is computed.
const WINDOW: usize = 1_000;
/// The difference between two log-rewards above which they count as different, relative to their size if it
/// is above 1. Rewards computed by networks are rounded.
const SAME_REWARD: f64 = 1e-5;
/// The share of different log-rewards in the first window from which objects are assumed to be sampled twice
/// hardly ever by chance.
const ALL_DIFFERENT: f64 = 0.9;
/// The share of different log-rewards below which the policy counts as concentrated on few objects.
const FEW_DIFFERENT: f64 = 0.5;
/// The number of latest importance weights that are stored.
const MAX_WEIGHTS: usize = 256;
/// The smallest number of importance weights from which the share of effective samples is computed.
const MIN_WEIGHTS: usize = 64;
/// The share of effective samples below which averages over samples are poor estimates of averages under the
/// target.
const MIN_EFFECTIVE_SHARE: f64 = 0.1;
/// The smallest distance between the quartiles of log-weights that raises the warning. It ignores the extreme
/// weights that a few explored trajectories may have.
const MIN_QUARTILE_SPREAD: f64 = 2.0;
/// The smallest number of steps after which a run is expected to have learned something.
const MIN_STEPS: usize = 100;

/// Returns a warning if the log-rewards of the first batch look like rewards without a logarithm: none is
/// negative, the greatest is large, and it is either beyond any plausible log-reward or far above the median.
/// Log-rewards that are a size or a count times a factor, as in large problems, raise no warning.
pub(super) fn not_logarithms(log_rewards: &[f64]) -> Option<Warning> {
    let mut sorted = log_rewards.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, middle, most) = (sorted.first()?, sorted[sorted.len() / 2], *sorted.last()?);
    let stands_out = most > FAR_OUT * middle || most > IMPOSSIBLE_LOG_REWARD;
    (*least >= 0.0 && most > HUGE_LOG_REWARD && stands_out)
        .then_some(Warning::NotLogarithms { step: 1, most })
}

/// The latest log-rewards and log importance weights of fresh trajectories.
#[derive(Default)]
pub(super) struct Recent {
    log_rewards: Vec<f64>,
    /// The share of different log-rewards in the first window of the run.
    first: Option<f64>,
    log_weights: VecDeque<f64>,
}

impl Recent {
    /// Adds log-rewards. Returns a warning at the end of a window with few different log-rewards, if the
    /// first window had many.
    pub(super) fn add_rewards(&mut self, step: usize, log_rewards: &[f64]) -> Option<Warning> {
        self.log_rewards.extend(log_rewards);
        let n = self.log_rewards.len();
        if n < WINDOW {
            return None;
        }
        let mut sorted = std::mem::take(&mut self.log_rewards);
        sorted.sort_by(f64::total_cmp);
        let apart = |pair: &&[f64]| pair[1] - pair[0] > SAME_REWARD * pair[0].abs().max(1.0);
        let share = (1 + sorted.windows(2).filter(apart).count()) as f64 / n as f64;
        let first = *self.first.get_or_insert(share);
        let collapsed = first >= ALL_DIFFERENT && share < FEW_DIFFERENT;
        collapsed.then_some(Warning::FewObjects { step, share, first })
    }

    /// Adds log importance weights of trajectories, and discards the oldest beyond the limit.
    pub(super) fn add_weights(&mut self, log_weights: &[f64]) {
        self.log_weights.extend(log_weights);
        self.log_weights.drain(..self.log_weights.len().saturating_sub(MAX_WEIGHTS));
    }

    /// Returns a warning if the effective sample size of the latest trajectories is a small share of their
    /// number.
    pub(super) fn few_effective(&self, step: usize) -> Option<Warning> {
        let n = self.log_weights.len();
        if n < MIN_WEIGHTS || step < MIN_STEPS {
            return None;
        }
        let mut sorted: Vec<f64> = self.log_weights.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let spread = sorted[3 * n / 4] - sorted[n / 4];
        let weights: Vec<f64> = sorted.iter().map(|log_weight| (log_weight - sorted[n - 1]).exp()).collect();
        let (sum, squares) = weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
        let effective = sum * sum / squares;
        let few = effective < MIN_EFFECTIVE_SHARE * n as f64 && spread > MIN_QUARTILE_SPREAD;
        few.then_some(Warning::FewEffective { step, effective, n })
    }
}
