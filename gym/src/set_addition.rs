//! Sets that grow by one item at a time.

use gfn::env::{Direction, Reward, TensorReward, VectorEnv, VectorRules, VectorStates};
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};
use tch::{Kind, Tensor};

use crate::rewards::{self, DeviceTables};
use crate::tensors::Counts;

/// Sets of at most (or exactly) `max_items` out of `n_items` items, which are added one at a time.
///
/// * *States.* Entry `i` is 1 if item `i` is in the set, and 0 otherwise. The input layer of a network is
///   `KHot::new(env.n_items(), 2)`.
/// * *Forward slots.* Slot `i` in `0..n_items` adds item `i`. Slot `n_items` exits; it doesn't exist with
///   `fixed_length`.
/// * *Backward slots.* Slot `i` removes item `i`.
/// * *End.* With `fixed_length` there is no exit action: the last item ends the trajectory. (torchgfn adds a
///   forced exit.) Without `fixed_length` the exit can finish every set, including the empty set, and is the
///   only legal action at `max_items` items.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env, Slots};
/// use gfn_gym::set_addition::SetAddition;
/// let env = SetAddition::new(3, 1, false)?.env();
/// let mut states = env.initial(&[0]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![1]))?;
/// assert_eq!(states.row(0), [0, 1, 0]);
/// assert_eq!(env.masks(Direction::Forward, &states).row(0), [false, false, false, true]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetAddition {
    n_items: usize,
    max_items: usize,
    fixed_length: bool,
}

impl SetAddition {
    /// Builds the rules of sets of at most `max_items` out of `n_items` items. With `fixed_length`, sets have
    /// exactly `max_items` items.
    ///
    /// # Errors
    /// [`Error::Config`] unless `1 <= max_items <= n_items`.
    pub fn new(n_items: usize, max_items: usize, fixed_length: bool) -> Result<Self> {
        if max_items == 0 || max_items > n_items {
            return Err(Error::config(
                "max_items",
                format!("{max_items}, but there are {n_items} items"),
                "at least 1, and at most the number of items",
            ));
        }
        Ok(Self { n_items, max_items, fixed_length })
    }

    /// Returns the number of items from which sets are built.
    #[must_use]
    pub fn n_items(&self) -> usize {
        self.n_items
    }

    /// Returns the largest number of items that a set may have.
    #[must_use]
    pub fn max_items(&self) -> usize {
        self.max_items
    }

    /// Returns the range from the smallest to the largest number of items of a finished set.
    #[must_use]
    pub fn sizes(&self) -> std::ops::RangeInclusive<usize> {
        if self.fixed_length { self.max_items..=self.max_items } else { 0..=self.max_items }
    }

    /// The number of states, `sum of C(n_items, k)` for `k` up to `max_items`; `None` if it exceeds the range
    /// of `u64`. (torchgfn counts sets that can't be reached, too.)
    #[must_use]
    pub fn n_states(&self) -> Option<u64> {
        self.n_sets(0..=self.max_items)
    }

    /// Returns the number of finished sets; `None` if it exceeds the range of `u64`.
    #[must_use]
    pub fn n_terminal(&self) -> Option<u64> {
        self.n_sets(self.sizes())
    }

    fn n_sets(&self, sizes: std::ops::RangeInclusive<usize>) -> Option<u64> {
        let mut of_size = 1u128;
        let mut sum = 0u64;
        for k in 0..=*sizes.end() {
            if sizes.contains(&k) {
                sum = sum.checked_add(u64::try_from(of_size).ok()?)?;
            }
            of_size = of_size.checked_mul((self.n_items - k) as u128)? / (k as u128 + 1);
        }
        Some(sum)
    }

    /// Returns the [`VectorEnv`] whose rules `self` defines.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        let form = Counts {
            width: self.n_items,
            largest: 1,
            max_sum: Some(self.max_items),
            has_exit: !self.fixed_length,
        };
        VectorEnv::new(*self).with_tensors(form)
    }
}

fn size(row: &[u16]) -> usize {
    row.iter().filter(|&&x| x > 0).count()
}

