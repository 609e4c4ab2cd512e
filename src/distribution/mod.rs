//! Distributions over the actions of a batch of states.

mod behaviour;
mod blocks;
mod categorical;
mod exploration;
mod logits;
mod rounding;

pub use categorical::GraphActionCategorical;
pub use exploration::Exploration;
pub(crate) use rounding::{check_alone, equal_up_to_rounding, logit_size};

use tch::Tensor;

use crate::rows::Rows;
use crate::{Result, Rng};

/// A distribution over actions for each state of a batch.
///
/// Several actions may be drawn from, or scored under, one state: `rows[i]` is the state of action `i`. A
/// state that occurs many times is thus evaluated once.
pub trait Distribution {
    /// A batch of actions.
    type Actions: Rows;

    /// Whether a share of actions can be drawn uniformly instead ([`Exploration::epsilon`]). A trainer does
    /// so by default.
    const MIXES_WITH_UNIFORM: bool = true;

    /// Draws one action for each entry of `rows`, with exploration.
    ///
    /// # Errors
    /// [`Error::NoLegalAction`](crate::Error::NoLegalAction) for a state without an action to draw;
    /// [`Error::NonFinite`](crate::Error::NonFinite) for parameters that are NaN or infinite;
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for a row beyond the last state.
    fn sample(&self, rows: &[usize], exploration: &Exploration, rng: &mut Rng) -> Result<Self::Actions>;

    /// The log-probability (density) of one action for each entry of `rows`, `[rows.len()]`, with gradient
    /// and without exploration.
    ///
    /// # Errors
    /// [`Error::IllegalAction`](crate::Error::IllegalAction), for continuous actions
    /// [`Error::IllegalStep`](crate::Error::IllegalStep), outside the support;
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for a row beyond the last state.
    fn log_prob(&self, rows: &[usize], actions: &Self::Actions) -> Result<Tensor>;

    /// The unnormalised log-weight (logit) of one action for each entry of `rows`, `[rows.len()]`, with
    /// gradient: a log edge flow under flow matching.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) for a distribution without logits (the default);
    /// [`Error::IllegalAction`](crate::Error::IllegalAction) for an action outside the support.
    fn log_weights(&self, _rows: &[usize], _actions: &Self::Actions) -> Result<Tensor> {
        Err(no_logits())
    }

    /// The log of the sum of each state's weights, `[states]`, with gradient: log-weights minus it are
    /// log-probabilities.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) for a distribution without logits (the default).
    fn log_total(&self) -> Result<Tensor> {
        Err(no_logits())
    }

    /// The entropy of each state's distribution in nats, `[states]`, with gradient; `None` (the default)
    /// where it isn't known in closed form.
    fn entropies(&self) -> Option<Tensor> {
        None
    }

    /// All possible actions of each of `rows`: offsets `[rows.len() + 1]`, and the actions.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) if they can't be listed (the default).
    fn support(&self, _rows: &[usize]) -> Result<(Vec<usize>, Self::Actions)> {
        Err(no_logits())
    }
}

fn no_logits() -> crate::Error {
    crate::Error::missing(
        "flow matching",
        "a finite number of actions, each with a logit",
        "use it with a discrete environment, or choose another objective",
    )
}
