use gfn::env::{Reward, VectorStates};
use gfn::{Error, Result};

use super::zones::{Zone, Zones};
use super::{GridReward, RewardKind, floored};
use crate::hypergrid::HyperGrid;

/// The reward of Bengio et al. (2021): a flat `r0`, a plateau `r1` in the corners, a band `r2` inside each corner.
///
/// With `a_d = |x_d / (height - 1) - 1/2|`,
/// `R = r0 + r1 [all a_d > 0.25] + r2 [all 0.3 < a_d < 0.4]`. The thresholds are compared in integers: in floating point
/// `0.3 < a` depends on rounding, and a grid of height 16 would have 9 modes in place of 4.
///
/// A *mode* is a point where all three terms count.
///
/// ```
/// use gfn::env::{Reward, VectorStates};
/// use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
/// let grid = HyperGrid::new(2, 8)?;
/// let reward = OriginalReward::new(&grid, 0.1, 0.5, 2.0)?;
/// let log_reward = reward.log_reward(&VectorStates::from_rows([[1, 1]]), None)?;
/// assert!((log_reward[0] - 2.6f64.ln()).abs() < 1e-12);
/// assert_eq!(reward.n_modes(), 4);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct OriginalReward {
    grid: HyperGrid,
    /// R by zone, lowest first.
    values: [f64; 3],
    zones: Zones,
}

impl OriginalReward {
    /// The reward on the points of a grid. An `r0` below [`REWARD_FLOOR`](super::REWARD_FLOOR) stands for that floor.
    ///
    /// # Errors
    /// [`Error::Config`] unless all three are finite and not negative.
    pub fn new(grid: &HyperGrid, r0: f64, r1: f64, r2: f64) -> Result<Self> {
        if !(r0 >= 0.0 && r1 >= 0.0 && r2 >= 0.0 && (r0 + r1 + r2).is_finite()) {
            return Err(Error::config("r0, r1, r2", format!("{r0}, {r1}, {r2}"), "finite numbers of at least 0"));
        }
        let r0 = floored(r0)?;
        Ok(Self { grid: *grid, values: [r0, r0 + r1, r0 + r1 + r2], zones: Zones::new(grid, 5) })
    }

    /// `r0` = 0.1, `r1` = 0.5, `r2` = 2.
    ///
    /// # Errors
    /// None of those of [`new`](Self::new) arises.
    pub fn standard(grid: &HyperGrid) -> Result<Self> {
        Self::new(grid, 0.1, 0.5, 2.0)
    }

    /// The true log Z, for a grid of any size: `log(r0 h^D + r1 p^D + r2 b^D)` with `p` and `b` the coordinates of one dimension
    /// that lie in the plateau and in the band.
    #[must_use]
    pub fn log_z(&self) -> f64 {
        self.zones.sum(self.values).ln()
    }

    /// The number of modes, `b^D`; 0 where no coordinate lies in the band (heights of 6 and below, and 11).
    #[must_use]
    pub fn n_modes(&self) -> u64 {
        self.zones.n_at_least(Zone::Band)
    }

    /// For each point, `true` if it is a mode.
    #[must_use]
    pub fn is_mode(&self, states: &VectorStates) -> Vec<bool> {
        GridReward::is_mode(self, states)
    }

    /// R of each point; 0 for one that isn't of the grid.
    #[must_use]
    pub fn reward(&self, states: &VectorStates) -> Vec<f64> {
        GridReward::reward(self, states)
    }
}

impl GridReward for OriginalReward {
    fn kind(&self) -> RewardKind {
        RewardKind::Original
    }
    fn grid(&self) -> &HyperGrid {
        &self.grid
    }
    fn value(&self, point: &[u16]) -> f64 {
        self.values[self.zones.zone(point) as usize]
    }
    fn is_mode_at(&self, point: &[u16]) -> bool {
        self.zones.zone(point) == Zone::Band
    }
    fn base(&self) -> f64 {
        self.values[0]
    }
    fn mode_threshold(&self) -> f64 {
        self.values[2]
    }
    fn n_modes(&self) -> Option<u64> {
        Some(self.n_modes())
    }
    fn log_z(&self) -> Option<f64> {
        Some(self.log_z())
    }
    fn boxed(&self) -> Box<dyn GridReward> {
        Box::new(self.clone())
    }
}

impl Reward<VectorStates> for OriginalReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        self.log_rewards(states)
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_rewards(states).map(Some)
    }
}
