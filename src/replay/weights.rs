//! The weights by which entries are drawn, summed in the log domain.

use super::Draw;
use super::ordered::Sum;

/// Smallest loss for weights, so that a perfectly learned object can still be drawn.
const LEAST_LOSS: f64 = 1e-6;

/// A sum of exponentials, stored as `sum * exp(max)` with `max` the greatest exponent, so that it neither overflows nor
/// underflows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogSum {
    max: f64,
    sum: f64,
}

impl LogSum {
    const EMPTY: Self = Self { max: f64::NEG_INFINITY, sum: 0.0 };

    /// `n` times the exponential of `log_weight`.
    fn of(log_weight: f64, n: u32) -> Self {
        if n == 0 { Self::EMPTY } else { Self { max: log_weight, sum: f64::from(n) } }
    }

    fn and(self, behind: Self) -> Self {
        if self.sum == 0.0 || behind.sum == 0.0 {
            return if self.sum == 0.0 { behind } else { self };
        }
        let max = self.max.max(behind.max);
        Self { max, sum: self.over(max) + behind.over(max) }
    }

    /// The sum divided by the exponential of `max`.
    fn over(self, max: f64) -> f64 {
        if self.max == max { self.sum } else { self.sum * (self.max - max).exp() }
    }
}

/// The sum of the weights of some entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    /// The sum over entries whose weight is known.
    known: LogSum,
    /// The number of entries that were never visited. Each counts as the greatest loss of the whole buffer.
    unvisited: u32,
    /// The greatest loss, if there is one; losses aren't negative.
    greatest: f64,
}

impl Sum for Weights {
    const EMPTY: Self = Self { known: LogSum::EMPTY, unvisited: 0, greatest: -1.0 };

    fn and(self, behind: Self) -> Self {
        Self {
            known: self.known.and(behind.known),
            unvisited: self.unvisited + behind.unvisited,
            greatest: self.greatest.max(behind.greatest),
        }
    }
}

impl Weights {
    /// Of one entry whose log-weight is known.
    pub(super) fn known(log_weight: f64) -> Self {
        Self { known: LogSum::of(log_weight, 1), ..Self::EMPTY }
    }

    /// Of one entry. Draws that are uniform or by rank need none.
    pub(super) fn of(draw: Draw, log_reward: f64, loss: Option<f64>) -> Self {
        match (draw, loss) {
            (Draw::RewardPrioritised { exponent }, _) => Self::known(exponent * log_reward),
            (Draw::LossPrioritised { .. }, None) => Self { unvisited: 1, ..Self::EMPTY },
            (Draw::LossPrioritised { exponent }, Some(loss)) => {
                Self { known: LogSum::of(of_loss(loss, exponent), 1), greatest: loss, ..Self::EMPTY }
            }
            _ => Self::EMPTY,
        }
    }
}

fn of_loss(loss: f64, exponent: f64) -> f64 {
    exponent * loss.max(LEAST_LOSS).ln()
}

/// The weights of a whole buffer, against which those of its parts are normalised.
pub(super) struct Scale {
    /// The log-weight of an entry that was never visited.
    unvisited: f64,
    whole: LogSum,
}

impl Scale {
    pub(super) fn new(draw: Draw, total: Weights) -> Self {
        let unvisited = match draw {
            Draw::LossPrioritised { exponent } => {
                of_loss(if total.greatest < 0.0 { 1.0 } else { total.greatest }, exponent)
            }
            _ => 0.0,
        };
        Self { unvisited, whole: total.known.and(LogSum::of(unvisited, total.unvisited)) }
    }

    /// The normalised weight of some entries; for all entries it is `self.total()`.
    pub(super) fn mass(&self, weights: Weights) -> f64 {
        weights.known.over(self.whole.max) + LogSum::of(self.unvisited, weights.unvisited).over(self.whole.max)
    }

    /// The normalised weight of all entries.
    pub(super) fn total(&self) -> f64 {
        self.whole.sum
    }

    /// The log of the probability of an entry.
    pub(super) fn log_prob(&self, entry: Weights) -> f64 {
        let log_weight = if entry.unvisited == 0 { entry.known.max } else { self.unvisited };
        // Relative to the greatest weight, because differences of numbers like -1e6 lose precision.
        log_weight - self.whole.max - self.whole.sum.ln()
    }
}
