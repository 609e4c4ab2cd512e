//! Distributions over the actions of a batch of states.

mod behaviour;
mod blocks;
mod categorical;
mod exploration;
mod logits;
mod rounding;
mod tensor_masks;

pub use categorical::GraphActionCategorical;
pub use exploration::Exploration;
pub(crate) use rounding::{check_alone, equal_up_to_rounding, logit_size};
pub(crate) use tensor_masks::{NO_LEGAL_ACTION, NOT_FINITE};

use tch::Tensor;

use crate::rows::Rows;
use crate::{Result, Rng};

/// A distribution over actions for each state of a batch.
///
/// Methods take a list `rows`: `rows[i]` is the index of the state to which action `i` belongs. Several
/// actions may belong to the same state, so a policy evaluates a state once even if the state occurs many
/// times.
pub trait Distribution {
    /// The type of a batch of actions.
    type Actions: Rows;

    /// `true` (the default) if exploration can sample a share of the actions from a uniform distribution
    /// ([`Exploration::epsilon`]). If this constant is `true`, a trainer explores in this way by default.
    const MIXES_WITH_UNIFORM: bool = true;

    /// Samples one action for each entry of `rows`, from the distribution changed by `exploration`.
    ///
    /// # Errors
    /// [`Error::NoLegalAction`](crate::Error::NoLegalAction) for a state without an action to draw;
    /// [`Error::NonFinite`](crate::Error::NonFinite) for parameters that are NaN or infinite;
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for an entry of `rows` that isn't a state's index.
    fn sample(&self, rows: &[usize], exploration: &Exploration, rng: &mut Rng) -> Result<Self::Actions>;

    /// Returns the log-probability (or log-density) of one action for each entry of `rows`, `[rows.len()]`,
    /// with gradient and without exploration.
    ///
    /// # Errors
    /// [`Error::IllegalAction`](crate::Error::IllegalAction) for a discrete action outside the support;
    /// [`Error::IllegalStep`](crate::Error::IllegalStep) for a continuous action outside the support;
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for an entry of `rows` that isn't a state's index.
    fn log_prob(&self, rows: &[usize], actions: &Self::Actions) -> Result<Tensor>;

    /// Samples one slot of each state on the device of the distribution, `[states]` (i64). `draws` has a
    /// uniform random number in `[0, 1)` for each state, `[states]` (f64), on the same device. The second
    /// result, `[states]` (i64), is 0 for each state with a valid slot, 1 for a state without a legal slot,
    /// and 2 for a state with a logit that isn't finite.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) for a distribution that isn't on a device (the default).
    fn sample_tensor(&self, _exploration: &Exploration, _draws: &Tensor) -> Result<(Tensor, Tensor)> {
        let remedy = "sample by `Distribution::sample`";
        Err(crate::Error::missing("sampling on a device", "a distribution over slots", remedy))
    }

    /// Returns slots as actions; `None` (the default) if actions aren't slots.
    fn slots_as_actions(_slots: Vec<u32>) -> Option<Self::Actions> {
        None
    }

    /// Returns the unnormalised log-weight (logit) of one action for each entry of `rows`, `[rows.len()]`,
    /// with gradient. In flow matching the log-weight is the log of the flow through the transition.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) for a distribution without logits (the default);
    /// [`Error::IllegalAction`](crate::Error::IllegalAction) for an action outside the support.
    fn log_weights(&self, _rows: &[usize], _actions: &Self::Actions) -> Result<Tensor> {
        Err(no_logits())
    }

    /// Returns the log of the sum of the weights of all actions of each state, `[states]`, with gradient. The
    /// log-weight of an action minus the result for its state is the log-probability of the action.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) for a distribution without logits (the default).
    fn log_total(&self) -> Result<Tensor> {
        Err(no_logits())
    }

    /// Returns the entropy of the distribution of each state in nats, `[states]`, with gradient; `None` (the
    /// default) if the entropy has no closed form.
    fn entropies(&self) -> Option<Tensor> {
        None
    }

    /// Returns all possible actions of the state of each entry of `rows`, as a pair (offsets, actions). The
    /// actions of entry `i` are the rows `offsets[i]..offsets[i + 1]` of the actions. The offsets are
    /// `[rows.len() + 1]`.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) if the actions can't be listed (the default).
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
