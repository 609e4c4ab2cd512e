//! Rewards on the points of the hyper-grid.

mod conditional;
mod corrupted;
mod kind;
mod linear_system;
mod point_hash;
mod presets;
mod simple;
mod tiered;
mod zones;

use std::fmt::Debug;
use std::sync::Arc;

pub use conditional::ConditionalReward;
use gfn::env::{Reward, TensorReward, VectorStates};
use gfn::{Error, Result, Rng};
pub use kind::{Preset, RewardKind};
use tch::Tensor;
pub use tiered::{
    BitwiseXor, ConditionalMultiscale, CoprimeTier, LcmTarget, MultiplicativeCoprime, MultiscaleTier,
    ParityCheck, ParityTier, TieredReward,
};
pub use zones::OriginalReward;

use super::HyperGrid;
use crate::rewards::check_width;

/// The smallest reward of any point. If `r0` is smaller, this number replaces it, because balance objectives
/// can't use `log 0`.
pub const REWARD_FLOOR: f64 = 1e-12;

/// The largest number of points that [`GridReward::check_modes`] visits. The check visits points only if the
/// number of modes has no closed form.
const SEARCH: u64 = 1 << 20;

/// The number of points per batch if all points of the grid are visited.
const CHUNK: u64 = 1 << 14;

/// A reward that depends on a point alone. Its log Z and its number of modes are available if they have a
/// closed form.
trait PointReward: Debug + Send + Sync {
    /// Returns the reward R of a point of the grid.
    fn value(&self, point: &[u16]) -> f64;

    /// Returns `true` if a point of the grid is a mode.
    fn is_mode(&self, point: &[u16]) -> bool;

    /// Returns R of points `[n, ndim]` (i64), `[n]` (f64), and `true` for each mode, `[n]` (bool), on the
    /// device of the points.
    fn on_tensors(&self, points: &Tensor) -> (Tensor, Tensor);

    /// Returns `false` if the tables of [`on_tensors`](Self::on_tensors) would be too large.
    fn has_tensor_form(&self) -> bool {
        true
    }

    /// Returns the number of modes; `None` if no closed form exists.
    fn n_modes(&self) -> Option<u64> {
        None
    }

    /// Returns log Z; `None` if no closed form exists.
    fn log_z(&self) -> Option<f64> {
        None
    }

    /// Returns the tiers (conditions, each with an amount that is added to the reward) from which the reward
    /// is built; `None` for a reward without tiers.
    fn tiered(&self) -> Option<&TieredReward> {
        None
    }
}

/// A reward on the points of a [`HyperGrid`], with log Z and the number of modes if closed forms exist.
///
/// [`RewardKind::preset`] and the constructors of this type build such a reward. Every point can be the end
/// of a trajectory, so that [`Reward::partial_log_reward`] of any point is its log-reward. Clones share the
/// tables of the reward.
///
/// ```
/// use gfn::env::VectorStates;
/// use gfn_gym::hypergrid::{HyperGrid, Preset, RewardKind};
/// let grid = HyperGrid::new(2, 16)?;
/// let reward = "deceptive".parse::<RewardKind>()?.preset(&grid, Preset::Medium)?;
/// reward.check_modes()?;
/// assert_eq!((reward.n_modes(), reward.mode_threshold()), (Some(4), 2.00001));
/// let (closed, summed) = (reward.log_z().unwrap(), reward.totals(256)?.log_z);
/// assert!((closed - summed).abs() < 1e-12);
/// assert_eq!(reward.is_mode(&VectorStates::from_rows([[2, 2], [0, 0]])), [true, false]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GridReward {
    kind: RewardKind,
    grid: HyperGrid,
    base: f64,
    mode_threshold: f64,
    points: Arc<dyn PointReward>,
}

impl GridReward {
    /// Builds a reward from its name, its grid, the reward of a point without any bonus, the smallest reward
    /// of a mode, and the function that gives the reward of each point.
    fn new(
        kind: RewardKind,
        grid: &HyperGrid,
        base: f64,
        mode_threshold: f64,
        points: impl PointReward + 'static,
    ) -> Self {
        Self { kind, grid: *grid, base, mode_threshold, points: Arc::new(points) }
    }

    /// Returns the name of the reward, which selects it in flags and configuration files.
    #[must_use]
    pub fn kind(&self) -> RewardKind {
        self.kind
    }

    /// Returns the grid on whose points the reward is defined.
    #[must_use]
    pub fn grid(&self) -> &HyperGrid {
        &self.grid
    }

    /// Returns the base reward: R of a point without any bonus.
    #[must_use]
    pub fn base(&self) -> f64 {
        self.base
    }

    /// Returns the smallest reward of a mode, up to rounding.
    #[must_use]
    pub fn mode_threshold(&self) -> f64 {
        self.mode_threshold
    }

    /// Returns R of a point of the grid.
    ///
    /// # Panics
    /// May panic if the point lies outside the grid ([`HyperGrid::contains`]); [`reward`](Self::reward) does
    /// not.
    #[must_use]
    pub fn value(&self, point: &[u16]) -> f64 {
        self.points.value(point)
    }

    /// Returns `true` if a point of the grid is a mode.
    ///
    /// # Panics
    /// May panic if the point lies outside the grid ([`HyperGrid::contains`]).
    #[must_use]
    pub fn is_mode_at(&self, point: &[u16]) -> bool {
        self.points.is_mode(point)
    }

