use std::sync::Arc;

use gfn::env::{Reals, Reward, Rows};
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};
use tch::Tensor;

use super::cosine::cosine_of;
use super::{Condition, Conditioning};

/// A reward that several threads share.
type SharedReward<S> = Arc<dyn Reward<S> + Send + Sync>;

/// A combination of rewards for a given condition: `log R(x | c) = beta * (log sum_i w_i R_i(x) + log
/// f(x))`.
///
/// The [`Conditioning`] decodes beta, the preferences w and the goal direction from the condition vector. The
/// factor f is 1 if the conditioning has no cone of goals. Inside of the cone, f is the factor of
/// [`Focus::log_factor`](super::Focus::log_factor). Outside of the cone, the log-reward is
/// [`Focus::outside`](super::Focus::outside). recursionpharma/gflownet also multiplies by f before it applies
/// beta, but it multiplies the log-reward outside of a cone by beta, too. If several states represent one
/// object, R_i is the reward of the object. The trainer divides R(x | c) among these states afterwards, so
/// this division isn't raised to the power beta.
///
/// The [module](super) has an example.
pub struct ConditionedReward<S> {
    conditioning: Conditioning,
    rewards: Vec<SharedReward<S>>,
}

impl<S> Clone for ConditionedReward<S> {
    fn clone(&self) -> Self {
        Self { conditioning: self.conditioning.clone(), rewards: self.rewards.clone() }
    }
}

impl<S> std::fmt::Debug for ConditionedReward<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConditionedReward").field("conditioning", &self.conditioning).finish_non_exhaustive()
    }
}

impl<S: Rows> ConditionedReward<S> {
    /// Combines rewards that don't depend on conditions themselves.
    ///
    /// # Errors
    /// [`Error::Config`] unless the number of rewards is that of the conditioning.
    pub fn new(conditioning: Conditioning, rewards: Vec<SharedReward<S>>) -> Result<Self> {
        if rewards.len() != conditioning.n_rewards() {
            return Err(Error::config(
                "rewards to be conditioned",
                rewards.len(),
                "the number of rewards that the conditioning was built for",
            ));
        }
        Ok(Self { conditioning, rewards })
    }

    /// Returns the conditioning, which has the distribution and the encoding of conditions.
    #[must_use]
    pub fn conditioning(&self) -> &Conditioning {
        &self.conditioning
    }

    /// Returns the rewards R_i of each state, of shape `[n, rewards]`, for multi-objective metrics.
    ///
    /// # Errors
    /// Errors of the rewards.
    pub fn objectives(&self, states: &S) -> Result<Reals> {
        let logs = self.logs(states, |reward| reward.log_reward(states, None))?;
        Reals::from_flat(self.rewards.len(), logs.into_iter().flatten().map(f64::exp).collect())
    }

    /// Returns the log-rewards log R_i(x) of each state x, one row per state. `ask` evaluates one of the
    /// rewards on all states.
    fn logs(&self, states: &S, ask: impl Fn(&SharedReward<S>) -> Result<Vec<f64>>) -> Result<Vec<Vec<f64>>> {
        let mut out = vec![Vec::with_capacity(self.rewards.len()); states.len()];
        for reward in &self.rewards {
            let logs = check_length(ask(reward)?, states.len())?;
            for (row, log) in out.iter_mut().zip(logs) {
                row.push(log);
            }
        }
        Ok(out)
    }

    fn combine(&self, logs: &[Vec<f64>], conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        let n = logs.len();
        let Some(conditions) = conditions else {
            return Err(Error::missing(
                "a conditioned reward",
                "condition vectors",
                "sample with conditions (`Trainer::with_conditions`), or give a vector for each object",
            ));
        };
        let conditions = self.conditioning.decode(conditions)?;
        if conditions.len() != n {
            return Err(Error::shape(
                "condition vectors",
                [n as i64, self.conditioning.width() as i64],
                [conditions.len() as i64, self.conditioning.width() as i64],
                "give one row per object",
            ));
        }
        Ok(logs.iter().zip(&conditions).map(|(logs, condition)| self.combine_one(logs, condition)).collect())
    }

    fn combine_one(&self, logs: &[f64], condition: &Condition) -> f64 {
        // An invalid log-reward is returned unchanged, even outside of a cone or if beta is 0. The caller
        // checks all log-rewards, and reports the invalid one.
        if let Some(&bad) = logs.iter().find(|log| log.is_nan() || **log == f64::INFINITY) {
            return bad;
        }
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut log = log_weighted_sum(logs, &condition.preferences);
        if let (Some(focus), Some(direction)) = (self.conditioning.cone(), &condition.focus) {
            // The cosine doesn't depend on the length of the vector, so the objectives are divided by the
            // largest objective to avoid overflow. The cosine is undefined if all rewards are 0.
            let objectives: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
            match cosine_of(&objectives, direction).and_then(|cosine| focus.log_factor(cosine)) {
                Some(factor) => log += factor,
                None => return focus.outside,
            }
        }
        // A reward to the power 0 is 1, even if the reward is 0.
        if condition.beta == 0.0 { 0.0 } else { condition.beta * log }
    }
}

impl<S: Rows> Reward<S> for ConditionedReward<S> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        let logs = self.logs(states, |reward| reward.log_reward(states, None))?;
        self.combine(&logs, conditions)
    }

    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        let mut columns = Vec::new();
        for reward in &self.rewards {
            let Some(logs) = reward.partial_log_reward(states, None)? else { return Ok(None) };
            columns.push(check_length(logs, states.len())?);
        }
        let logs: Vec<Vec<f64>> =
            (0..states.len()).map(|i| columns.iter().map(|logs| logs[i]).collect()).collect();
        self.combine(&logs, conditions).map(Some)
    }
}

/// Computes `log sum_i w_i exp(log_i)`. The result is minus infinity if all rewards with a positive weight
/// are 0.
fn log_weighted_sum(logs: &[f64], weights: &[f64]) -> f64 {
    let terms =
        logs.iter().zip(weights).filter(|(_, weight)| **weight > 0.0).map(|(log, weight)| log + weight.ln());
    // A log-reward of NaN makes the result NaN. The caller checks all log-rewards, and reports it.
    log_sum_exp(terms)
}

fn check_length(logs: Vec<f64>, n: usize) -> Result<Vec<f64>> {
    if logs.len() == n {
        Ok(logs)
    } else {
        Err(Error::shape(
            "the log-rewards of a reward under conditions",
            [n as i64],
            [logs.len() as i64],
            "let the reward return one log-reward per state",
        ))
    }
}
