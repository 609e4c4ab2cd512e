//! Rewards. They are apart from environments: a reward may hold a network and may fail, an environment holds no tensor.

mod cached;

pub use cached::Cached;
use tch::Tensor;

use super::Rows;
use crate::{Error, Result};

/// The log-reward of finished objects.
///
/// A closure `Fn(&States, Option<&Tensor>) -> Result<Vec<f64>>` is a reward; the second argument holds the conditions
/// `[n, C]` of the trajectories, if there are any. A network's output is moved to the host once.
///
/// R is that of the object. Symmetry, and how many states the object has, are the environment's business
/// ([`Symmetry::log_symmetry`](super::Symmetry::log_symmetry), [`Symmetry::log_multiplicity`](super::Symmetry::log_multiplicity)).
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
    note = "a reward is a closure `|states: &States, conditions: Option<&Tensor>| -> Result<Vec<f64>>` or implements `Reward`"
)]
pub trait Reward<S>: Send {
    /// log R of each state (natural logarithm); minus infinity means that R is zero.
    ///
    /// # Errors
    /// Whatever keeps it from giving a number for each state.
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>>;

    /// log R of states that aren't finished, for forward-looking objectives (Pan et al. 2023); `None` (the default) where the
    /// reward says nothing of them.
    ///
    /// For a finished object it is [`log_reward`](Self::log_reward), or a part of it: the state flows learn the rest.
    ///
    /// # Errors
    /// Whatever keeps it from giving a number for each state.
    fn partial_log_reward(&self, _states: &S, _conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// log R(s') - log R(s) for states s and the states s' that steps lead to, none of them finished; `None` where the reward says
    /// nothing of states that aren't.
    ///
    /// The default asks for both log-rewards. Override it where the change costs less than the two (the delta score of a graph's one
    /// new edge, say).
    ///
    /// # Errors
    /// Whatever keeps it from giving a number for each pair.
    fn log_reward_change(&self, before: &S, after: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        let both = self.partial_log_reward(before, conditions)?.zip(self.partial_log_reward(after, conditions)?);
        Ok(both.map(|(before, after)| after.iter().zip(before).map(|(after, before)| after - before).collect()))
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
    fn log_reward_change(&self, before: &S, after: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.as_ref().log_reward_change(before, after, conditions)
    }
}

/// A reward raised to a floor, log R >= `log_min`. A reward of zero has no finite log, and so no finite residual in a balance
/// objective. The floor changes the target: states below it are sampled as if they were on it.
///
/// ```
/// use gfn::env::{Clipped, Reward, Slots};
/// let zero = |states: &Slots, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![f64::NEG_INFINITY; states.0.len()]) };
/// assert_eq!(Clipped::new(zero, -20.0)?.log_reward(&Slots(vec![1]), None)?, [-20.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clipped<R> {
    reward: R,
    log_min: f64,
}

impl<R> Clipped<R> {
    /// A reward of at least `exp(log_min)`.
    ///
    /// # Errors
    /// [`Error::Config`] unless `log_min` is finite.
    pub fn new(reward: R, log_min: f64) -> Result<Self> {
        if log_min.is_finite() {
            Ok(Self { reward, log_min })
        } else {
            Err(Error::config("log_min", log_min, "a finite log-reward"))
        }
    }

    fn raise(&self, values: Vec<f64>) -> Vec<f64> {
        // NaN stays NaN, to be found by the checks.
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

/// Asks a reward and checks what it says: one number per state, none of them NaN or +infinity.
///
/// # Errors
/// Those of the reward; [`Error::Shape`] for a wrong number of values; [`Error::NonFinite`] for NaN, +infinity, and
/// (a balance objective can't be met at R = 0) minus infinity.
pub fn log_rewards<S: Rows>(reward: &dyn Reward<S>, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
    let values = reward.log_reward(states, conditions)?;
    check_log_rewards(&values, states.len())?;
    Ok(values)
}

/// Checks what a reward said of `n` states.
pub(crate) fn check_log_rewards(values: &[f64], n: usize) -> Result<()> {
    check_count(values, n)?;
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(row) => Err(Error::non_finite(
            "log-reward",
            row,
            values[row],
            "give every finished object a finite log-reward, or raise it to a floor (`Clipped`)",
        )),
    }
}

/// Checks that a reward gave a number for each of `n` states.
pub(crate) fn check_count(values: &[f64], n: usize) -> Result<()> {
    if values.len() == n {
        return Ok(());
    }
    let remedy = "a reward gives one log-reward per state";
    Err(Error::shape("the reward's answer", [n as i64], [values.len() as i64], remedy))
}
