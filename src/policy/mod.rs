//! Policies: from states to P_F, P_B and the state flow, as far as the caller wants them.
//!
//! | policy | for | what it is |
//! |---|---|---|
//! | [`GraphPolicy`] | graph environments | a graph network with a head per action type |
//! | [`MlpPolicy`] | one block of actions per state | a perceptron on [`StateFeatures`], with conditions if wanted |
//! | [`MlpPolicy::with_torso`] | the same | a network of your own, with heads |
//! | [`MlpPolicy::tabular`] | the same, where states can be numbered | a row of logits per state |
//! | [`SequencePolicy`] | sequences written from left to right | LSTM, GRU or causal transformer |
//! | [`UniformPolicy`] | any discrete environment | no parameters |
//! | [`WithPrior`] | any of them | a policy together with a frozen prior |
//!
//! State features: [`Scaled`] (the entries), [`KHot`] (one-hot of each entry), [`ByNumber`] and [`ByIndex`]
//! (one-hot of the state), [`Enumeration`] (the number of the state).

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
pub use features::{Features, KHot, Scaled, StateFeatures};
pub use graph::GraphPolicy;
pub use heads::MultiHead;
pub use prior::WithPrior;
pub use sequence::{SequenceLayout, SequencePolicy, SequencePolicyConfig, SequenceWork};
pub use tabular::{ByIndex, ByNumber, Enumeration};
pub use torso::VectorTorso;
pub use uniform::UniformPolicy;

use std::any::Any;

use tch::Tensor;

use crate::Result;
pub use crate::env::HostPolicy;
use crate::env::{Direction, Env};
use crate::nn::Parameters;
use crate::quantity::{Quantities, Quantity, Values};

/// The answer of a policy for a batch of states: what was wanted is there, or the policy has no such thing.
///
/// ```
/// use gfn::policy::Evaluation;
/// use gfn::objective::Quantity;
/// // Two states: what any objective may ask for by this name.
/// let surprise = tch::Tensor::from_slice(&[0.5, 2.0]);
/// let evaluation = Evaluation::<()>::default().with(Quantity::Own("the surprise of each state"), surprise);
/// assert!(evaluation.pf.is_none() && evaluation.values.get(Quantity::LogFlow).is_none());
/// ```
#[derive(Debug)]
pub struct Evaluation<D> {
    /// P_F of each state.
    pub pf: Option<D>,
    /// P_B of each state; the initial state has none.
    pub pb: Option<D>,
    /// A frozen forward policy that this one is relative to ([`WithPrior`]).
    pub prior: Option<D>,
    /// Its estimates of each state, `[states]` each: log F ([`Quantity::LogFlow`]), log n
    /// ([`LogPaths`](crate::quantity::Quantity::LogPaths)), quantities of its
    /// [own](crate::quantity::Quantity::Own).
    pub values: Values,
}

impl<D> Default for Evaluation<D> {
    fn default() -> Self {
        Self { pf: None, pb: None, prior: None, values: Values::default() }
    }
}

impl<D> Evaluation<D> {
    /// The distributions that are wanted, by their direction, and nothing else.
    pub fn of_directions(wants: Quantities, dist: impl Fn(Direction) -> D) -> Self {
        let wanted = |quantity, direction| wants.has(quantity).then(|| dist(direction));
        let (pf, pb) = (wanted(Quantity::LogPf, Direction::Forward), wanted(Quantity::LogPb, Direction::Backward));
        Self { pf, pb, ..Self::default() }
    }

    /// The same with a quantity of each state, `[states]`, if there is a tensor for it.
    #[must_use]
    pub fn with(mut self, quantity: Quantity, of_states: impl Into<Option<Tensor>>) -> Self {
        if let Some(of_states) = of_states.into() {
            self.values.insert(quantity, of_states);
        }
        self
    }
}

/// The estimators of a GFlowNet in one object, so that a state is encoded once and torsos can be shared.
///
/// A policy never depends on a state's batch mates, nor on chance: a trainer refuses batch normalisation in
/// training mode, and dropout. For graphs up to isomorphism it is equivariant: relabelling a graph permutes
/// its slots and changes no probability.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a policy of `{E}`",
    note = "policies of graph environments are `GraphPolicy` of a network; those of vectors are `MlpPolicy`, `SequencePolicy` and others"
)]
pub trait Policy<E: Env> {
    /// Evaluates each state once. `conditions` has a row per state, `[states, C]`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if a network's output doesn't fit the states.
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<E::Dist>>;

    /// A copy of the policy for a roll-out without conditions, which is faster than
    /// [`evaluate`](Self::evaluate) for the few states of a step and gives the same distributions up to
    /// rounding. `None` (the default) if there is no such form.
    fn on_host(&self, _direction: Direction) -> Option<Box<dyn HostPolicy<E> + '_>> {
        None
    }

    /// log Z for each of `n` trajectories, `[n]`; `conditions` is `[n, C]`. `None` without an estimator for
    /// it.
    fn log_z(&self, _conditions: Option<&Tensor>, _n: usize) -> Option<Tensor> {
        None
    }

    /// The trained parameters; `None` for a policy without any.
    fn parameters(&self) -> Option<&Parameters> {
        None
    }

    /// The heads of P_F, to switch between them (`Thompson` in the package `gfn-extras`); `None` (the
    /// default) if the policy can't switch. A policy that wraps another one forwards it.
    fn heads(&self) -> Option<&dyn MultiHead> {
        None
    }
}

/// A policy that a trainer owns; [`Any`] gives its concrete type back.
pub(crate) trait OwnedPolicy<E: Env>: Policy<E> + Any {}

impl<E: Env, P: Policy<E> + 'static> OwnedPolicy<E> for P {}

/// A policy chosen at run time: `Box<dyn Policy<E> + Send>`.
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

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        (**self).log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        (**self).parameters()
    }

    fn heads(&self) -> Option<&dyn MultiHead> {
        (**self).heads()
    }
}

impl<E: Env, P: Policy<E> + ?Sized> Policy<E> for &P {
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

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        (**self).log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        (**self).parameters()
    }

    fn heads(&self) -> Option<&dyn MultiHead> {
        (**self).heads()
    }
}
