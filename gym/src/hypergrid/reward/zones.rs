//! Rewards that divide coordinates into zones: `OriginalReward` with its plateaus and bands, and the
//! deceptive reward (`GridReward::deceptive`).

use gfn::env::{Reward, TensorReward, VectorStates};
use gfn::{Error, Result};
use tch::Tensor;

use super::{GridReward, PointReward, RewardKind, floored, power};
use crate::hypergrid::HyperGrid;
use crate::rewards::DeviceTables;

/// The zone of a coordinate `x`, which depends on the distance `a = |x / (height - 1) - 1/2|` of the
/// coordinate from the middle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Zone {
    Inner,
    /// The coordinates whose distance `a` from the middle is above a threshold. The threshold depends on the
    /// reward and is below 0.3.
    Outer,
    /// The coordinates whose distance `a` from the middle is between 0.3 and 0.4. They don't count as
    /// `Outer`.
    Band,
}

/// A reward that depends on the zone of a point, which is the lowest zone of its coordinates. The zones in
/// ascending order are `Inner`, `Outer` and `Band`.
///
/// Thresholds are compared in integers: in floating point `0.3 < a` depends on rounding, and a grid of height
/// 16 would have 9 modes instead of 4.
#[derive(Debug)]
struct ZoneReward {
    ndim: usize,
    /// The zone to which each value of a coordinate belongs.
    zones: Vec<Zone>,
    /// The reward of the points in each zone, the lowest zone first.
    values: [f64; 3],
    tables: DeviceTables<2>,
}

impl ZoneReward {
    /// Builds the reward whose outer zone consists of the coordinates whose distance [`a`](Zone) from the
    /// middle is above `twentieths / 20`.
    fn new(grid: &HyperGrid, twentieths: u64, values: [f64; 3]) -> Self {
        // |2 x - top| is 2 top a, so that a > n/20 is equivalent to 10 |2 x - top| > n top.
        let top = grid.height() as u64 - 1;
        let zone = |x: u64| {
            let distance = 10 * (2 * x).abs_diff(top);
            if distance > 6 * top && distance < 8 * top {
                Zone::Band
            } else if distance > twentieths * top {
                Zone::Outer
            } else {
                Zone::Inner
            }
        };
        let zones = (0..=top).map(zone).collect();
        Self { ndim: grid.ndim(), zones, values, tables: DeviceTables::default() }
    }

    fn zone(&self, point: &[u16]) -> Zone {
        point.iter().map(|&x| self.zones[usize::from(x)]).min().unwrap_or(Zone::Inner)
    }

    /// Returns the number of points whose zone is this zone or a higher one.
    fn n_at_least(&self, zone: Zone) -> u64 {
        power(self.zones.iter().filter(|z| **z >= zone).count() as u64, self.ndim)
    }

    fn exact_log_z(&self) -> f64 {
        let [all, outer, band] = [Zone::Inner, Zone::Outer, Zone::Band].map(|zone| self.n_at_least(zone));
        let values = self.values;
        (values[0] * (all - outer) as f64 + values[1] * (outer - band) as f64 + values[2] * band as f64).ln()
    }
}

impl PointReward for ZoneReward {
    fn value(&self, point: &[u16]) -> f64 {
        self.values[self.zone(point) as usize]
    }
    fn is_mode(&self, point: &[u16]) -> bool {
        self.zone(point) == Zone::Band
    }
    fn on_tensors(&self, points: &Tensor) -> (Tensor, Tensor) {
        let [zones, values] = self.tables.get(points.device(), || {
            let zones: Vec<i64> = self.zones.iter().map(|&zone| zone as i64).collect();
            [Tensor::from_slice(&zones), Tensor::from_slice(&self.values)]
        });
        let lowest = zones.take(points).amin(1, false);
        (values.take(&lowest), lowest.eq(Zone::Band as i64))
    }
    fn n_modes(&self) -> Option<u64> {
        Some(self.n_at_least(Zone::Band))
    }
    fn log_z(&self) -> Option<f64> {
        Some(self.exact_log_z())
    }
}

/// Checks the three parameters of the reward and returns `r0`, raised to
/// [`REWARD_FLOOR`](super::REWARD_FLOOR) if it is smaller.
fn checked(r0: f64, r1: f64, r2: f64) -> Result<f64> {
    if !(r0 >= 0.0 && r1 >= 0.0 && r2 >= 0.0 && (r0 + r1 + r2).is_finite()) {
        return Err(Error::config("r0, r1, r2", format!("{r0}, {r1}, {r2}"), "finite numbers of at least 0"));
    }
    floored(r0)
}

