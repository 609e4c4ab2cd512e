use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The entry that a full buffer evicts to add another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Eviction {
    /// Evicts the oldest entry.
    Fifo,
    /// Evicts the object with the smallest reward; among equal rewards, the newest. A candidate whose reward
    /// isn't greater than the smallest isn't added.
    BestReward,
}

/// The value by which objects are ranked. The object with the greatest value has rank 1. Among equal values,
/// the oldest object comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RankBy {
    /// Ranks objects by reward.
    Reward,
    /// Ranks objects by their most recent loss. Objects without a loss rank first.
    Loss,
}

/// The distribution by which objects are drawn, with replacement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Draw {
    /// Draws all objects with equal probability.
    Uniform,
    /// Draws in proportion to `R^exponent`, computed in the log domain, so that no reward underflows.
    RewardPrioritised {
        /// The exponent of R, an inverse temperature: 1 draws in proportion to R, 0 uniformly.
        exponent: f64,
    },
    /// Draws in proportion to `|loss|^exponent`, with the object's most recent loss
    /// ([`ReplayBuffer::update_losses`](super::ReplayBuffer::update_losses)). It is proportional prioritised
    /// replay, p_i^alpha of Schaul et al. 2016.
    ///
    /// An object without a loss counts as having the greatest known loss (1 if there is none). Every loss
    /// counts as at least 1e-6, so that every object can be drawn.
    LossPrioritised {
        /// The exponent of the loss: 1 draws in proportion to the loss, 0 uniformly.
        exponent: f64,
    },
    /// Draws in proportion to `1 / rank^exponent`. It is the rank-based variant of Schaul et al. 2016.
    /// Outliers of loss or reward can't dominate the draws.
    RankPrioritised {
        /// The value by which objects are ranked.
        by: RankBy,
        /// The exponent of the rank, at least 0: 1 draws in inverse proportion to the rank, 0 uniformly.
        exponent: f64,
    },
    /// Draws in proportion to `1 / (k n + rank)`, with n the number of stored objects. The best k n objects
    /// have similar, higher probabilities; the other objects have declining ones (Tripp et al.,
    /// *Sample-Efficient Optimization by Weighted Retraining*, 2020; Sendera et al. 2024 use k = 0.01).
    WeightedRanks {
        /// The value by which objects are ranked.
        by: RankBy,
        /// The share of favoured objects, at least 0: 0 draws in inverse proportion to the rank, a large
        /// value almost uniformly.
        k: f64,
    },
    /// Draws in proportion to the weights of a custom rule, which
    /// [`ReplayBuffer::by_priority`](super::ReplayBuffer::by_priority) sets.
    Custom,
}

impl Draw {
    /// Returns the value by which objects are ranked, if the draw is by rank.
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
    /// The rule by which the full buffer evicts an entry.
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
