use gfn::Result;
use gfn::env::{Reward, VectorStates};

use super::ToyDag;
use crate::rewards;

/// A reward for each terminating state, s3, s4, s6, s8, s9 and s10.
///
/// ```
/// use gfn_gym::toy_dag::ToyReward;
/// assert!((ToyReward::default().log_z() - 112f64.ln()).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ToyReward([f64; 6]);

impl ToyReward {
    /// R of s3, s4, s6, s8, s9 and s10.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) unless all are above 0 and finite.
    pub fn new(rewards: [f64; 6]) -> Result<Self> {
        for reward in rewards {
            rewards::positive("the reward of a state", reward)?;
        }
        Ok(Self(rewards))
    }

    /// The true log Z.
    #[must_use]
    pub fn log_z(&self) -> f64 {
        self.0.iter().sum::<f64>().ln()
    }
}

impl Default for ToyReward {
    /// 30, 14, 23, 10, 30, 5: the scores of alexhernandezgarcia/gflownet, 112 in all.
    fn default() -> Self {
        Self([30.0, 14.0, 23.0, 10.0, 30.0, 5.0])
    }
}

impl Reward<VectorStates> for ToyReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        rewards::of_rows(states, 1, |row| {
            let place = ToyDag::TERMINATING.iter().position(|&state| state == row[0])?;
            Some(self.0[place].ln())
        })
    }
}
