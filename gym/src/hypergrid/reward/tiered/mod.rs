//! Rewards that grow with the tiers of conditions that a point passes.

mod bitwise_xor;
mod coprime;
mod gf2;
mod multiscale;
mod parity_rules;

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use gfn::env::{Reward, VectorStates};
use gfn::{Error, Result};

pub use self::bitwise_xor::{BitwiseXor, ParityCheck, ParityTier};
pub use self::coprime::{CoprimeTier, LcmTarget, MultiplicativeCoprime};
pub use self::multiscale::{ConditionalMultiscale, MultiscaleTier};
pub use self::parity_rules::{BitEquation, ParityRules};
use super::{GridReward, RewardKind, check_dims, floored, power};
use crate::hypergrid::HyperGrid;

/// Steps up to which points are counted by dynamic programming: a few seconds.
const WORK: usize = 1 << 24;

/// Counts points by dynamic programming over `n_dims` dimensions: `kinds` has the number of coordinates of each kind, and `step` gives the
/// state that a kind leads to in a dimension, if the point is still one that counts. `None` for too many steps.
fn count_folds<S: Hash + Eq, K>(
    n_dims: usize,
    kinds: &HashMap<K, u64>,
    start: S,
    step: impl Fn(usize, &S, &K) -> Option<S>,
) -> Option<HashMap<S, u64>> {
    let mut states = HashMap::from([(start, 1)]);
    let mut work = 0;
    for d in 0..n_dims {
        work += states.len() * kinds.len();
        if work > WORK {
            return None;
        }
        let mut next = HashMap::<S, u64>::new();
        for (state, count) in &states {
            for (kind, many) in kinds {
                if let Some(to) = step(d, state, kind) {
                    *next.entry(to).or_default() += count * many;
                }
            }
        }
        states = next;
    }
    Some(states)
}

/// The number of points that agree in the constrained dimensions.
fn free_points(grid: &HyperGrid, dims: &[usize]) -> u64 {
    power(grid.height() as u64, grid.ndim() - dims.len())
}

/// Conditions in tiers, each of which a point meets or not.
///
/// Tiers are numbered from 0 and sets of them are bits, tier `t` the bit `1 << t`. A family with several *rules* sorts the points
/// by a selector, and some tiers ask something else of each sort.
pub trait Tiers: Debug + Send + Sync {
    /// The number of tiers, at most 32.
    fn n_tiers(&self) -> usize;

    /// The tiers whose conditions a point of the grid meets, each looked at for itself.
    fn passed(&self, point: &[u16]) -> u32;

    /// The number of rules.
    fn n_rules(&self) -> usize {
        1
    }

    /// The rule of a point of the grid, below [`n_rules`](Self::n_rules).
    fn rule(&self, _point: &[u16]) -> usize {
        0
    }

    /// The number of points that meet the conditions of all these tiers, rule by rule; `None` where only visiting all points would tell.
    fn counts(&self, tiers: u32) -> Option<Vec<u64>>;
}

/// A reward that grows with the tiers a point passes, each only together with all before it:
/// `R = r0 + sum_t w_t [x meets the conditions of tiers 0..=t]`.
///
/// Made by [`BitwiseXor`], [`MultiplicativeCoprime`] and
/// [`ConditionalMultiscale`], or from [`Tiers`] of your own. With `n_t` the points that pass the
/// tiers up to `t`, `Z = r0 H^D + sum_t w_t n_t`. A *mode* passes the first `mode_tiers` tiers, for most families all.
///
/// ```
/// use gfn_gym::hypergrid::{BitwiseXor, GridReward, HyperGrid};
/// let grid = HyperGrid::new(3, 8)?;
/// let reward = BitwiseXor::standard(&grid).build(&grid)?;
/// assert_eq!((reward.weights(), reward.n_modes()), ([1.0, 10.0, 100.0].as_slice(), Some(64)));
/// assert_eq!(reward.n_passed(&[1, 2, 3]), 3);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TieredReward {
    kind: RewardKind,
    grid: HyperGrid,
    weights: Vec<f64>,
    /// R by the number of tiers passed.
    values: Vec<f64>,
    mode_tiers: usize,
    tiers: Arc<dyn Tiers>,
}

