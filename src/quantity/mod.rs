//! The quantities that an objective may need, sets of quantities, and tensors by quantity; exported by
//! [`objective`](crate::objective).
//!
//! An objective declares the [`Quantity`]s that it needs. [`score`](crate::objective::score) requests some of
//! these quantities from the policy and computes the others. The objective reads the quantities from the
//! [`Scores`](crate::objective::Scores).

mod set;

pub use set::Quantities;

use std::collections::BTreeMap;

use tch::Tensor;

use crate::{Error, Result};

/// A quantity with one number for each transition, state or trajectory of a batch.
///
/// A quantity of each state has a number for the state before each transition, unless stated otherwise. All
/// quantities are flat lists, with one number for each item of [`per`](Self::per).
///
/// A policy may provide custom quantities, to which policy and objective give the same name:
///
/// ```
/// use gfn::objective::{Quantities, Quantity};
/// const SURPRISE: Quantity = Quantity::Custom("the surprise of each state");
/// let needs = Quantity::LogZ | SURPRISE;
/// assert!(needs.has(SURPRISE) && !needs.has(Quantity::LogFlow));
/// assert_eq!(needs | Quantity::LogZ, needs);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Quantity {
    /// log P_F of each transition. A policy that gets this request returns the distribution P_F.
    LogPf,
    /// log P_B of each transition, 0 for exits. A policy that gets this request returns P_B.
    LogPb,
    /// log P_B of each transition, by a learned P_B. A policy with a fixed P_B is refused.
    LearnedLogPb,
    /// log R of each finished object, corrected for symmetry if the environment needs it.
    LogReward,
    /// log R of each finished object as returned by the reward, without correction.
    RawLogReward,
    /// log F of each state.
    LogFlow,
    /// log Z of each trajectory.
    LogZ,
    /// log P_F of the exit in each state.
    LogExit,
    /// log P_F of all legal actions in the state before each transition: the actions of the first state, then
    /// those of the next state. For discrete actions.
    AllLogPf,
    /// The entropy of P_F in each state, in nats, with gradient.
    Entropy,
    /// log R of each state, finished or not, corrected for symmetry like `LogReward`.
    StateLogReward,
    /// log R(s') - log R(s) of each transition, corrected for symmetry, in double precision; 0 for exits.
    LogRewardChange,
    /// The log-probability of each transition under a prior policy, without gradient.
    LogPrior,
    /// log n(s) of the state before each transition that isn't an exit; n(s) is the number of paths to s.
    LogPaths,
    /// log n(s') of the state s' after each transition that isn't an exit.
    NextLogPaths,
    /// The log of the sum of the flows on all edges into each visited state, except initial states.
    LogInflow,
    /// The log of the sum of the flows on all edges out of each visited state, except initial states.
    LogOutflow,
    /// The log of the flow out of each trajectory's initial state, an estimate of log Z.
    LogInitialFlow,
    /// The log of each trajectory's flow along the exit, or into the terminal state if there is no exit.
    LogTerminalFlow,
    /// An intrinsic reward of each transition (`Intrinsic` in `gfn-extras`): at least 0, 0 for exits.
    IntrinsicEdge,
    /// An intrinsic reward of each finished object, not negative and without gradient.
    IntrinsicTerminal,
    /// log F of each state, without gradient, by a target network: an older copy of the policy that a trainer
    /// keeps ([`Trainer::with_target_network`](crate::train::Trainer::with_target_network)).
    TargetLogFlow,
    /// log P_F of the exit in each state by a target network.
    TargetLogExit,
    /// A custom quantity by name ([`Evaluation::values`](crate::policy::Evaluation::values)).
    Custom(&'static str),
}

/// The items of a batch, each of which has one number of a quantity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Per {
    /// Each transition, or the state before it. The tensor is `[transitions]`.
    Transition,
    /// Each transition that isn't an exit. The tensor is `[inner transitions]`.
    InnerTransition,
    /// Each visited state except the initial one, in which the inflow must equal the outflow.
    BalancedState,
    /// Each legal action in the state before each transition. The tensor is `[sum of the numbers of
    /// actions]`.
    LegalAction,
    /// Each trajectory. The tensor is `[trajectories]`.
    Trajectory,
}