impl GridReward {
    /// Builds the deceptive reward of Kim et al. (*Adaptive Teachers for Amortized Samplers*, 2025): `r1`
    /// attracts samplers towards the middle, away from the bands with the modes.
    ///
    /// With `a_d = |x_d / (height - 1) - 1/2|`, `R = r0 + r1 - r1 [all a_d > 0.1] + r2 [all 0.3 < a_d <
    /// 0.4]`, as in the authors' program (the paper's equation 9 differs). A *mode* is a point with all
    /// coordinates in the band `0.3 < a_d < 0.4`; its reward is `r0 + r2`. If `r1 >= r2`, points in the
    /// middle have at least the reward of a mode, and the reward isn't deceptive. Thresholds are compared in
    /// integers. An `r0` below [`REWARD_FLOOR`](super::REWARD_FLOOR) is replaced by that floor.
    ///
    /// # Errors
    /// [`Error::Config`] unless `r0`, `r1` and `r2` are finite and not negative.
    ///
    /// ```
    /// use gfn::env::VectorStates;
    /// use gfn_gym::hypergrid::{GridReward, HyperGrid};
    /// let grid = HyperGrid::new(2, 16)?;
    /// let reward = GridReward::deceptive(&grid, 1e-5, 0.1, 2.0)?;
    /// let rewards = reward.reward(&VectorStates::from_rows([[2, 13], [7, 8], [0, 0]]));
    /// assert_eq!(rewards, [2.00001, 0.10001, 1e-5]);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    pub fn deceptive(grid: &HyperGrid, r0: f64, r1: f64, r2: f64) -> Result<Self> {
        let r0 = checked(r0, r1, r2)?;
        let zones = ZoneReward::new(grid, 2, [r0 + r1, r0, r0 + r2]);
        Ok(Self::new(RewardKind::Deceptive, grid, r0, r0 + r2, zones))
    }
}

/// The reward of Bengio et al. (2021): every point earns `r0`, points on a plateau in each corner earn `r1`
/// in addition, and points in a band inside each plateau earn `r2` in addition.
///
/// With `a_d = |x_d / (height - 1) - 1/2|`, `R = r0 + r1 [all a_d > 0.25] + r2 [all 0.3 < a_d < 0.4]`. The
/// thresholds are compared in integers: in floating point `0.3 < a` depends on rounding, and a grid of height
/// 16 would have 9 modes instead of 4.
///
/// A *mode* is a point that earns all three terms.
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
#[derive(Clone, Debug)]
pub struct OriginalReward {
    reward: GridReward,
    log_z: f64,
    n_modes: u64,
}

impl OriginalReward {
    /// Builds the reward on the points of a grid. An `r0` below [`REWARD_FLOOR`](super::REWARD_FLOOR) is
    /// replaced by that floor.
    ///
    /// # Errors
    /// [`Error::Config`] unless `r0`, `r1` and `r2` are finite and not negative.
    pub fn new(grid: &HyperGrid, r0: f64, r1: f64, r2: f64) -> Result<Self> {
        let r0 = checked(r0, r1, r2)?;
        let zones = ZoneReward::new(grid, 5, [r0, r0 + r1, r0 + r1 + r2]);
        let log_z = zones.exact_log_z();
        let n_modes = zones.n_at_least(Zone::Band);
        let reward = GridReward::new(RewardKind::Original, grid, r0, r0 + r1 + r2, zones);
        Ok(Self { reward, log_z, n_modes })
    }

    /// Builds the reward with `r0` = 0.1, `r1` = 0.5, `r2` = 2.
    ///
    /// # Errors
    /// Returns no error, because these numbers are valid.
    pub fn standard(grid: &HyperGrid) -> Result<Self> {
        Self::new(grid, 0.1, 0.5, 2.0)
    }

    /// Returns log Z, for a grid of any size: `log(r0 h^D + r1 p^D + r2 b^D)`, with `h` the height and `D`
    /// the number of dimensions. `p` is the number of values of a coordinate that lie in the plateau, and `b`
    /// is the number of values in the band.
    #[must_use]
    pub fn log_z(&self) -> f64 {
        self.log_z
    }

    /// Returns the number of modes, `b^D` with `D` the number of dimensions and `b` the number of values of a
    /// coordinate in the band. The number is 0 at heights of 6 and below and at height 11, because no
    /// coordinate lies in the band there.
    #[must_use]
    pub fn n_modes(&self) -> u64 {
        self.n_modes
    }

    /// Returns `true` for each point that is a mode.
    #[must_use]
    pub fn is_mode(&self, states: &VectorStates) -> Vec<bool> {
        self.reward.is_mode(states)
    }

    /// Returns R of each point, and 0 for a point outside the grid.
    #[must_use]
    pub fn reward(&self, states: &VectorStates) -> Vec<f64> {
        self.reward.reward(states)
    }

    /// Returns the reward as a [`GridReward`], the type that [`RewardKind`] builds.
    #[must_use]
    pub fn grid_reward(&self) -> &GridReward {
        &self.reward
    }
}

impl Reward<VectorStates> for OriginalReward {
    fn log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.reward.log_reward(states, conditions)
    }
    fn partial_log_reward(
        &self,
        states: &VectorStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.reward.partial_log_reward(states, conditions)
    }
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        self.reward.on_tensors()
    }
}
