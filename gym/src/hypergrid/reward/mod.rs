//! Rewards on the points of the grid, and their shared trait.

mod conditional;
mod corrupted;
mod cosine;
mod deceptive;
mod kind;
mod original;
mod point_hash;
mod presets;
mod sparse;
mod tiered;
mod uniform_random;
mod zones;

use std::fmt::Debug;

pub use conditional::ConditionalReward;
pub use corrupted::CorruptedReward;
pub use cosine::CosineReward;
pub use deceptive::DeceptiveReward;
use gfn::env::{Reward, Rows, VectorStates};
use gfn::{Error, Result, Rng};
pub use kind::{Preset, RewardKind};
pub use original::OriginalReward;
pub use sparse::SparseReward;
pub use tiered::{
    BitEquation, BitwiseXor, ConditionalMultiscale, CoprimeTier, LcmTarget, MultiplicativeCoprime, MultiscaleTier,
    ParityCheck, ParityRules, ParityTier, TieredReward, Tiers,
};
pub use uniform_random::UniformRandomReward;

use super::HyperGrid;

/// The least reward of any point: an `r0` below it stands for it, for `log 0` can't be balanced.
pub const REWARD_FLOOR: f64 = 1e-12;

/// Points looked at when a closed form doesn't tell.
const SEARCH: u64 = 1 << 20;

/// Points per batch of an enumeration.
const CHUNK: u64 = 1 << 14;

/// A reward on the points of a [`HyperGrid`], and what is known about it exactly.
///
/// Object-safe: `Box<dyn GridReward>` is itself a [`Reward`], can be cloned, and is what [`RewardKind::preset`] gives. Every point
/// can be finished, so [`Reward::partial_log_reward`] of any point is its log-reward.
///
/// ```
/// use gfn::env::{Reward, VectorStates};
/// use gfn_gym::hypergrid::{GridReward, HyperGrid, Preset, RewardKind};
/// let grid = HyperGrid::new(2, 16)?;
/// let reward = "deceptive".parse::<RewardKind>()?.preset(&grid, Preset::Medium)?;
/// reward.check_modes()?;
/// assert_eq!((reward.n_modes(), reward.mode_threshold()), (Some(4), 2.00001));
/// let (closed, summed) = (reward.log_z().unwrap(), reward.totals(256)?.log_z);
/// assert!((closed - summed).abs() < 1e-12);
/// assert_eq!(reward.is_mode(&VectorStates::from_rows([[2, 2], [0, 0]])), [true, false]);
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait GridReward: Reward<VectorStates> + Debug + Send + Sync {
    /// The member of the family; its `Display` is the name.
    fn kind(&self) -> RewardKind;

    /// The grid that it is a reward on.
    fn grid(&self) -> &HyperGrid;

    /// R of one point of the grid.
    ///
    /// # Panics
    /// May panic if the point isn't of the grid ([`HyperGrid::contains`]); [`reward`](Self::reward) does not.
    fn value(&self, point: &[u16]) -> f64;

    /// `true` if one point of the grid is a mode.
    ///
    /// # Panics
    /// As [`value`](Self::value).
    fn is_mode_at(&self, point: &[u16]) -> bool;

    /// The base reward: what a point is worth that earns nothing.
    fn base(&self) -> f64;

    /// The least reward of a mode, up to rounding.
    fn mode_threshold(&self) -> f64;

    /// The number of modes where it is known without visiting all points.
    fn n_modes(&self) -> Option<u64>;

    /// log Z where it is known without visiting all points.
    fn log_z(&self) -> Option<f64>;

    /// The tiers, of a reward that is built of them.
    fn tiered(&self) -> Option<&TieredReward> {
        None
    }

    /// A copy behind a box.
    fn boxed(&self) -> Box<dyn GridReward>;

    /// R of each point; 0 for one that isn't of the grid.
    fn reward(&self, states: &VectorStates) -> Vec<f64> {
        states.rows().map(|point| if self.grid().contains(point) { self.value(point) } else { 0.0 }).collect()
    }

    /// For each point, `true` if it is a mode; one that isn't of the grid is none.
    fn is_mode(&self, states: &VectorStates) -> Vec<bool> {
        states.rows().map(|point| self.grid().contains(point) && self.is_mode_at(point)).collect()
    }

    /// log R of each point.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Config`] for points that aren't of the grid.
    fn log_rewards(&self, states: &VectorStates) -> Result<Vec<f64>> {
        check_points(self.grid(), states)?;
        Ok(states.rows().map(|point| self.value(point).ln()).collect())
    }

    /// Sums over all points: log Z and the number of modes of any reward.
    ///
    /// # Errors
    /// [`Error::TooManyStates`] for a grid of more than `limit` points.
    fn totals(&self, limit: u64) -> Result<GridTotals> {
        let (grid, n) = (self.grid(), self.grid().n_states());
        if n > limit {
            return Err(Error::TooManyStates { limit: usize::try_from(limit).unwrap_or(usize::MAX) });
        }
        let (mut z, mut n_modes) = (0.0, 0);
        for start in (0..n).step_by(CHUNK as usize) {
            let states = grid.states_of(start..n.min(start + CHUNK))?;
            z += self.reward(&states).iter().sum::<f64>();
            n_modes += self.is_mode(&states).iter().filter(|mode| **mode).count() as u64;
        }
        Ok(GridTotals { log_z: z.ln(), n_modes })
    }

    /// Checks that there is a mode to find.
    ///
    /// By the closed form where there is one. Else all points are looked at, or 2^20 random ones (always the same) of a larger
    /// grid: a mode rarer than that is reported as missing.
    ///
    /// # Errors
    /// [`Error::Config`] if there is none.
    fn check_modes(&self) -> Result<()> {
        let n = self.grid().n_states();
        let (found, looked_at) = match self.n_modes() {
            Some(modes) => (modes > 0, n),
            None if n <= SEARCH => (self.totals(SEARCH)?.n_modes > 0, n),
            None => {
                let mut rng = Rng::seeded(0);
                ((0..SEARCH).any(|_| self.is_mode_at(&random_point(self.grid(), &mut rng))), SEARCH)
            }
        };
        if found {
            return Ok(());
        }
        let (kind, height, ndim) = (self.kind(), self.grid().height(), self.grid().ndim());
        Err(Error::config(
            "the reward's modes",
            format!("none among {looked_at} points of the {kind} reward at height {height} in {ndim} dimensions"),
            "at least one point that earns all of the reward: change the height or the reward's parameters",
        ))
    }
}

