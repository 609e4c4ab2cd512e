//! Rewards built from tiers. A tier has a weight and a condition on points of the grid: the more tiers a
//! point passes, the higher is its reward. `TieredReward` is a table of tiers, and three families of
//! conditions fill the table.

mod coordinates;
mod coprime;
mod multiscale;
mod parity;
mod parity_conditions;

pub use coprime::{CoprimeTier, LcmTarget, MultiplicativeCoprime};
pub use multiscale::{ConditionalMultiscale, MultiscaleTier};
pub use parity::{BitwiseXor, ParityCheck, ParityTier};

use std::fmt::Debug;

use gfn::{Error, Result};
use tch::{Kind, Tensor};

use super::{GridReward, PointReward, RewardKind, floored, power};
use crate::hypergrid::HyperGrid;
use crate::rewards::DeviceTables;

/// The largest number of steps of dynamic programming to count points. This many steps take a few seconds.
const MAX_STEPS: usize = 1 << 24;

/// The largest number of entries of a table for the tensor form of a reward.
const MAX_TABLE: usize = 1 << 24;

/// The largest number of attempts to draw random sets of coordinates for the parity checks of a tier. A draw
/// is repeated if its checks aren't independent of the earlier tiers' checks and of the bits that select a
/// point's rule.
const TRIES: usize = 64;

/// The conditions of a table of tiers, and the counts of points that meet them.
///
/// Tiers are numbered from 0. A set of tiers is a number whose bit `1 << t` represents tier `t`. A reward may
/// have several *rules*. A function of the point, the selector, then assigns a rule to each point, and some
/// tiers have a different condition for each rule.
trait Conditions: Debug + Send + Sync {
    /// Returns the number of rules. Exactly one rule applies to each point of the grid.
    fn n_rules(&self) -> usize;

    /// Returns the index of the rule that applies to a point.
    fn rule(&self, point: &[u16]) -> usize;

    /// Returns `true` if a point to which this rule applies meets the condition of a tier.
    fn is_met(&self, tier: usize, rule: usize, point: &[u16]) -> bool;

    /// Returns `true` for each tier whose condition a point `[n, ndim]` meets, `[n, n_tiers]` (bool).
    fn met_on_tensors(&self, points: &Tensor) -> Tensor;

    /// Returns the number of entries of the largest table that
    /// [`met_on_tensors`](Self::met_on_tensors) needs.
    fn table_size(&self) -> usize;

    /// Counts the points that meet the conditions of all these tiers and have 0 in every unconstrained
    /// dimension. Returns a count for each rule; a point is counted for the rule that applies to it. Returns
    /// `None` if the points can only be counted by visiting all points of the grid.
    fn counts(&self, tiers: &[usize]) -> Option<Vec<u64>>;
}

/// A reward that is a table of tiers. Each tier that a point passes increases the reward. A point passes a
/// tier if it meets the conditions of this tier and of all tiers before it: `R = r0 + sum_t w_t [x meets the
/// conditions of tiers 0..=t]`.
///
/// [`BitwiseXor`], [`MultiplicativeCoprime`] and [`ConditionalMultiscale`] fill the table;
/// [`GridReward::tiered`] returns the table. With `n_t` the number of points that pass the tiers up to `t`,
/// and `H^D` the number of all points, `Z = r0 H^D + sum_t w_t n_t`. A *mode* passes the first `mode_tiers`
/// tiers, which are all tiers for most families.
///
/// ```
/// use gfn_gym::hypergrid::{BitwiseXor, HyperGrid};
/// let grid = HyperGrid::new(3, 8)?;
/// let reward = BitwiseXor::standard(&grid).build(&grid)?;
/// let table = reward.tiered().unwrap();
/// assert_eq!((&table.weights[..], reward.n_modes()), ([1.0, 10.0, 100.0].as_slice(), Some(64)));
/// assert_eq!(table.passed_tiers(&[1, 2, 3]), 0b111);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct TieredReward {
    grid: HyperGrid,
    n_free: usize,
    /// The amount that each tier adds to the reward of a point that passes it.
    pub weights: Vec<f64>,
    /// The reward of a point that passes the first `n` tiers, at index `n`.
    values: Vec<f64>,
    /// The number of tiers, counted from the first, that a point must pass to be a mode.
    pub mode_tiers: usize,
    conditions: Box<dyn Conditions>,
    tables: DeviceTables<1>,
}

impl TieredReward {
    /// Returns the number of rules. Exactly one rule applies to each point of the grid; a tier may have
    /// another condition for each rule.
    #[must_use]
    pub fn n_rules(&self) -> usize {
        self.conditions.n_rules()
    }

    /// Returns the index of the rule that applies to a point of the grid. The index is below
    /// [`n_rules`](Self::n_rules).
    ///
    /// # Panics
    /// May panic if the point lies outside the grid.
    #[must_use]
    pub fn rule(&self, point: &[u16]) -> usize {
        self.conditions.rule(point)
    }

    /// Returns the set of tiers whose conditions a point of the grid meets, whether or not the point meets
    /// the conditions of earlier tiers.
    ///
    /// # Panics
    /// May panic if the point lies outside the grid.
    #[must_use]
    pub fn passed_tiers(&self, point: &[u16]) -> u32 {
        let rule = self.rule(point);
        let is_met = |t: &usize| self.conditions.is_met(*t, rule, point);
        (0..self.weights.len()).filter(is_met).fold(0, |set, t| set | 1 << t)
    }

