//! The target distribution R(x) / Z over the states in which trajectories can end.

use tch::Tensor;

use super::evaluate::repeated;
use crate::Result;
use crate::env::{CHUNK, EnumerableEnv, Reward, Rows, StateGraph, log_rewards};
use crate::tensor::log_sum_exp;

/// The target distribution of a reward, by state index.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// R(x) / Z; 0 for states in which no trajectory ends. Up to isomorphism each class counts once.
    pub probs: Vec<f64>,
    /// log R(x) of each state; minus infinity where no trajectory ends.
    pub log_rewards: Vec<f64>,
    /// log Z, the log of the sum of all rewards.
    pub log_z: f64,
}

impl<E: EnumerableEnv> StateGraph<E> {
    /// The target distribution of a reward; `conditions` is one vector `[C]`.
    ///
    /// It uses the raw reward: up to isomorphism R counts once per class, not multiplied by |Aut|.
    ///
    /// # Errors
    /// Those of [`log_rewards`].
    pub fn target_distribution<R: Reward<E::States> + ?Sized>(
        &self,
        reward: &R,
        conditions: Option<&Tensor>,
    ) -> Result<Target> {
        let mut values = vec![f64::NEG_INFINITY; self.len()];
        for ends in self.ends().chunks(CHUNK) {
            let conditions = repeated(conditions, ends.len());
            let of_ends = log_rewards(reward, &self.states().select(ends), conditions.as_ref())?;
            ends.iter().zip(of_ends).for_each(|(&state, value)| values[state] = value);
        }
        let log_z = log_sum_exp(values.iter().copied());
        let probs = values.iter().map(|value| (value - log_z).exp()).collect();
        Ok(Target { probs, log_rewards: values, log_z })
    }
}
