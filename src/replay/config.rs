use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What leaves a full buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Eviction {
    /// The oldest.
    Fifo,
    /// The one of least reward; of several, the newest. What isn't better than that doesn't come in.
    BestReward,
}

/// By what objects are ranked; the first rank is the greatest value, and of equal ones the oldest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RankBy {
    /// Their rewards.
    Reward,
    /// Their losses at their last visits; objects that were never visited come first.
    Loss,
}

/// How objects are drawn, with replacement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Draw {
    /// All alike.
    Uniform,
    /// In proportion to `R^exponent`, in the log domain: no reward underflows.
    RewardPrioritised {
        /// 1 draws in proportion to R, 0 uniformly; one over the temperature.
        exponent: f64,
    },
    /// In proportion to `|loss|^exponent`, the loss being that of the object's last visit
    /// ([`ReplayBuffer::update_losses`](super::ReplayBuffer::update_losses)): proportional prioritised replay, p_i^alpha of Schaul
    /// et al. 2016.
    ///
    /// An object that was never visited has the greatest loss that is known (1 before there is any), and no loss counts for
    /// less than 1e-6, so that nothing is lost sight of for ever.
    LossPrioritised {
        /// 1 draws in proportion to the loss, 0 uniformly.
        exponent: f64,
    },
    /// In proportion to `1 / rank^exponent`: the rank-based variant of Schaul et al. 2016, which no outlier of loss or reward can
    /// dominate.
    RankPrioritised {
        /// What the ranks are of.
        by: RankBy,
        /// 1 draws in inverse proportion to the rank, 0 uniformly.
        exponent: f64,
    },
    /// In proportion to `1 / (k n + rank)`, n being the number of objects held: about a share k of them is favoured, and none of
    /// these above the others (Tripp et al., *Sample-Efficient Optimization by Weighted Retraining*, 2020; Sendera et al. 2024 take 0.01).
    WeightedRanks {
        /// What the ranks are of.
        by: RankBy,
        /// 0 draws in inverse proportion to the rank, a large one uniformly.
        k: f64,
    },
    /// By a rule of one's own: for [`ReplayBuffer::by_priority`](super::ReplayBuffer::by_priority) alone.
    Own,
}

impl Draw {
    /// In proportion to `R^(1 / temperature)`.
    ///
    /// ```
    /// use gfn::replay::Draw;
    /// assert_eq!(Draw::tempered(2.0)?, Draw::RewardPrioritised { exponent: 0.5 });
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] unless the temperature is positive (infinity draws uniformly).
    pub fn tempered(temperature: f64) -> Result<Self> {
        let exponent = 1.0 / temperature;
        if temperature > 0.0 && exponent.is_finite() {
            return Ok(Self::RewardPrioritised { exponent });
        }
        let got = temperature.to_string();
        Err(Error::Config { setting: "replay temperature", got, expected: "a positive number" })
    }

    /// Whether entries are drawn by weights of their own, whatever else is held.
    pub(super) fn is_weighted(self) -> bool {
        matches!(self, Self::RewardPrioritised { .. } | Self::LossPrioritised { .. } | Self::Own)
    }

    /// What it ranks by, if it does.
    pub(super) fn ranks_by(self) -> Option<RankBy> {
        match self {
            Self::RankPrioritised { by, .. } | Self::WeightedRanks { by, .. } => Some(by),
            Self::Uniform | Self::RewardPrioritised { .. } | Self::LossPrioritised { .. } | Self::Own => None,
        }
    }

    fn exponent(self) -> f64 {
        match self {
            Self::Uniform | Self::Own => 0.0,
            Self::RewardPrioritised { exponent }
            | Self::LossPrioritised { exponent }
            | Self::RankPrioritised { exponent, .. } => exponent,
            Self::WeightedRanks { k, .. } if k < 0.0 => f64::NAN,
            Self::WeightedRanks { k, .. } => k,
        }
    }
}

/// How a buffer keeps and gives.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReplayConfig {
    /// How many objects it holds.
    pub capacity: usize,
    /// What leaves when it is full.
    pub eviction: Eviction,
    /// How objects are drawn.
    pub draw: Draw,
}

impl ReplayConfig {
    pub(super) fn check(&self) -> Result<()> {
        if self.capacity == 0 {
            return Err(Error::Config { setting: "replay capacity", got: "0".into(), expected: "at least 1" });
        }
        let exponent = self.draw.exponent();
        if !exponent.is_finite() {
            let got = exponent.to_string();
            return Err(Error::Config {
                setting: "replay exponent",
                got,
                expected: "a finite number, for weighted ranks of at least 0",
            });
        }
        Ok(())
    }
}