    /// Returns `true` for each tier whose condition a point `[n, ndim]` meets, `[n, n_tiers]` (bool).
    pub(super) fn passed_tiers_on_tensors(&self, points: &Tensor) -> Tensor {
        self.conditions.met_on_tensors(points)
    }

    /// Returns R of points that meet the conditions of these tiers, `[n]` (f64), and `true` for each mode.
    pub(super) fn values_on_tensors(&self, tiers: &Tensor) -> (Tensor, Tensor) {
        let [values] = self.tables.get(tiers.device(), || [Tensor::from_slice(&self.values)]);
        let leading = tiers.cumprod(1, Kind::Int64).sum_dim_intlist(1, false, Kind::Int64);
        (values.take(&leading), leading.ge(self.mode_tiers as i64))
    }

    /// Returns R of a point that meets the conditions of exactly the tiers in the set `tiers`.
    pub(super) fn value_of(&self, tiers: u32) -> f64 {
        self.values[self.leading(tiers)]
    }

    /// Returns `true` if a point that meets the conditions of exactly the tiers in the set `tiers` is a mode.
    pub(super) fn is_mode_of(&self, tiers: u32) -> bool {
        self.leading(tiers) >= self.mode_tiers
    }

    fn leading(&self, tiers: u32) -> usize {
        (tiers.trailing_ones() as usize).min(self.weights.len())
    }

    /// Counts the points that meet the conditions of a set of tiers, separately for each rule: a point counts
    /// for the rule that applies to it. Returns `None` if the counts aren't known without visiting all
    /// points.
    #[must_use]
    pub fn counts_of_tiers(&self, tiers: u32) -> Option<Vec<u64>> {
        let tiers: Vec<usize> = (0..self.weights.len()).filter(|t| tiers >> t & 1 == 1).collect();
        let free = power(self.grid.height() as u64, self.n_free);
        Some(self.conditions.counts(&tiers)?.into_iter().map(|count| count * free).collect())
    }

    /// Counts the points that pass the first `n` tiers, separately for each rule: a point counts for the rule
    /// that applies to it. Returns `None` if the counts aren't known without visiting all points.
    #[must_use]
    pub fn counts(&self, n: usize) -> Option<Vec<u64>> {
        self.counts_of_tiers(u32::MAX.checked_shr(32 - n.min(self.weights.len()) as u32).unwrap_or(0))
    }

    fn n_passing(&self, n: usize) -> Option<u64> {
        Some(self.counts(n)?.iter().sum())
    }
}

impl PointReward for TieredReward {
    fn value(&self, point: &[u16]) -> f64 {
        self.value_of(self.passed_tiers(point))
    }
    fn is_mode(&self, point: &[u16]) -> bool {
        self.is_mode_of(self.passed_tiers(point))
    }
    fn on_tensors(&self, points: &Tensor) -> (Tensor, Tensor) {
        self.values_on_tensors(&self.passed_tiers_on_tensors(points))
    }
    fn has_tensor_form(&self) -> bool {
        self.conditions.table_size() <= MAX_TABLE
    }
    fn n_modes(&self) -> Option<u64> {
        self.n_passing(self.mode_tiers)
    }
    fn log_z(&self) -> Option<f64> {
        let mut z = self.values[0] * self.grid.n_states() as f64;
        for (t, weight) in self.weights.iter().enumerate() {
            z += weight * self.n_passing(t + 1)? as f64;
        }
        Some(z.ln())
    }
    fn tiered(&self) -> Option<&TieredReward> {
        Some(self)
    }
}

/// Builds the reward that a table of tiers defines. The conditions of the tiers constrain `n_constrained`
/// dimensions of the grid.
///
/// # Errors
/// [`Error::Config`] unless there are 1 to 32 tiers with finite and positive weights, a mode needs at least
/// one and at most all of them, and `r0` is finite and not negative.
fn build_table(
    kind: RewardKind,
    grid: &HyperGrid,
    r0: f64,
    n_constrained: usize,
    weights: Vec<f64>,
    mode_tiers: usize,
    conditions: impl Conditions + 'static,
) -> Result<GridReward> {
    let n = weights.len();
    let are_positive = weights.iter().all(|weight| weight.is_finite() && *weight > 0.0);
    if !(1..=32).contains(&n) || !are_positive || !(1..=n).contains(&mode_tiers) {
        return Err(Error::config(
            "the tiers",
            format!("{n} tiers with the weights {weights:?}, of which {mode_tiers} make a mode"),
            "1 to 32 tiers, each with a finite and positive weight, of which at least 1 makes a mode",
        ));
    }
    let mut values = vec![floored(r0)?];
    for weight in &weights {
        values.push(values[values.len() - 1] + weight);
    }
    let n_free = grid.ndim() - n_constrained;
    let base = values[0];
    let mode_threshold = values[mode_tiers];
    let conditions = Box::new(conditions);
    let tables = DeviceTables::default();
    let points = TieredReward { grid: *grid, n_free, weights, values, mode_tiers, conditions, tables };
    Ok(GridReward::new(kind, grid, base, mode_threshold, points))
}

/// Refuses dimensions that the grid lacks or that are listed twice.
fn check_dims(grid: &HyperGrid, dims: &[usize]) -> Result<()> {
    let has_duplicate = dims.iter().enumerate().any(|(i, dim)| dims[..i].contains(dim));
    if dims.is_empty() || has_duplicate || dims.iter().any(|&dim| dim >= grid.ndim()) {
        return Err(Error::config(
            "the constrained dimensions",
            format!("{dims:?} on a grid of {} dimensions", grid.ndim()),
            "at least one dimension, each below the number of dimensions and named once",
        ));
    }
    Ok(())
}
