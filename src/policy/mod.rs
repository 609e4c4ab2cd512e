//! Policies: objects that compute P_F, P_B and other estimates, such as the state flow, for a batch of
//! states.
//!
//! | policy | environments | estimators |
//! |---|---|---|
//! | [`GraphPolicy`] | graph environments | a graph network with a head per action type |
//! | [`MlpPolicy`] | a fixed number of actions | a perceptron on [`StateFeatures`] and conditions |
//! | [`MlpPolicy::stacked`] | the same | perceptrons of several seeds, trained together |
//! | [`MlpPolicy::with_torso`] | the same | a custom network, with heads |
//! | [`MlpPolicy::tabular`] | the same, if states can be numbered | a row of logits per state |
//! | [`SequencePolicy`] | sequences written from left to right | LSTM, GRU or causal transformer |
//! | [`UniformPolicy`] | any discrete environment | equal probabilities, no parameters |
//! | [`WithPrior`] | any of them | a policy together with a frozen prior |
//!
//! State features: [`ScaledEntries`] (the entries), [`KHot`] (one-hot of each entry), [`ByNumber`] and
//! [`ByIndex`] (one-hot of the state), [`Enumeration`] (the number of the state).

mod dense;
mod estimators;
mod features;
mod graph;
mod heads;
mod prior;
mod sequence;
mod tabular;
mod torso;
mod uniform;
mod vectors;

pub use dense::{MlpPolicy, MlpPolicyConfig};
pub use features::{Features, KHot, ScaledEntries, StateFeatures, TensorFeatures};
pub use graph::GraphPolicy;
pub use heads::MultiHead;
pub use prior::WithPrior;
pub use sequence::{SequenceLayout, SequencePolicy, SequencePolicyConfig, SequenceWork};
pub use tabular::{ByIndex, ByNumber, Enumeration};
pub use torso::VectorTorso;
pub use uniform::UniformPolicy;

use std::any::Any;

use serde_json::Value;
use tch::Tensor;

pub use crate::env::HostPolicy;
use crate::env::{Direction, Env, TensorForm};
use crate::nn::Parameters;
use crate::quantity::{Quantities, Quantity, Values};
use crate::{Error, Result};

/// The result of [`Policy::evaluate`] for a batch of states. A requested quantity is missing if the policy
/// can't compute it.
///
/// ```
/// use gfn::objective::Quantity;
/// use gfn::policy::Evaluation;
/// // A custom quantity of two states, which an objective can request by its name.
/// let surprise = tch::Tensor::from_slice(&[0.5, 2.0]);
/// let evaluation =
///     Evaluation::<()>::default().with(Quantity::Custom("the surprise of each state"), surprise);
/// assert!(evaluation.pf.is_none() && evaluation.values.get(Quantity::LogFlow).is_none());
/// ```
#[derive(Debug)]
pub struct Evaluation<D> {
    /// P_F of each state; `None` if it wasn't requested or the policy can't compute it.
    pub pf: Option<D>,
    /// P_B of each state; `None` if it wasn't requested or the policy can't compute it. Initial states have
    /// no backward actions.
    pub pb: Option<D>,
    /// P_F of the frozen prior; `None` if it wasn't requested or the policy has no prior ([`WithPrior`]).
    pub prior: Option<D>,
    /// Further estimates for each state, `[states]` each: log F ([`Quantity::LogFlow`]), the log of the
    /// number of paths to the state ([`LogPaths`](crate::quantity::Quantity::LogPaths)), and [custom
    /// quantities](crate::quantity::Quantity::Custom).
    pub values: Values,
}

impl<D> Default for Evaluation<D> {
    fn default() -> Self {
        Self { pf: None, pb: None, prior: None, values: Values::default() }
    }
}

impl<D> Evaluation<D> {
    /// Creates an evaluation with P_F and P_B, each only if `wants` contains it. `dist` builds the
    /// distribution of a direction.
    pub fn from_directions(wants: Quantities, dist: impl Fn(Direction) -> D) -> Self {
        let build = |quantity, direction| wants.has(quantity).then(|| dist(direction));
        let pf = build(Quantity::LogPf, Direction::Forward);
        let pb = build(Quantity::LogPb, Direction::Backward);
        Self { pf, pb, ..Self::default() }
    }

    /// Adds a quantity with one number per state, `[states]`. `None` adds nothing.
    #[must_use]
    pub fn with(mut self, quantity: Quantity, values: impl Into<Option<Tensor>>) -> Self {
        if let Some(values) = values.into() {
            self.values.insert(quantity, values);
        }
        self
    }
}

