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
/// Methods take a list `rows`: `rows[i]` is the index of the state of action `i`. Several actions may belong
/// to one state, so a policy evaluates a state once even if it occurs many times.
pub trait Distribution {
    /// A batch of actions.
    type Actions: Rows;

    /// True if a share of actions can be drawn uniformly instead ([`Exploration::epsilon`]), as a trainer
    /// does by default. Defaults to `true`.
    const MIXES_WITH_UNIFORM: bool = true;

    /// Draws one action for each entry of `rows`, from the distribution changed by `exploration`.
    ///
    /// # Errors
    /// [`Error::NoLegalAction`](crate::Error::NoLegalAction) for a state without an action to draw;
    /// [`Error::NonFinite`](crate::Error::NonFinite) for parameters that are NaN or infinite;
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for a row beyond the last state.
    fn sample(&self, rows: &[usize], exploration: &Exploration, rng: &mut Rng) -> Result<Self::Actions>;

    /// Returns the log-probability (or log-density) of one action for each entry of `rows`, `[rows.len()]`,
    /// with gradient and without exploration.
    ///
    /// # Errors
    /// [`Error::IllegalAction`](crate::Error::IllegalAction) for a discrete action outside the support;
    /// [`Error::IllegalStep`](crate::Error::IllegalStep) for a continuous one;
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for a row beyond the last state.
    fn log_prob(&self, rows: &[usize], actions: &Self::Actions) -> Result<Tensor>;

    /// Returns the unnormalised log-weight (logit) of one action for each entry of `rows`, `[rows.len()]`,
    /// with gradient. Under flow matching it is the log edge flow.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) for a distribution without logits (the default);
    /// [`Error::IllegalAction`](crate::Error::IllegalAction) for an action outside the support.
    fn log_weights(&self, _rows: &[usize], _actions: &Self::Actions) -> Result<Tensor> {
        Err(no_logits())
    }

    /// Returns the log of the sum of each state's weights, `[states]`, with gradient. A log-weight minus this
    /// number is a log-probability.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) for a distribution without logits (the default).
    fn log_total(&self) -> Result<Tensor> {
        Err(no_logits())
    }

    /// Returns the entropy of each state's distribution in nats, `[states]`, with gradient; `None` (the
    /// default) if it has no closed form.
    fn entropies(&self) -> Option<Tensor> {
        None
    }

    /// Returns all possible actions of each entry of `rows`, as offsets `[rows.len() + 1]` and the
    /// concatenated actions.
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