    /// Returns the number of modes, if it is known without visiting all points.
    #[must_use]
    pub fn n_modes(&self) -> Option<u64> {
        self.points.n_modes()
    }

    /// Returns log Z, if it is known without visiting all points.
    #[must_use]
    pub fn log_z(&self) -> Option<f64> {
        self.points.log_z()
    }

    /// Returns the tiers (conditions, each with an amount that is added to the reward) from which the reward
    /// is built; `None` for a reward without tiers.
    #[must_use]
    pub fn tiered(&self) -> Option<&TieredReward> {
        self.points.tiered()
    }

    /// Returns R of each point, and 0 for a point outside the grid.
    #[must_use]
    pub fn reward(&self, states: &VectorStates) -> Vec<f64> {
        states.rows().map(|point| if self.grid.contains(point) { self.value(point) } else { 0.0 }).collect()
    }

    /// Returns `true` for each point that is a mode, and `false` for a point outside the grid.
    #[must_use]
    pub fn is_mode(&self, states: &VectorStates) -> Vec<bool> {
        states.rows().map(|point| self.grid.contains(point) && self.is_mode_at(point)).collect()
    }

    /// Sums the rewards of all points and counts the modes, which gives log Z and the number of modes of any
    /// reward.
    ///
    /// # Errors
    /// [`Error::TooManyStates`] for a grid of more than `limit` points.
    pub fn totals(&self, limit: u64) -> Result<GridTotals> {
        let n = self.grid.n_states();
        if n > limit {
            return Err(Error::TooManyStates { limit: usize::try_from(limit).unwrap_or(usize::MAX) });
        }
        let mut z = 0.0;
        let mut n_modes = 0;
        for start in (0..n).step_by(CHUNK as usize) {
            let states = self.grid.states_of(start..n.min(start + CHUNK))?;
            z += self.reward(&states).iter().sum::<f64>();
            n_modes += self.is_mode(&states).iter().filter(|mode| **mode).count() as u64;
        }
        Ok(GridTotals { log_z: z.ln(), n_modes })
    }

    /// Checks that the reward has a mode.
    ///
    /// The check uses the closed form of the number of modes, if it exists. Otherwise the check visits all
    /// points of a grid of at most 2^20 points, and 2^20 random points (always the same) of a larger grid. If
    /// none of these random points is a mode, the check fails, although the grid may have modes elsewhere.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no mode.
    pub fn check_modes(&self) -> Result<()> {
        let n = self.grid.n_states();
        let (has_mode, n_visited) = match self.n_modes() {
            Some(modes) => (modes > 0, n),
            None if n <= SEARCH => (self.totals(SEARCH)?.n_modes > 0, n),
            None => {
                let mut rng = Rng::seeded(0);
                ((0..SEARCH).any(|_| self.is_mode_at(&random_point(&self.grid, &mut rng))), SEARCH)
            }
        };
        if has_mode {
            return Ok(());
        }
        let kind = self.kind;
        let height = self.grid.height();
        let ndim = self.grid.ndim();
        Err(Error::config(
            "the reward's modes",
            format!(
                "not found among {n_visited} points of the {kind} reward at height {height} in {ndim} \
                 dimensions"
            ),
            "at least one point with the greatest reward: change the height or the reward's parameters",
        ))
    }
}

/// The sums over all points of a grid that [`GridReward::totals`] returns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GridTotals {
    /// The log of the sum of the rewards of all points.
    pub log_z: f64,
    /// The number of points that are modes.
    pub n_modes: u64,
}

impl Reward<VectorStates> for GridReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        check_points(&self.grid, states)?;
        Ok(states.rows().map(|point| self.value(point).ln()).collect())
    }
    fn partial_log_reward(
        &self,
        states: &VectorStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, conditions).map(Some)
    }
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        self.points.has_tensor_form().then_some(self)
    }
}

impl TensorReward for GridReward {
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor> {
        Ok(self.points.on_tensors(states).0.log())
    }
}

/// Refuses states that aren't points of this grid.
fn check_points(grid: &HyperGrid, states: &VectorStates) -> Result<()> {
    check_width(states, grid.ndim())?;
    match states.rows().find(|point| !grid.contains(point)) {
        None => Ok(()),
        Some(point) => Err(Error::config(
            "a grid point",
            format!("{point:?}, on a grid of height {}", grid.height()),
            "coordinates below the height of the grid that the reward was built for",
        )),
    }
}

/// Returns `r0`, or [`REWARD_FLOOR`] if `r0` is smaller, so that the logarithm of the result is finite.
/// Refuses an `r0` that is negative or not finite.
fn floored(r0: f64) -> Result<f64> {
    if r0.is_finite() && r0 >= 0.0 {
        return Ok(r0.max(REWARD_FLOOR));
    }
    Err(Error::config("r0", r0, "a finite number of at least 0 (a number below 1e-12 is replaced by 1e-12)"))
}

/// Draws a point of the grid, uniformly.
fn random_point(grid: &HyperGrid, rng: &mut Rng) -> Vec<u16> {
    (0..grid.ndim()).map(|_| rng.below(grid.height()) as u16).collect()
}

/// Returns the number of points `base^exponent`. The power can't overflow, because a grid has fewer than 2^64
/// points.
fn power(base: u64, exponent: usize) -> u64 {
    base.pow(exponent as u32)
}
