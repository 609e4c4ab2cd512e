//! The target distribution R(x) / Z over the states in which trajectories can end.

use tch::Tensor;

use super::evaluate::repeated;
use crate::Result;
use crate::env::{CHUNK, EnumerableEnv, Reward, Rows, StateGraph, log_rewards};
use crate::error::check_len;
use crate::tensor::log_sum_exp;

/// The target distribution of a reward. Lists are by state index.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The probability R(x) / Z of each state; 0 for states in which no trajectory ends. Up to isomorphism
    /// each class is one state. If several states are one object
    /// ([`Symmetry::forms`](crate::env::Symmetry::forms)), each of them has an equal share of the object's R.
    pub probs: Vec<f64>,
    /// The value of log R(x) that the reward returned for the object of each state; minus infinity if no
    /// trajectory ends in the state.
    pub log_rewards: Vec<f64>,
    /// The log of the sum of the rewards of all objects.
    pub log_z: f64,
}

impl<E: EnumerableEnv> StateGraph<E> {
    /// Returns the target distribution of a reward. `conditions` is one condition vector `[C]` for all
    /// states.
    ///
    /// Unlike in training, rewards aren't multiplied by |Aut|: up to isomorphism each class has the reward R.
    /// If an object has several states, its R counts only once.
    ///
    /// # Errors
    /// The errors of [`log_rewards`].
    pub fn target_distribution(
        &self,
        reward: &dyn Reward<E::States>,
        conditions: Option<&Tensor>,
    ) -> Result<Target> {
        let ends = self.ends();
        let mut end_values = Vec::with_capacity(ends.len());
        for ends in ends.chunks(CHUNK) {
            let conditions = repeated(conditions, ends.len());
            end_values.extend(log_rewards(reward, &self.states().select(ends), conditions.as_ref())?);
        }
        self.target_of(&end_values)
    }

    /// Returns the target distribution of given log-rewards. `log_rewards` has one value for each state of
    /// [`ends`](Self::ends).
    ///
    /// ```
    /// use gfn::{env::StateGraph, examples::Triangles};
    /// let graph = StateGraph::build(&Triangles::env(), 100)?;
    /// let target = graph.target_of(&vec![1.0; graph.ends().len()])?;
    /// assert!((target.log_z - 1.0 - (graph.ends().len() as f64).ln()).abs() < 1e-12);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for a wrong number of log-rewards.
    pub fn target_of(&self, log_rewards: &[f64]) -> Result<Target> {
        let ends = self.ends();
        let remedy = "give one log-reward for each state in which trajectories can end (`StateGraph::ends`)";
        check_len("log-rewards", ends.len(), log_rewards.len(), remedy)?;
        let mut values = vec![f64::NEG_INFINITY; self.len()];
        for (&state, &value) in ends.iter().zip(log_rewards) {
            values[state] = value;
        }
        let shares = self.log_shares(&values);
        let log_z = log_sum_exp(shares.iter().copied());
        let probs = shares.iter().map(|share| (share - log_z).exp()).collect();
        Ok(Target { probs, log_rewards: values, log_z })
    }
}
