use gfn::Result;
use gfn::env::{Reward, VectorStates};

use super::{GridReward, REWARD_FLOOR, RewardKind, power};
use crate::hypergrid::HyperGrid;

/// The sparse reward of Pan et al. (*Generative Augmented Flow Networks*, 2022): 1 at a few points near the corners, next to
/// nothing elsewhere.
///
/// `R = [x is a target] + 1e-12`. Targets, the *modes*, have coordinates of 1 and `H - 2` only, at least one of them `H - 2`:
/// `2^D - 1` points (one point at height 3, where 1 is `H - 2`). They are told by their coordinates, not listed, so that the
/// cost doesn't grow with their number.
///
/// ```
/// use gfn_gym::hypergrid::{GridReward, HyperGrid, SparseReward};
/// let grid = HyperGrid::new(10, 8)?;
/// let reward = SparseReward::new(&grid);
/// assert_eq!(reward.n_modes(), Some(1023));
/// assert!(reward.is_mode_at(&[6, 1, 1, 1, 1, 1, 1, 1, 1, 6]) && !reward.is_mode_at(&[1; 10]));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SparseReward {
    grid: HyperGrid,
}

impl SparseReward {
    /// The reward on the points of a grid.
    #[must_use]
    pub fn new(grid: &HyperGrid) -> Self {
        Self { grid: *grid }
    }

    fn n_targets(&self) -> u64 {
        if self.grid.height() == 3 { 1 } else { power(2, self.grid.ndim()) - 1 }
    }
}

impl GridReward for SparseReward {
    fn kind(&self) -> RewardKind {
        RewardKind::Sparse
    }
    fn grid(&self) -> &HyperGrid {
        &self.grid
    }
    fn value(&self, point: &[u16]) -> f64 {
        REWARD_FLOOR + if self.is_mode_at(point) { 1.0 } else { 0.0 }
    }
    fn is_mode_at(&self, point: &[u16]) -> bool {
        let far = (self.grid.height() - 2) as u16;
        point.iter().all(|&x| x == 1 || x == far) && point.contains(&far)
    }
    fn base(&self) -> f64 {
        REWARD_FLOOR
    }
    /// One half: anything between what targets and other points are worth.
    fn mode_threshold(&self) -> f64 {
        0.5
    }
    fn n_modes(&self) -> Option<u64> {
        Some(self.n_targets())
    }
    fn log_z(&self) -> Option<f64> {
        Some((self.n_targets() as f64 + REWARD_FLOOR * self.grid.n_states() as f64).ln())
    }
    fn boxed(&self) -> Box<dyn GridReward> {
        Box::new(self.clone())
    }
}

impl Reward<VectorStates> for SparseReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        self.log_rewards(states)
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_rewards(states).map(Some)
    }
}