impl Quantity {
    /// Returns the items for which the quantity has one number each.
    #[must_use]
    pub fn per(self) -> Per {
        match self {
            Self::LogReward | Self::RawLogReward | Self::LogZ => Per::Trajectory,
            Self::LogInitialFlow | Self::LogTerminalFlow | Self::IntrinsicTerminal => Per::Trajectory,
            Self::LogPaths | Self::NextLogPaths => Per::InnerTransition,
            Self::LogInflow | Self::LogOutflow => Per::BalancedState,
            Self::AllLogPf => Per::LegalAction,
            _ => Per::Transition,
        }
    }

    /// Returns the error for a missing quantity. The error names `needed_by` (an objective) and the setting
    /// that provides the quantity.
    ///
    /// ```
    /// use gfn::objective::Quantity;
    /// let message = Quantity::LogFlow.missing("my objective").to_string();
    /// assert!(
    ///     message.starts_with("my objective needs a state-flow estimator")
    ///         && message.contains("`flow: true`")
    /// );
    /// ```
    #[must_use]
    pub fn missing(self, needed_by: &'static str) -> Error {
        let (missing, remedy) = match self {
            Self::LogPf => ("a forward policy", "use a policy that returns P_F"),
            Self::LogPb => ("a backward policy", "use a policy that returns P_B"),
            Self::LearnedLogPb => (
                "a backward policy that is learned",
                "build the policy with one (`backward` in its configuration), or choose an objective that \
                 doesn't train P_B",
            ),
            Self::LogReward | Self::RawLogReward => ("a reward", "give one number per finished object"),
            Self::LogFlow => (
                "a state-flow estimator (log F)",
                "build the policy with one (`flow: true` in its `EstimatorsConfig`), or choose an objective \
                 without state flows, such as trajectory balance",
            ),
            Self::LogZ => (
                "a log Z estimator",
                "give the policy one (`Policy::log_z`), or choose an objective without log Z, such as \
                 log-partition variance",
            ),
            Self::LogExit => (
                "every state to be terminating, by an exit action",
                "use an environment in which every state can be finished, or another objective",
            ),
            Self::AllLogPf => (
                "P_F of all actions",
                "use an environment of discrete actions, or estimate the divergence from samples \
                 (`KlEstimator::Sampled`)",
            ),
            Self::Entropy => (
                "the entropy of P_F",
                "use a policy whose distribution computes entropies (`Distribution::entropies`), such as a \
                 policy of discrete actions",
            ),
            Self::StateLogReward | Self::LogRewardChange => (
                "rewards of partial states (`Reward::partial_log_reward`)",
                "use a reward that returns them, or an objective that needs no such rewards",
            ),
            Self::LogPrior => ("a prior policy", "wrap the policy in `WithPrior`"),
            Self::LogPaths | Self::NextLogPaths => (
                "an estimator of log n(s)",
                "build the policy with one (`paths: true` in its configuration), or choose another objective \
                 of P_B",
            ),
            Self::LogInflow | Self::LogOutflow | Self::LogInitialFlow | Self::LogTerminalFlow => (
                "edge flows",
                "use a discrete environment and a policy with logits, or choose another objective than flow \
                 matching",
            ),
            Self::IntrinsicEdge | Self::IntrinsicTerminal => (
                "intrinsic rewards",
                "give the trainer a companion that supplies them (`Intrinsic` of gfn-extras), or set them by \
                 hand (`Scores::set`)",
            ),
            Self::TargetLogFlow | Self::TargetLogExit => (
                "a target network",
                "give the trainer one (`with_target_network`), or compare with the policy itself \
                 (`NextExit::TrainedPolicy`, `Quantity::LogFlow`)",
            ),
            Self::Custom(name) => {
                (name, "use a policy that returns it (`Evaluation::values`, under `Quantity::Custom`)")
            }
        };
        Error::missing(needed_by, missing, remedy)
    }

