//! Rewards. A reward is separate from the environment, because a reward may hold a network and may fail,
//! while an environment holds no tensor.

mod cached_reward;
mod per_vector;

pub use cached_reward::CachedReward;
pub use per_vector::PerVector;
use tch::Tensor;

use super::{Rows, TensorReward};
use crate::error::{check_len, check_setting};
use crate::{Error, Result};

/// The reward of objects, as a function that returns log R.
///
/// A closure `Fn(&States, Option<&Tensor>) -> Result<Vec<f64>>` is a reward. Its second argument holds the
/// conditions `[n, C]` of the trajectories; it is `None` without conditions. Log-rewards are numbers on the
/// host, so a reward that runs a network copies its output to the host once per batch.
///
/// A reward returns R of the object, without any correction. Training corrects R for symmetry and for the
/// number of states of an object, as the environment specifies
/// ([`Symmetry::log_symmetry`](super::Symmetry::log_symmetry),
/// [`Symmetry::log_multiplicity`](super::Symmetry::log_multiplicity)).
///
/// ```
/// use gfn::{env::{Reward, Slots}, Result};
/// let reward = |states: &Slots, _: Option<&tch::Tensor>| -> Result<Vec<f64>> {
///     Ok(states.0.iter().map(|&s| f64::from(s)).collect())
/// };
/// assert_eq!(reward.log_reward(&Slots(vec![3]), None)?, [3.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reward of `{S}`",
    note = "a function of one object becomes a reward by `PerGraph(|graph: &GraphState| ..)` or \
        `PerVector(|row: &[u16]| ..)`, whose closure returns `f64`",
    note = "pass the reward by value, not by reference",
    note = "a function of a batch is a closure with all types written out, `|states: &GraphStates, \
        conditions: Option<&Tensor>| -> gfn::Result<Vec<f64>>`; any other type implements `Reward`"
)]
pub trait Reward<S>: Send {
    /// Returns log R of each state (natural logarithm). Minus infinity means that R is 0.
    ///
    /// # Errors
    /// Any error that prevents computing a number for each state.
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>>;

    /// Returns log R of states that aren't finished, for forward-looking objectives (Pan et al. 2023); `None`
    /// (the default) if the reward isn't defined for them.
    ///
    /// For a finished object the result is [`log_reward`](Self::log_reward), or a part of that reward. The
    /// state flows learn the remaining part.
    ///
    /// # Errors
    /// Any error that prevents computing a number for each state.
    fn partial_log_reward(&self, _states: &S, _conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// Returns log R(s') - log R(s) for states s and their children s', none of which is finished; `None` if
    /// the reward isn't defined for such states.
    ///
    /// The default computes both log-rewards. Override this method if the change can be computed in less time
    /// (for example the delta score of one new edge).
    ///
    /// # Errors
    /// Any error that prevents computing a number for each pair.
    fn log_reward_change(
        &self,
        before: &S,
        after: &S,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        let both =
            self.partial_log_reward(before, conditions)?.zip(self.partial_log_reward(after, conditions)?);
        Ok(both
            .map(|(before, after)| after.iter().zip(before).map(|(after, before)| after - before).collect()))
    }

    /// Returns the form of the reward that takes states as a tensor, for states that are on a device; `None`
    /// (the default) if there is no such form. Both forms give the same log R up to rounding.
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        None
    }
}

impl<S, F: Fn(&S, Option<&Tensor>) -> Result<Vec<f64>> + Send> Reward<S> for F {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self(states, conditions)
    }
}

impl<S> Reward<S> for Box<dyn Reward<S>> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.as_ref().log_reward(states, conditions)
    }
    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.as_ref().partial_log_reward(states, conditions)
    }
    fn log_reward_change(
        &self,
        before: &S,
        after: &S,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.as_ref().log_reward_change(before, after, conditions)
    }
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        self.as_ref().on_tensors()
    }
}

/// A reward whose log R is raised to at least `log_min`. Without such a floor a reward of 0 has the logarithm
/// minus infinity, so a balance objective has no finite residual. The floor changes the target: states whose
/// log R is smaller are sampled as if their log R were `log_min`.
///
/// ```
/// use gfn::env::{Clipped, Reward, Slots};
/// let zero = |states: &Slots, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     Ok(vec![f64::NEG_INFINITY; states.0.len()])
/// };
/// assert_eq!(Clipped::new(zero, -20.0)?.log_reward(&Slots(vec![1]), None)?, [-20.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clipped<R> {
    reward: R,
    log_min: f64,
}

impl<R> Clipped<R> {
    /// Returns a reward that is at least `exp(log_min)`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless `log_min` is finite.
    pub fn new(reward: R, log_min: f64) -> Result<Self> {
        Ok(Self {
            reward,
            log_min: check_setting("log_min", log_min, log_min.is_finite(), "a finite log-reward")?,
        })
    }

    fn raise(&self, values: Vec<f64>) -> Vec<f64> {
        // NaN stays NaN, so that later checks find it.
        values.into_iter().map(|value| if value < self.log_min { self.log_min } else { value }).collect()
    }
}

impl<S, R: Reward<S>> Reward<S> for Clipped<R> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(self.raise(self.reward.log_reward(states, conditions)?))
    }
    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        Ok(self.reward.partial_log_reward(states, conditions)?.map(|values| self.raise(values)))
    }
}

/// Computes log R of each state and checks that there is one number per state, and no NaN or +infinity.
///
/// # Errors
/// The errors of the reward; [`Error::Shape`](crate::Error::Shape) for a wrong number of values;
/// [`Error::NonFinite`](crate::Error::NonFinite) for NaN and infinities. Minus infinity is refused, because
/// no policy satisfies a balance objective if R = 0.
pub fn log_rewards<S: Rows>(
    reward: &dyn Reward<S>,
    states: &S,
    conditions: Option<&Tensor>,
) -> Result<Vec<f64>> {
    let values = reward.log_reward(states, conditions)?;
    check_log_rewards(&values, states)?;
    Ok(values)
}

/// Checks that these are finite log-rewards of these states. The error describes the state.
pub(crate) fn check_log_rewards<S: Rows>(values: &[f64], states: &S) -> Result<()> {
    check_count(values, states.len())?;
    let Some(row) = values.iter().position(|value| !value.is_finite()) else { return Ok(()) };
    let remedy = "give every finished object a finite log-reward, or raise it to a floor (`Clipped`)";
    let object = states.describe(row);
    Err(Error::NonFinite { what: "log-reward", row, object, value: values[row], remedy })
}

/// Checks that there is a log-reward for each of `n` states.
pub(crate) fn check_count(values: &[f64], n: usize) -> Result<()> {
    check_len(
        "the list that the reward returned",
        n,
        values.len(),
        "let the reward return one log-reward per state",
    )
}
