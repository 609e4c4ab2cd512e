use gfn::env::{Reward, VectorStates};
use gfn::{Error, Result, Rng};

use super::point_hash::PointHash;
use super::{GridReward, RewardKind, floored};
use crate::hypergrid::HyperGrid;

/// Modes without any structure: each point is one with the same probability, by a hash of its coordinates.
///
/// `R = r0 + bonus [hash(x) < mode_prob]`. Nothing can be learnt here but by heart: a control for rewards with structure. The
/// number of modes is near `mode_prob H^D`, and only [`totals`](GridReward::totals) knows it.
///
/// The hash is keyed from the seed and mixes all bits. (torchgfn takes a polynomial of the coordinates modulo 2^31 - 1 in single
/// precision; the points drawn differ.)
///
/// ```
/// use gfn_gym::hypergrid::{GridReward, HyperGrid, UniformRandomReward};
/// let grid = HyperGrid::new(2, 100)?;
/// let n_modes = UniformRandomReward::new(&grid, 0.1, 2.0, 0.01, 42)?.totals(10_000)?.n_modes;
/// assert!((70..130).contains(&n_modes));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct UniformRandomReward {
    grid: HyperGrid,
    r0: f64,
    bonus: f64,
    mode_prob: f64,
    hash: PointHash,
}

impl UniformRandomReward {
    /// The reward on the points of a grid. An `r0` below [`REWARD_FLOOR`](super::REWARD_FLOOR) stands for that floor.
    ///
    /// # Errors
    /// [`Error::Config`] unless `r0` is finite and not negative, the bonus finite and positive, and the probability in `(0, 1)`.
    pub fn new(grid: &HyperGrid, r0: f64, bonus: f64, mode_prob: f64, seed: u64) -> Result<Self> {
        if !(bonus > 0.0 && bonus.is_finite() && mode_prob > 0.0 && mode_prob < 1.0) {
            return Err(Error::config(
                "bonus, mode_prob",
                format!("{bonus}, {mode_prob}"),
                "a finite, positive bonus, and a probability above 0 and below 1",
            ));
        }
        let hash = PointHash::drawn(&mut Rng::seeded(seed));
        Ok(Self { grid: *grid, r0: floored(r0)?, bonus, mode_prob, hash })
    }

    /// `r0` = 0.1, a bonus of 2, a probability of 0.01, seed 42.
    ///
    /// # Errors
    /// None of those of [`new`](Self::new) arises.
    pub fn standard(grid: &HyperGrid) -> Result<Self> {
        Self::new(grid, 0.1, 2.0, 0.01, 42)
    }
}

impl GridReward for UniformRandomReward {
    fn kind(&self) -> RewardKind {
        RewardKind::UniformRandom
    }
    fn grid(&self) -> &HyperGrid {
        &self.grid
    }
    fn value(&self, point: &[u16]) -> f64 {
        if self.is_mode_at(point) { self.mode_threshold() } else { self.r0 }
    }
    fn is_mode_at(&self, point: &[u16]) -> bool {
        self.hash.uniform(self.grid.index(point)) < self.mode_prob
    }
    fn base(&self) -> f64 {
        self.r0
    }
    fn mode_threshold(&self) -> f64 {
        self.r0 + self.bonus
    }
    fn n_modes(&self) -> Option<u64> {
        None
    }
    fn log_z(&self) -> Option<f64> {
        None
    }
    fn boxed(&self) -> Box<dyn GridReward> {
        Box::new(self.clone())
    }
}

impl Reward<VectorStates> for UniformRandomReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        self.log_rewards(states)
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_rewards(states).map(Some)
    }
}