/// The sums of [`GridReward::totals`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GridTotals {
    /// log Z.
    pub log_z: f64,
    /// The number of modes.
    pub n_modes: u64,
}

impl Clone for Box<dyn GridReward> {
    fn clone(&self) -> Self {
        self.as_ref().boxed()
    }
}

impl Reward<VectorStates> for Box<dyn GridReward> {
    fn log_reward(&self, states: &VectorStates, conditions: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        self.as_ref().log_reward(states, conditions)
    }
    fn partial_log_reward(&self, states: &VectorStates, conditions: Option<&tch::Tensor>) -> Result<Option<Vec<f64>>> {
        self.as_ref().partial_log_reward(states, conditions)
    }
}

/// Refuses states that aren't points of the grid.
fn check_points(grid: &HyperGrid, states: &VectorStates) -> Result<()> {
    if states.width() != grid.ndim() {
        return Err(Error::shape(
            "the points",
            [states.len() as i64, grid.ndim() as i64],
            [states.len() as i64, states.width() as i64],
            "give points of the grid that the reward was made for",
        ));
    }
    match states.rows().find(|point| !grid.contains(point)) {
        None => Ok(()),
        Some(point) => Err(Error::config(
            "a grid point",
            format!("{point:?}, on a grid of height {}", grid.height()),
            "coordinates below the height of the grid that the reward was made for",
        )),
    }
}

/// A base reward that is fit for a logarithm.
fn floored(r0: f64) -> Result<f64> {
    if r0.is_finite() && r0 >= 0.0 {
        return Ok(r0.max(REWARD_FLOOR));
    }
    Err(Error::config("r0", r0, "a finite number of at least 0 (below 1e-12 it stands for 1e-12)"))
}

/// Refuses dimensions that the grid hasn't, or that are named twice.
fn check_dims(grid: &HyperGrid, dims: &[usize]) -> Result<()> {
    let twice = dims.iter().enumerate().any(|(i, dim)| dims[..i].contains(dim));
    if dims.is_empty() || twice || dims.iter().any(|&dim| dim >= grid.ndim()) {
        return Err(Error::config(
            "the constrained dimensions",
            format!("{dims:?} on a grid of {} dimensions", grid.ndim()),
            "at least one, each below the number of dimensions and named once",
        ));
    }
    Ok(())
}

/// A uniformly random point.
fn random_point(grid: &HyperGrid, rng: &mut Rng) -> Vec<u16> {
    (0..grid.ndim()).map(|_| rng.below(grid.height()) as u16).collect()
}

/// `base^exponent`, a number of points: it doesn't overflow, because a grid has fewer than 2^64 points.
fn power(base: u64, exponent: usize) -> u64 {
    base.pow(exponent as u32)
}