/// The estimators of a GFlowNet (P_F, P_B, log F, log Z) in one object, so that a state is encoded once and
/// estimators can share a torso.
///
/// The result for a state must depend neither on the other states of the batch nor on chance. A trainer
/// therefore refuses batch normalisation in training mode, and dropout. A policy on graphs up to isomorphism
/// must be equivariant: relabelling a graph permutes the probabilities of its slots and doesn't change them
/// otherwise.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a policy of `{E}`",
    note = "policies of graph environments are `GraphPolicy` of a network; those of vectors are `MlpPolicy`, \
        `SequencePolicy` and others"
)]
pub trait Policy<E: Env> {
    /// Evaluates each state once and returns the quantities in `wants`. `conditions` has one row per state,
    /// `[states, C]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the output of a network doesn't have the shape that the states require.
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<E::Dist>>;

    /// Returns a copy of the policy for a roll-out without conditions; `None` (the default) if the policy has
    /// no such copy. The copy gives the same distributions as [`evaluate`](Self::evaluate) up to rounding. It
    /// is faster for the small batches of a roll-out's steps, at least if the parameters are on the CPU;
    /// [`RolloutPlace`](crate::rollout::RolloutPlace) chooses between both.
    fn on_host(&self, _direction: Direction) -> Option<Box<dyn HostPolicy<E> + '_>> {
        None
    }

    /// Returns the form of the policy that takes states of this [`TensorForm`]; `None` (the default) if the
    /// policy takes only states on the host.
    fn on_tensors(&self, _form: &TensorForm<E::States>) -> Option<&dyn TensorPolicy<E>> {
        None
    }

    /// Returns the policy's estimate of log Z for each of `_n` trajectories, `[n]`; `None` (the default) if
    /// the policy doesn't estimate log Z. `_conditions` has one row per trajectory, `[n, C]`.
    fn log_z(&self, _conditions: Option<&Tensor>, _n: usize) -> Option<Tensor> {
        None
    }

    /// Returns the trained parameters; `None` (the default) for a policy without parameters.
    fn parameters(&self) -> Option<&Parameters> {
        None
    }

    /// Returns the settings of the policy, from which [`gfn::load`](crate::load) builds it again; null (the
    /// default) for a custom policy, which can't be built from a file. The settings of a
    /// [`WithPrior`] are those of its policy: the prior isn't stored, so the loaded policy has none.
    fn settings(&self) -> Value {
        Value::Null
    }

    /// Returns an object that switches between the heads of P_F (`Thompson` in the package `gfn-extras`);
    /// `None` (the default) if the policy can't switch. A policy that wraps another policy returns the heads
    /// of the wrapped policy.
    fn heads(&self) -> Option<&dyn MultiHead> {
        None
    }
}

/// A policy that takes states as a tensor on the device of its parameters ([`TensorForm`]).
pub trait TensorPolicy<E: Env> {
    /// Evaluates each state once, as [`Policy::evaluate`] does for states on the host. `states` is `[states,
    /// width]` (i64). `conditions` has one row per state.
    ///
    /// # Errors
    /// The errors of [`Policy::evaluate`].
    fn evaluate_tensors(
        &self,
        form: &TensorForm<E::States>,
        states: &Tensor,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<E::Dist>>;
}

/// Returns P_F or P_B of each state, depending on `direction`. `needed_by` names the caller in the error.
///
/// # Errors
/// The errors of the policy; [`Error::Missing`] if the policy has no distribution in this direction.
pub(crate) fn evaluate_direction<E: Env>(
    policy: &dyn Policy<E>,
    env: &E,
    states: &E::States,
    conditions: Option<&Tensor>,
    direction: Direction,
    needed_by: &'static str,
) -> Result<E::Dist> {
    let evaluate = |wants| policy.evaluate(env, states, conditions, wants);
    let (dist, missing) = match direction {
        Direction::Forward => (evaluate(Quantities::PF)?.pf, "a forward policy"),
        Direction::Backward => (evaluate(Quantities::PB)?.pb, "a backward policy"),
    };
    dist.ok_or(Error::missing(needed_by, missing, "use a policy that has it, such as `UniformPolicy`"))
}

/// A policy owned by a trainer. [`Any`] allows a downcast to its concrete type.
pub(crate) trait OwnedPolicy<E: Env>: Policy<E> + Any {}

impl<E: Env, P: Policy<E> + 'static> OwnedPolicy<E> for P {}

/// A policy whose type is chosen at run time, as `Box<dyn Policy<E> + Send>`.
impl<E: Env, P: Policy<E> + ?Sized> Policy<E> for Box<P> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<E::Dist>> {
        (**self).evaluate(env, states, conditions, wants)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<E> + '_>> {
        (**self).on_host(direction)
    }

    fn on_tensors(&self, form: &TensorForm<E::States>) -> Option<&dyn TensorPolicy<E>> {
        (**self).on_tensors(form)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        (**self).log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        (**self).parameters()
    }

    fn settings(&self) -> Value {
        (**self).settings()
    }

    fn heads(&self) -> Option<&dyn MultiHead> {
        (**self).heads()
    }
}
