use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The rule that decides which entry a full buffer evicts to add another entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Eviction {
    /// Evicts the oldest entry.
    Fifo,
    /// Evicts the object with the smallest reward; among objects with equal rewards, the newest. A new object
    /// is added only if its reward is greater than the smallest stored reward.
    BestReward,
}

/// The value by which objects are ranked. The object with the greatest value has rank 1. Among equal values,
/// the oldest object comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RankBy {
    /// Ranks objects by reward.
    Reward,
    /// Ranks objects by their most recent loss. Objects without a recorded loss rank first.
    Loss,
}

/// The distribution by which objects are drawn, with replacement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Draw {
    /// Draws all objects with equal probability.
    Uniform,
    /// Draws in proportion to `R^exponent`, computed in the log domain, so that no reward underflows.
    RewardPrioritised {
        /// The exponent of R, an inverse temperature. With 1 objects are drawn in proportion to R, with 0
        /// uniformly.
        exponent: f64,
    },
    /// Draws in proportion to `|loss|^exponent`, with the object's most recent loss
    /// ([`ReplayBuffer::update_losses`](super::ReplayBuffer::update_losses)). This is proportional
    /// prioritised replay, p_i^alpha of Schaul et al. 2016.
    ///
    /// An object without a recorded loss counts as having the greatest recorded loss (1 if no loss is
    /// recorded). Every loss counts as at least 1e-6, so that every object can be drawn.
    LossPrioritised {
        /// The exponent of the loss. With 1 objects are drawn in proportion to their loss, with 0 uniformly.
        exponent: f64,
    },
    /// Draws in proportion to `1 / rank^exponent`, the rank-based variant of Schaul et al. 2016. Outliers of
    /// loss or reward can't dominate these draws.
    RankPrioritised {
        /// The value by which objects are ranked.
        by: RankBy,
        /// The exponent of the rank, at least 0. With 1 objects are drawn in inverse proportion to their
        /// rank, with 0 uniformly.
        exponent: f64,
    },
    /// Draws in proportion to `1 / (k n + rank)`, where n is the number of stored objects. The best k n
    /// objects have similar and high probabilities; the probabilities of the other objects fall with their
    /// rank (Tripp et al., *Sample-Efficient Optimization by Weighted Retraining*, 2020; Sendera et al. 2024
    /// use k = 0.01).
    WeightedRanks {
        /// The value by which objects are ranked.
        by: RankBy,
        /// The share of objects with high probabilities, at least 0. With 0 objects are drawn in inverse
        /// proportion to their rank; with a large value they are drawn almost uniformly.
        k: f64,
    },
    /// Draws in proportion to the weights of a custom rule, which
    /// [`ReplayBuffer::by_priority`](super::ReplayBuffer::by_priority) sets.
    Custom,
}

impl Draw {
    /// Returns the value by which objects are ranked; `None` if draws aren't by rank.
    pub(super) fn ranks_by(self) -> Option<RankBy> {
        match self {
            Self::RankPrioritised { by, .. } | Self::WeightedRanks { by, .. } => Some(by),
            _ => None,
        }
    }
}

/// The settings of a replay buffer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReplayConfig {
    /// The largest number of stored objects.
    pub capacity: usize,
    /// The rule by which the buffer evicts an entry when it is full.
    pub eviction: Eviction,
    /// The distribution by which objects are drawn.
    pub draw: Draw,
}

impl ReplayConfig {
    pub(super) fn check(&self) -> Result<()> {
        if self.capacity == 0 {
            return Err(Error::config("replay capacity", "0", "at least 1"));
        }
        match self.draw {
            Draw::RewardPrioritised { exponent } | Draw::LossPrioritised { exponent }
                if !exponent.is_finite() =>
            {
                Err(Error::config("replay exponent", exponent, "a finite number"))
            }
            Draw::RankPrioritised { exponent: power, .. } | Draw::WeightedRanks { k: power, .. }
                if !(power.is_finite() && power >= 0.0) =>
            {
                Err(Error::config(
                    "replay exponent",
                    power,
                    "a finite number of at least 0 for draws by rank",
                ))
            }
            _ => Ok(()),
        }
    }
}
