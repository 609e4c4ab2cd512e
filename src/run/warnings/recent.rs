//! Statistics of the latest trajectories over several steps, and the warnings based on them.

use std::collections::VecDeque;

use crate::error::Warning;

/// The value above which the greatest log-reward of a batch is suspicious. Log-rewards are rarely larger, but
/// rewards whose logarithm was forgotten often are.
const HUGE_LOG_REWARD: f64 = 100.0;
/// The limit on the ratio of a batch's greatest log-reward to its median log-reward. Above this limit the
/// greatest log-reward counts as an outlier.
const FAR_OUT: f64 = 10.0;
/// The value above which a batch's greatest log-reward is implausible, whatever the other log-rewards are.
const IMPOSSIBLE_LOG_REWARD: f64 = 10_000.0;
/// The smallest number of log-rewards in a window. A window consists of the log-rewards of consecutive
/// trajectories; the share of different log-rewards is computed for each window.
const WINDOW: usize = 1_000;
/// The difference between two log-rewards above which they count as different. The difference is relative to
/// the log-reward's absolute value if this value is above 1. Smaller differences may be rounding, for example
/// in rewards computed by networks.
const SAME_REWARD: f64 = 1e-5;
/// The smallest share of different log-rewards in a run's first window (about 1,000 log-rewards) with which a
/// collapse can be detected later. A smaller share means that equal log-rewards are common from the start, so
/// equal log-rewards in later windows don't show that the policy collapsed.
const ALL_DIFFERENT: f64 = 0.9;
/// The share of different log-rewards in a later window (about 1,000 consecutive log-rewards) below which the
/// policy counts as concentrated on few objects.
const FEW_DIFFERENT: f64 = 0.5;
/// The number of latest importance weights that are stored.
const MAX_WEIGHTS: usize = 256;
/// The smallest number of importance weights from which the effective sample size is computed.
const MIN_WEIGHTS: usize = 64;
/// The limit on the effective sample size, divided by the number of samples. Below this limit averages over
/// samples are poor estimates of averages under the target.
const MIN_EFFECTIVE_SHARE: f64 = 0.1;
/// The limit on the distance between the lower and the upper quartile of the log importance weights. A low
/// effective sample size raises a warning only above this limit. Quartiles ignore the extreme weights that a
/// few explored trajectories may have.
const MIN_QUARTILE_SPREAD: f64 = 2.0;
/// The number of steps before which no warning about effective samples is raised, because the policy has
/// hardly learned yet.
const MIN_STEPS: usize = 100;

/// Returns a warning if the log-rewards of the first batch look like rewards without a logarithm: none is
/// negative, the greatest is above 100, and the greatest is either above 10,000 or more than ten times the
/// median. Large log-rewards of similar size cause no warning up to 10,000, because they are common in large
/// problems.
pub(super) fn not_logarithms(log_rewards: &[f64]) -> Option<Warning> {
    let mut sorted = log_rewards.to_vec();
    sorted.sort_by(f64::total_cmp);
    let least = sorted.first()?;
    let middle = sorted[sorted.len() / 2];
    let most = *sorted.last()?;
    let stands_out = most > FAR_OUT * middle || most > IMPOSSIBLE_LOG_REWARD;
    (*least >= 0.0 && most > HUGE_LOG_REWARD && stands_out)
        .then_some(Warning::NotLogarithms { step: 1, most })
}

/// The latest log-rewards and log importance weights of fresh trajectories, which are neither replayed nor
/// taken from data.
#[derive(Default)]
pub(super) struct Recent {
    log_rewards: Vec<f64>,
    /// The share of different log-rewards in the run's first window of about 1,000 log-rewards; `None` until
    /// the window is full.
    first: Option<f64>,
    log_weights: VecDeque<f64>,
}

impl Recent {
    /// Adds log-rewards. If they complete a window (about 1,000 consecutive log-rewards), the window is
    /// checked. Returns a warning if it has few different log-rewards although the run's first window had
    /// many.
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

    /// Adds log importance weights of trajectories, and keeps only the latest [`MAX_WEIGHTS`].
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
