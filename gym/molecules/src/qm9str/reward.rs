use std::sync::Arc;

use gfn::Result;
use gfn::env::{Reward, TensorReward, VectorStates};
use gfn::tensor::log_sum_exp;
use gfn_gym::rewards::{self, DeviceTables};
use tch::{Kind, Tensor};

use super::{BLOCKS, Qm9Str};

/// The scores of all finished strings as 32-bit floats (`data/qm9str_rewards.f32`). The strings are in the
/// order of their blocks, and the last block changes fastest.
const SCORES: &[u8] = include_bytes!("../../data/qm9str_rewards.f32");
/// The smallest score that is used. A lower score (some are negative) is replaced by this number.
const LOWEST: f64 = 1e-3;
/// The largest reward of a string. All rewards are multiplied by a constant, such that the largest is this
/// number.
const LARGEST: f64 = 100.0;

/// The reward R = max(score, 1e-3)^exponent, scaled so that the largest reward is 100.
#[derive(Clone, PartialEq, Debug)]
pub struct Qm9StrReward {
    log_rewards: Arc<[f64]>,
    tables: DeviceTables<2>,
}

impl Qm9StrReward {
    /// Creates the reward with the exponent 5, which the literature uses.
    #[must_use]
    pub fn standard() -> Self {
        Self::from_exponent(5.0)
    }

    /// Creates the reward with a given exponent. A higher exponent favours the best strings more.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) unless the exponent is above 0 and finite.
    pub fn with_exponent(exponent: f64) -> Result<Self> {
        Ok(Self::from_exponent(rewards::positive("the reward exponent", exponent)?))
    }

    fn from_exponent(exponent: f64) -> Self {
        let logs: Vec<f64> = scores().map(|score| score.max(LOWEST).ln()).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_rewards = logs.iter().map(|log| exponent * (log - most) + LARGEST.ln()).collect();
        Self { log_rewards, tables: DeviceTables::default() }
    }

    /// Returns the log-reward of every finished string. The strings are in the order of their blocks, and
    /// the last block changes fastest.
    #[must_use]
    pub fn log_rewards(&self) -> &[f64] {
        &self.log_rewards
    }

    /// Computes the exact log Z, which is the natural logarithm of the sum of all rewards.
    #[must_use]
    pub fn log_z(&self) -> f64 {
        log_sum_exp(self.log_rewards.iter().copied())
    }
}

/// Iterates over the scores of all finished strings.
fn scores() -> impl Iterator<Item = f64> {
    SCORES.as_chunks::<4>().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
}

impl Reward<VectorStates> for Qm9StrReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        rewards::score_rows(states, Qm9Str::ENTRIES, |row| {
            let index = row.iter().try_fold(0, |index, &entry| {
                let block = usize::from(entry).checked_sub(1).filter(|block| *block < BLOCKS.len())?;
                Some(index * BLOCKS.len() + block)
            });
            self.log_rewards.get(index?).copied()
        })
    }
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        Some(self)
    }
}

impl TensorReward for Qm9StrReward {
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor> {
        let build = || {
            let place = |place: usize| BLOCKS.len().pow(place as u32) as i64;
            let places: Vec<i64> = (0..Qm9Str::ENTRIES).rev().map(place).collect();
            [Tensor::from_slice(&places), Tensor::from_slice(&self.log_rewards)]
        };
        let [places, log_rewards] = self.tables.get(states.device(), build);
        let index = ((states - 1) * places).sum_dim_intlist(1, false, Kind::Int64);
        Ok(log_rewards.take(&index))
    }
}