    /// Returns `true` if the gradient of a loss flows through the quantity. Rewards, priors and target
    /// networks are constants.
    pub(crate) fn is_differentiated(self) -> bool {
        let rewards = [Self::LogReward, Self::RawLogReward, Self::StateLogReward, Self::LogRewardChange];
        let constants = [
            Self::LogPrior,
            Self::IntrinsicEdge,
            Self::IntrinsicTerminal,
            Self::TargetLogFlow,
            Self::TargetLogExit,
        ];
        !rewards.contains(&self) && !constants.contains(&self)
    }
}

/// A map from quantities to tensors.
///
/// ```
/// use gfn::objective::{Quantity, Values};
/// let values = Values::default().with(Quantity::LogFlow, tch::Tensor::from_slice(&[0.0, 1.0]));
/// assert_eq!(values.need(Quantity::LogFlow, "this example")?.size(), [2]);
/// let message = values.need(Quantity::LogZ, "this example").unwrap_err().to_string();
/// assert!(message.starts_with("this example needs a log Z estimator: give the policy one"));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Values(BTreeMap<Quantity, Tensor>);

impl Values {
    /// Adds the tensor of a quantity and returns the map. An earlier tensor of the same quantity is replaced.
    #[must_use]
    pub fn with(mut self, quantity: Quantity, tensor: Tensor) -> Self {
        self.insert(quantity, tensor);
        self
    }

    /// Adds the tensor of a quantity. An earlier tensor of the same quantity is replaced.
    pub fn insert(&mut self, quantity: Quantity, tensor: Tensor) {
        self.0.insert(quantity, tensor);
    }

    /// Returns the tensor of a quantity; `None` if the map doesn't have the quantity.
    #[must_use]
    pub fn get(&self, quantity: Quantity) -> Option<&Tensor> {
        self.0.get(&quantity)
    }

    /// Returns the tensor of a quantity that `needed_by`, an objective, requires.
    ///
    /// # Errors
    /// [`Error::Missing`] if the map doesn't have the quantity. [`Quantity::missing`] makes the error.
    pub fn need(&self, quantity: Quantity, needed_by: &'static str) -> Result<&Tensor> {
        self.get(quantity).ok_or_else(|| quantity.missing(needed_by))
    }

    /// Removes a quantity and returns its tensor; `None` if the map doesn't have the quantity.
    pub fn remove(&mut self, quantity: Quantity) -> Option<Tensor> {
        self.0.remove(&quantity)
    }

    /// Removes the tensor of a quantity that `needed_by` requires, and returns it. The tensor must be a flat
    /// list of `n` numbers.
    pub(crate) fn take_flat(
        &mut self,
        quantity: Quantity,
        n: usize,
        needed_by: &'static str,
    ) -> Result<Tensor> {
        flat(quantity, self.remove(quantity).ok_or_else(|| quantity.missing(needed_by))?, n)
    }

    /// Iterates over all quantities and their tensors.
    pub fn iter(&self) -> impl Iterator<Item = (Quantity, &Tensor)> {
        self.0.iter().map(|(&quantity, tensor)| (quantity, tensor))
    }
}

impl FromIterator<(Quantity, Tensor)> for Values {
    fn from_iter<I: IntoIterator<Item = (Quantity, Tensor)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl IntoIterator for Values {
    type Item = (Quantity, Tensor);
    type IntoIter = std::collections::btree_map::IntoIter<Quantity, Tensor>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Checks that a tensor is a flat list of `n` numbers, and returns it. A column `[n, 1]` is refused, because
/// it would silently be broadcast to `[n, n]`.
pub(crate) fn flat(quantity: Quantity, tensor: Tensor, n: usize) -> Result<Tensor> {
    if tensor.size()[..] == [n as i64] {
        return Ok(tensor);
    }
    Err(Error::shape(
        format!("the tensor for `Quantity::{quantity:?}`"),
        vec![n as i64],
        tensor.size(),
        "give a flat list `[n]`, one number per element; `squeeze_dim(-1)` flattens a column `[n, 1]`",
    ))
}
