//! The weights by which entries are drawn, summed in the log domain.

use super::Draw;

/// The smallest loss used in weights, so that a perfectly learned object can still be drawn.
const MIN_LOSS: f64 = 1e-6;

/// The sum of the weights of some entries, stored as `sum * exp(max)`, where `max` is the greatest
/// log-weight. In this form the sum neither overflows nor underflows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    /// The number of entries whose weights are summed.
    pub(super) count: u32,
    max: f64,
    sum: f64,
    /// The number of entries without a recorded loss. `sum` doesn't include these entries, because each
    /// counts as having the greatest loss of the whole buffer.
    unvisited: u32,
    /// The greatest recorded loss; negative if no entry has a recorded loss.
    greatest: f64,
}

impl Weights {
    /// The sum of the weights of no entries.
    pub(super) const NONE: Self =
        Self { count: 0, max: f64::NEG_INFINITY, sum: 0.0, unvisited: 0, greatest: -1.0 };

    /// Creates the weight of one entry from its log-weight.
    pub(super) fn from_log_weight(log_weight: f64) -> Self {
        Self { count: 1, max: log_weight, sum: 1.0, ..Self::NONE }
    }

    /// Creates the weight of one entry for the distribution `draw`. Uniform draws and draws by rank use only
    /// the number of entries.
    pub(super) fn new(draw: Draw, log_reward: f64, loss: Option<f64>) -> Self {
        match (draw, loss) {
            (Draw::RewardPrioritised { exponent }, _) => Self::from_log_weight(exponent * log_reward),
            (Draw::LossPrioritised { .. }, None) => Self { count: 1, unvisited: 1, ..Self::NONE },
            (Draw::LossPrioritised { exponent }, Some(loss)) => {
                Self { greatest: loss, ..Self::from_log_weight(loss_log_weight(loss, exponent)) }
            }
            _ => Self { count: 1, ..Self::NONE },
        }
    }

    /// Returns the sum of these weights and `others`.
    pub(super) fn and(self, others: Self) -> Self {
        let max = self.max.max(others.max);
        Self {
            count: self.count + others.count,
            max,
            sum: self.over(max) + others.over(max),
            unvisited: self.unvisited + others.unvisited,
            greatest: self.greatest.max(others.greatest),
        }
    }

    /// Returns the sum of the weights divided by `exp(max)`, without the entries that have no recorded loss.
    pub(super) fn over(self, max: f64) -> f64 {
        if self.sum == 0.0 || self.max == max { self.sum } else { self.sum * (self.max - max).exp() }
    }
}

/// Returns the log-weight of an entry with this loss.
fn loss_log_weight(loss: f64, exponent: f64) -> f64 {
    exponent * loss.max(MIN_LOSS).ln()
}

/// The totals of a whole buffer, which turn the weights of entries into probabilities.
pub(super) struct Scale {
    /// The log-weight of an entry without a recorded loss; minus infinity if all entries have a recorded
    /// loss.
    unvisited: f64,
    /// The greatest log-weight of the buffer's entries.
    max: f64,
    /// The sum of the weights of all entries, divided by the greatest weight.
    pub(super) total: f64,
}

impl Scale {
    pub(super) fn new(draw: Draw, whole: Weights) -> Self {
        let unvisited = match draw {
            Draw::LossPrioritised { exponent } if whole.unvisited > 0 => {
                loss_log_weight(if whole.greatest < 0.0 { 1.0 } else { whole.greatest }, exponent)
            }
            _ => f64::NEG_INFINITY,
        };
        let mut scale = Self { unvisited, max: whole.max.max(unvisited), total: 0.0 };
        scale.total = scale.mass(whole);
        scale
    }

    /// Returns the sum of the weights of some entries, divided by the greatest weight of any entry of the
    /// buffer.
    pub(super) fn mass(&self, weights: Weights) -> f64 {
        let unvisited = if weights.unvisited == 0 { 0.0 } else { (self.unvisited - self.max).exp() };
        weights.over(self.max) + f64::from(weights.unvisited) * unvisited
    }

    /// Returns the log of the probability of drawing an entry in a single draw.
    pub(super) fn log_prob(&self, entry: Weights) -> f64 {
        let log_weight = if entry.unvisited == 0 { entry.max } else { self.unvisited };
        // The greatest log-weight is subtracted first, because log-weights may be as large as 1e6 in absolute
        // value, and a sum with the small `total.ln()` would lose precision.
        log_weight - self.max - self.total.ln()
    }
}
