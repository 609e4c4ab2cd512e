use gfn::env::{Reward, VectorStates};
use gfn::{Error, Result};

use super::zones::{Zone, Zones};
use super::{GridReward, RewardKind, floored};
use crate::hypergrid::HyperGrid;

/// The deceptive reward of Kim et al. (*Adaptive Teachers for Amortized Samplers*, 2025): `r1` draws towards the middle, away
/// from the bands.
///
/// With `a_d = |x_d / (height - 1) - 1/2|`, `R = r0 + r1 - r1 [all a_d > 0.1] + r2 [all 0.3 < a_d < 0.4]`, as in the authors'
/// program (the paper's equation 9 differs). A *mode* is a point where all coordinates lie in the band, worth `r0 + r2`; with
/// `r1 >= r2` the middle is worth as much and the name no longer fits. Thresholds are compared in integers.
///
/// ```
/// use gfn::env::VectorStates;
/// use gfn_gym::hypergrid::{DeceptiveReward, GridReward, HyperGrid};
/// let grid = HyperGrid::new(2, 16)?;
/// let reward = DeceptiveReward::standard(&grid)?;
/// let rewards = reward.reward(&VectorStates::from_rows([[2, 13], [7, 8], [0, 0]]));
/// assert_eq!(rewards, [2.00001, 0.10001, 1e-5]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct DeceptiveReward {
    grid: HyperGrid,
    /// R by zone, lowest first.
    values: [f64; 3],
    zones: Zones,
}

impl DeceptiveReward {
    /// The reward on the points of a grid. An `r0` below [`REWARD_FLOOR`](super::REWARD_FLOOR) stands for that floor.
    ///
    /// # Errors
    /// [`Error::Config`] unless all three are finite and not negative.
    pub fn new(grid: &HyperGrid, r0: f64, r1: f64, r2: f64) -> Result<Self> {
        if !(r0 >= 0.0 && r1 >= 0.0 && r2 >= 0.0 && (r0 + r1 + r2).is_finite()) {
            return Err(Error::config("r0, r1, r2", format!("{r0}, {r1}, {r2}"), "finite numbers of at least 0"));
        }
        let r0 = floored(r0)?;
        Ok(Self { grid: *grid, values: [r0 + r1, r0, r0 + r2], zones: Zones::new(grid, 2) })
    }

    /// `r0` = 1e-5, `r1` = 0.1, `r2` = 2.
    ///
    /// # Errors
    /// None of those of [`new`](Self::new) arises.
    pub fn standard(grid: &HyperGrid) -> Result<Self> {
        Self::new(grid, 1e-5, 0.1, 2.0)
    }
}

impl GridReward for DeceptiveReward {
    fn kind(&self) -> RewardKind {
        RewardKind::Deceptive
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
        self.values[1]
    }
    fn mode_threshold(&self) -> f64 {
        self.values[2]
    }
    fn n_modes(&self) -> Option<u64> {
        Some(self.zones.n_at_least(Zone::Band))
    }
    fn log_z(&self) -> Option<f64> {
        Some(self.zones.sum(self.values).ln())
    }
    fn boxed(&self) -> Box<dyn GridReward> {
        Box::new(self.clone())
    }
}

impl Reward<VectorStates> for DeceptiveReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        self.log_rewards(states)
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_rewards(states).map(Some)
    }
}
