use gfn::env::{Reward, VectorStates};
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};

use super::SetAddition;
use crate::rewards;

/// `R = base + sum of the weights of the items in the set`; the same of partial sets
/// ([`partial_log_reward`](Reward::partial_log_reward)).
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
}

impl WeightReward {
    /// The reward on the sets of an environment.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a weight per item; [`Error::Config`] unless `base` is above 0 (the empty set has no finite
    /// log-reward without it), no weight is below 0, and all are finite.
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
        Ok(Self { env: *env, base: rewards::positive("base", base)?, weights: weights.to_vec() })
    }

    fn of(&self, row: &[u16]) -> f64 {
        let weights = row.iter().zip(&self.weights).filter(|(x, _)| **x > 0).map(|(_, weight)| weight);
        (self.base + weights.sum::<f64>()).ln()
    }

    /// The true log Z: each of the `C(n, k)` sets of size `k` is worth `base`, and an item is in `C(n - 1, k - 1)` of them.
    #[must_use]
    pub fn log_z(&self) -> f64 {
        let n = self.env.n_items() as f64;
        let total: f64 = self.weights.iter().sum();
        // log C(n, k); a share k / n of the sets has an item.
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
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        let finished = |row: &[u16]| self.env.sizes().contains(&row.iter().filter(|&&x| x > 0).count());
        rewards::of_rows(states, self.weights.len(), |row| finished(row).then(|| self.of(row)))
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Option<Vec<f64>>> {
        rewards::of_rows(states, self.weights.len(), |row| Some(self.of(row))).map(Some)
    }
}