impl TieredReward {
    /// The reward of these tiers. An `r0` below [`REWARD_FLOOR`](crate::hypergrid::REWARD_FLOOR) stands for that floor.
    ///
    /// # Errors
    /// [`Error::Config`] unless there are 1 to 32 tiers, a finite and positive weight for each, at least one and at most all of
    /// them for a mode, and `r0` is finite and not negative.
    pub fn new(
        kind: RewardKind,
        grid: &HyperGrid,
        r0: f64,
        weights: Vec<f64>,
        mode_tiers: usize,
        tiers: Arc<dyn Tiers>,
    ) -> Result<Self> {
        let (n, given) = (tiers.n_tiers(), weights.len());
        let weighty = weights.iter().all(|weight| weight.is_finite() && *weight > 0.0);
        if !(1..=32).contains(&n) || given != n || !weighty || !(1..=n).contains(&mode_tiers) {
            return Err(Error::config(
                "the tiers",
                format!("{n} with the weights {weights:?}, {mode_tiers} of them for a mode"),
                "1 to 32 tiers, each with a finite and positive weight, of which at least 1 makes a mode",
            ));
        }
        let mut values = vec![floored(r0)?];
        for weight in &weights {
            values.push(values[values.len() - 1] + weight);
        }
        Ok(Self { kind, grid: *grid, weights, values, mode_tiers, tiers })
    }

    /// The amount that each tier adds.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The number of tiers, from the first on, that a mode passes.
    #[must_use]
    pub fn mode_tiers(&self) -> usize {
        self.mode_tiers
    }

    /// The conditions.
    #[must_use]
    pub fn tiers(&self) -> &dyn Tiers {
        self.tiers.as_ref()
    }

    /// The number of tiers, from the first on, that a point of the grid passes without a gap.
    ///
    /// # Panics
    /// May panic if the point isn't of the grid.
    #[must_use]
    pub fn n_passed(&self, point: &[u16]) -> usize {
        self.leading(self.tiers.passed(point))
    }

    /// R of a point that meets the conditions of these tiers.
    pub(in crate::hypergrid::reward) fn value_of(&self, tiers: u32) -> f64 {
        self.values[self.leading(tiers)]
    }

    /// `true` if meeting the conditions of these tiers makes a mode.
    pub(in crate::hypergrid::reward) fn is_mode_of(&self, tiers: u32) -> bool {
        self.leading(tiers) >= self.mode_tiers
    }

    fn leading(&self, tiers: u32) -> usize {
        (tiers.trailing_ones() as usize).min(self.weights.len())
    }

    /// The numbers of points that pass the first `n` tiers, rule by rule, where they are known without visiting all points.
    #[must_use]
    pub fn counts(&self, n: usize) -> Option<Vec<u64>> {
        let tiers = u32::MAX.checked_shr(32 - n.min(self.weights.len()) as u32).unwrap_or(0);
        self.tiers.counts(tiers)
    }
}

impl GridReward for TieredReward {
    fn kind(&self) -> RewardKind {
        self.kind
    }
    fn grid(&self) -> &HyperGrid {
        &self.grid
    }
    fn value(&self, point: &[u16]) -> f64 {
        self.value_of(self.tiers.passed(point))
    }
    fn is_mode_at(&self, point: &[u16]) -> bool {
        self.is_mode_of(self.tiers.passed(point))
    }
    fn base(&self) -> f64 {
        self.values[0]
    }
    fn mode_threshold(&self) -> f64 {
        self.values[self.mode_tiers]
    }
    fn n_modes(&self) -> Option<u64> {
        Some(self.counts(self.mode_tiers)?.iter().sum())
    }
    fn log_z(&self) -> Option<f64> {
        let mut z = self.values[0] * self.grid.n_states() as f64;
        for (t, weight) in self.weights.iter().enumerate() {
            z += weight * self.counts(t + 1)?.iter().sum::<u64>() as f64;
        }
        Some(z.ln())
    }
    fn tiered(&self) -> Option<&TieredReward> {
        Some(self)
    }
    fn boxed(&self) -> Box<dyn GridReward> {
        Box::new(self.clone())
    }
}

impl Reward<VectorStates> for TieredReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        self.log_rewards(states)
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_rewards(states).map(Some)
    }
}
