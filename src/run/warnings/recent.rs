//! Figures of the latest trajectories, over several steps.

use std::collections::VecDeque;

use crate::error::Warning;

/// A log-reward that rewards of ordinary size have, given in place of their logarithms.
const HUGE_LOG_REWARD: f64 = 100.0;
/// The ratio of the greatest log-reward to the median from which on it stands out.
const FAR_OUT: f64 = 10.0;
/// A log-reward that no probability needs.
const IMPOSSIBLE_LOG_REWARD: f64 = 10_000.0;
/// The number of log-rewards that are compared with one another.
const WINDOW: usize = 1_000;
/// By how much log-rewards of one object may differ, per unit of their size if that is above 1: networks
/// round.
const SAME_REWARD: f64 = 1e-5;
/// The share of different log-rewards among the first ones from which on objects are hardly ever drawn twice
/// by chance.
const ALL_DIFFERENT: f64 = 0.9;
/// The share of different log-rewards below which the policy has concentrated.
const FEW_DIFFERENT: f64 = 0.5;
/// The number of importance weights that are kept, and the least that a share of them is of.
const KEPT_WEIGHTS: usize = 256;
const LEAST_WEIGHTS: usize = 64;
/// The share of effective samples below which means over samples aren't those of the target.
const FEW_EFFECTIVE: f64 = 0.1;
/// The least distance between the quartiles of log-weights: single explored trajectories may have any weight.
const LEAST_SPREAD: f64 = 2.0;
/// A run of fewer steps isn't expected to have learned anything.
const LEAST_STEPS: usize = 100;

/// A warning if the log-rewards of a first batch are rewards by their looks: none is negative, and the
/// greatest is beyond any log-reward,
/// or far from most others. A size or a count times a factor, as log-rewards of large problems are, isn't.
pub(super) fn not_logarithms(log_rewards: &[f64]) -> Option<Warning> {
    let mut sorted = log_rewards.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, middle, most) = (sorted.first()?, sorted[sorted.len() / 2], *sorted.last()?);
    let stands_out = most > FAR_OUT * middle || most > IMPOSSIBLE_LOG_REWARD;
    (*least >= 0.0 && most > HUGE_LOG_REWARD && stands_out).then_some(Warning::NotLogarithms { step: 1, most })
}

/// The latest log-rewards and importance weights of fresh trajectories.
#[derive(Default)]
pub(super) struct Recent {
    log_rewards: Vec<f64>,
    /// The share of different log-rewards in the first window.
    first: Option<f64>,
    log_weights: VecDeque<f64>,
}

impl Recent {
    /// Adds log-rewards; returns a warning at the end of a window with few different ones, if the first
    /// window had many.
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

    /// Adds log importance weights.
    pub(super) fn add_weights(&mut self, log_weights: &[f64]) {
        self.log_weights.extend(log_weights);
        self.log_weights.drain(..self.log_weights.len().saturating_sub(KEPT_WEIGHTS));
    }

    /// A warning if the latest trajectories are worth few samples of the target.
    pub(super) fn few_effective(&self, step: usize) -> Option<Warning> {
        let n = self.log_weights.len();
        if n < LEAST_WEIGHTS || step < LEAST_STEPS {
            return None;
        }
        let mut sorted: Vec<f64> = self.log_weights.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let spread = sorted[3 * n / 4] - sorted[n / 4];
        let weights: Vec<f64> = sorted.iter().map(|log_weight| (log_weight - sorted[n - 1]).exp()).collect();
        let (sum, squares) = weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
        let effective = sum * sum / squares;
        let few = effective < FEW_EFFECTIVE * n as f64 && spread > LEAST_SPREAD;
        few.then_some(Warning::FewEffective { step, effective, n })
    }
}
