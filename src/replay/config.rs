use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The entry that a full buffer evicts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Eviction {
    /// The oldest.
    Fifo,
    /// The object with the least reward; of several, the newest. A candidate that isn't better isn't added.
    BestReward,
}

/// The value by which objects are ranked. The greatest value ranks first; of equal values, the oldest object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RankBy {
    /// The rewards of objects.
    Reward,
    /// The losses of objects at their last visits; objects that were never visited rank first.
    Loss,
}

/// The distribution from which objects are drawn, with replacement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Draw {
    /// Uniform.
    Uniform,
    /// Proportional to `R^exponent`, computed in the log domain, so that no reward underflows.
    RewardPrioritised {
        /// The inverse of the temperature: 1 draws in proportion to R, 0 uniformly.
        exponent: f64,
    },
    /// Proportional to `|loss|^exponent`, with the loss at the object's last visit
    /// ([`ReplayBuffer::update_losses`](super::ReplayBuffer::update_losses)): proportional prioritised replay,
    /// p_i^alpha of Schaul et al. 2016.
    ///
    /// An object that was never visited has the greatest known loss (1 if there is none), and every loss counts as at
    /// least 1e-6, so that every object can be drawn.
    LossPrioritised {
        /// 1 draws in proportion to the loss, 0 uniformly.
        exponent: f64,
    },
    /// Proportional to `1 / rank^exponent`: the rank-based variant of Schaul et al. 2016, which outliers of loss or
    /// reward can't dominate.
    RankPrioritised {
        /// The value to rank by.
        by: RankBy,
        /// 1 draws in inverse proportion to the rank, 0 uniformly; it isn't negative.
        exponent: f64,
    },
    /// Proportional to `1 / (k n + rank)`, with n the number of stored objects: about a share k of them is favoured,
    /// about equally (Tripp et al., *Sample-Efficient Optimization by Weighted Retraining*, 2020; Sendera et al. 2024
    /// take 0.01).
    WeightedRanks {
        /// The value to rank by.
        by: RankBy,
        /// 0 draws in inverse proportion to the rank, a large value uniformly.
        k: f64,
    },
    /// Proportional to the weights of a custom rule, with
    /// [`ReplayBuffer::by_priority`](super::ReplayBuffer::by_priority).
    Custom,
}

impl Draw {
    /// Returns the value to rank by, for a draw by rank.
    pub(super) fn ranks_by(self) -> Option<RankBy> {
        match self {
            Self::RankPrioritised { by, .. } | Self::WeightedRanks { by, .. } => Some(by),
            _ => None,
        }
    }
}

/// The settings of a buffer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReplayConfig {
    /// The largest number of stored objects.
    pub capacity: usize,
    /// The entry that is evicted when the buffer is full.
    pub eviction: Eviction,
    /// The distribution from which objects are drawn.
    pub draw: Draw,
}

impl ReplayConfig {
    pub(super) fn check(&self) -> Result<()> {
        if self.capacity == 0 {
            return Err(Error::config("replay capacity", "0", "at least 1"));
        }
        match self.draw {
            Draw::RewardPrioritised { exponent } | Draw::LossPrioritised { exponent } if !exponent.is_finite() => {
                Err(Error::config("replay exponent", exponent, "a finite number"))
            }
            Draw::RankPrioritised { exponent: power, .. } | Draw::WeightedRanks { k: power, .. }
                if !(power.is_finite() && power >= 0.0) =>
            {
                Err(Error::config("replay exponent", power, "a finite number of at least 0 for draws by rank"))
            }
            _ => Ok(()),
        }
    }
}