impl VectorRules for SetAddition {
    fn width(&self) -> usize {
        self.n_items
    }
    fn n_values(&self) -> usize {
        2
    }
    fn n_moves(&self, _: Direction) -> usize {
        self.n_items
    }
    fn has_exit(&self) -> bool {
        !self.fixed_length
    }
    fn can_end(&self, row: &[u16]) -> bool {
        self.sizes().contains(&size(row))
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        let forward = direction == Direction::Forward;
        if !forward || size(row) < self.max_items {
            for (legal, &x) in legal.iter_mut().zip(row) {
                *legal = (x == 0) == forward;
            }
        }
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let (before, after) = if direction == Direction::Forward { (0, 1) } else { (1, 0) };
        if row.get(slot) != Some(&before) || after == 1 && size(row) >= self.max_items {
            return None;
        }
        row[slot] = after;
        Some(slot)
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        match direction {
            Direction::Forward => format!("add item {slot} to {row:?}, at most {} items", self.max_items),
            Direction::Backward => format!("take item {slot} out of {row:?}"),
        }
    }
}

/// A reward `R = base + sum of the weights of the items in the set`. Unfinished sets have a partial reward by
/// the same formula ([`partial_log_reward`](Reward::partial_log_reward)).
///
/// ```
/// use gfn_gym::set_addition::{SetAddition, WeightReward};
/// let rules = SetAddition::new(2, 2, false)?;
/// let reward = WeightReward::new(&rules, 0.5, &[1.0, 2.0])?;
/// // The sets are worth 0.5, 1.5, 2.5 and 3.5.
/// assert!((reward.log_z() - 8f64.ln()).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct WeightReward {
    env: SetAddition,
    base: f64,
    weights: Vec<f64>,
    tables: DeviceTables<1>,
}

impl WeightReward {
    /// Builds the reward on the sets of an environment.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a weight per item; [`Error::Config`] unless all numbers are finite,
    /// no weight is below 0, and `base` is above 0, without which the empty set would have no finite
    /// log-reward.
    pub fn new(env: &SetAddition, base: f64, weights: &[f64]) -> Result<Self> {
        if weights.len() != env.n_items() {
            return Err(Error::shape(
                "the items' weights",
                [env.n_items() as i64],
                [weights.len() as i64],
                "give one weight per item",
            ));
        }
        if let Some(weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
            return Err(Error::config("an item's weight", weight, "a finite number, at least 0"));
        }
        let base = rewards::positive("base", base)?;
        Ok(Self { env: *env, base, weights: weights.to_vec(), tables: DeviceTables::default() })
    }

    fn log_of(&self, row: &[u16]) -> f64 {
        let weights = row.iter().zip(&self.weights).filter(|(x, _)| **x > 0).map(|(_, weight)| weight);
        (self.base + weights.sum::<f64>()).ln()
    }

    /// Returns log Z. There are `C(n, k)` sets of size `k`, each of which earns `base`. Each item belongs to
    /// `C(n - 1, k - 1)` of these sets, which earn its weight.
    #[must_use]
    pub fn log_z(&self) -> f64 {
        let n = self.env.n_items() as f64;
        let total: f64 = self.weights.iter().sum();
        // `log_count` is the log of C(n, k). A given item belongs to a share k / n of the sets of size k.
        let mut log_count = 0.0;
        let mut terms = Vec::new();
        for k in 0..=self.env.max_items() {
            if self.env.sizes().contains(&k) {
                terms.push(log_count + (self.base + total * k as f64 / n).ln());
            }
            log_count += (n - k as f64).ln() - (k as f64 + 1.0).ln();
        }
        log_sum_exp(terms)
    }
}

impl Reward<VectorStates> for WeightReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        let is_finished = |row: &[u16]| self.env.sizes().contains(&size(row));
        rewards::score_rows(states, self.weights.len(), |row| is_finished(row).then(|| self.log_of(row)))
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        rewards::score_rows(states, self.weights.len(), |row| Some(self.log_of(row))).map(Some)
    }
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        Some(self)
    }
}

impl TensorReward for WeightReward {
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor> {
        let [weights] = self.tables.get(states.device(), || [Tensor::from_slice(&self.weights)]);
        Ok((states.to_kind(Kind::Double).matmul(&weights) + self.base).log())
    }
}
