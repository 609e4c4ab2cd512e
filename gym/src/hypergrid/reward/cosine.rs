use std::f64::consts::TAU;

use gfn::env::{Reward, VectorStates};
use gfn::{Error, Result};

use super::{GridReward, RewardKind, floored};
use crate::hypergrid::HyperGrid;

/// A product of waves under a bell, highest in the middle of the grid.
///
/// With `a_d = |x_d / (height - 1) - 1/2|` and `f(a) = (cos(50 a) + 1) N(5 a; 0, 1)`, `R = r0 + r1 prod_d f(a_d)`. The sum over
/// all points factors, so that `Z = r0 H^D + r1 (sum_x f)^D`.
///
/// A *mode* is a point whose product reaches `(gamma f(0))^D`, with `f(0) = 2 / sqrt(2 pi)`. On a coarse grid of even height no
/// point comes near enough to the middle and there is no mode, see [`check_modes`](GridReward::check_modes).
///
/// ```
/// use gfn_gym::hypergrid::{CosineReward, GridReward, HyperGrid};
/// let grid = HyperGrid::new(2, 8)?;
/// let coarse = CosineReward::standard(&grid)?;
/// assert_eq!(coarse.n_modes(), Some(0));
/// assert!((coarse.log_z().unwrap() - 1.8952597013).abs() < 1e-9);
/// let grid = HyperGrid::new(2, 65)?;
/// let fine = CosineReward::standard(&grid)?;
/// assert_eq!(fine.totals(65 * 65)?.n_modes, 33);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct CosineReward {
    grid: HyperGrid,
    r0: f64,
    r1: f64,
    /// f of each coordinate.
    factors: Vec<f64>,
    /// The product from which a point is a mode.
    mode_product: f64,
}

impl CosineReward {
    /// The reward on the points of a grid. An `r0` below [`REWARD_FLOOR`](super::REWARD_FLOOR) stands for that floor; `gamma` is
    /// how near each factor of a mode comes to the peak.
    ///
    /// # Errors
    /// [`Error::Config`] unless `r0` and `r1` are finite and not negative and `gamma` lies in `(0, 1]`.
    pub fn new(grid: &HyperGrid, r0: f64, r1: f64, gamma: f64) -> Result<Self> {
        if !(r1.is_finite() && r1 >= 0.0 && gamma > 0.0 && gamma <= 1.0) {
            return Err(Error::config(
                "r1, gamma",
                format!("{r1}, {gamma}"),
                "a finite r1 of at least 0, and gamma in (0, 1]",
            ));
        }
        let top = (grid.height() - 1) as f64;
        let factor = |x: usize| {
            let a = (x as f64 / top - 0.5).abs();
            ((50.0 * a).cos() + 1.0) * (-(5.0 * a).powi(2) / 2.0).exp() / TAU.sqrt()
        };
        Ok(Self {
            grid: *grid,
            r0: floored(r0)?,
            r1,
            factors: (0..grid.height()).map(factor).collect(),
            mode_product: (gamma * 2.0 / TAU.sqrt()).powi(grid.ndim() as i32),
        })
    }

    /// `r0` = 0.1, `r1` = 0.5, `gamma` = 0.8.
    ///
    /// # Errors
    /// None of those of [`new`](Self::new) arises.
    pub fn standard(grid: &HyperGrid) -> Result<Self> {
        Self::new(grid, 0.1, 0.5, 0.8)
    }

    fn product(&self, point: &[u16]) -> f64 {
        point.iter().map(|&x| self.factors[usize::from(x)]).product()
    }

    /// Rounding must not decide at the threshold.
    fn reaches(&self, product: f64) -> bool {
        product >= self.mode_product * (1.0 - 1e-9)
    }
}

impl GridReward for CosineReward {
    fn kind(&self) -> RewardKind {
        RewardKind::Cosine
    }
    fn grid(&self) -> &HyperGrid {
        &self.grid
    }
    fn value(&self, point: &[u16]) -> f64 {
        self.r0 + self.r1 * self.product(point)
    }
    fn is_mode_at(&self, point: &[u16]) -> bool {
        self.reaches(self.product(point))
    }
    fn base(&self) -> f64 {
        self.r0
    }
    fn mode_threshold(&self) -> f64 {
        self.r0 + self.r1 * self.mode_product
    }
    /// 0 where the best point is no mode; otherwise the points have to be counted.
    fn n_modes(&self) -> Option<u64> {
        let best = self.factors.iter().copied().fold(0.0, f64::max);
        if self.reaches(best.powi(self.grid.ndim() as i32)) { None } else { Some(0) }
    }
    fn log_z(&self) -> Option<f64> {
        let sum: f64 = self.factors.iter().sum();
        Some((self.r0 * self.grid.n_states() as f64 + self.r1 * sum.powi(self.grid.ndim() as i32)).ln())
    }
    fn boxed(&self) -> Box<dyn GridReward> {
        Box::new(self.clone())
    }
}

impl Reward<VectorStates> for CosineReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        self.log_rewards(states)
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_rewards(states).map(Some)
    }
}
