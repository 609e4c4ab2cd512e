//! The quantities that an objective may ask for, sets of them, and tensors by quantity; exported by [`objective`](crate::objective).
//!
//! An objective says which [`Quantity`]s it needs; [`score`](crate::objective::score) asks the policy for those that are its to give,
//! finds the others, and the objective reads them from its [`Scores`](crate::objective::Scores).

use std::collections::BTreeMap;
use std::ops::{BitOr, BitOrAssign};

use tch::Tensor;

use crate::{Error, Result};

/// Something that is known of each transition, state or trajectory of a batch.
///
/// A number of a state belongs to the state before each transition. All quantities are flat lists; [`per`](Self::per) says of what.
///
/// A policy may give quantities that the library doesn't know. Nothing but the name has to be agreed on:
///
/// ```
/// use gfn::objective::{Quantities, Quantity};
/// const SURPRISE: Quantity = Quantity::Own("the surprise of each state");
/// let needs = Quantity::LogZ | SURPRISE;
/// assert!(needs.has(SURPRISE) && !needs.has(Quantity::LogFlow));
/// assert_eq!(needs | Quantity::LogZ, needs);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Quantity {
    /// log P_F of each transition. Of a policy it asks for P_F itself.
    LogPf,
    /// log P_B of each transition, 0 for exits. Of a policy it asks for P_B itself.
    LogPb,
    /// The same, and that it is learned: a fixed P_B would learn nothing.
    LearnedLogPb,
    /// log R of each finished object, corrected for symmetry where the environment asks for it.
    LogReward,
    /// log R itself of each finished object.
    RawLogReward,
    /// log F of each state.
    LogFlow,
    /// log Z of each trajectory.
    LogZ,
    /// log P_F of the exit in each state.
    LogExit,
    /// The entropy of P_F in each state, in nats, with gradient.
    Entropy,
    /// log R of each state, finished or not, corrected as log R of finished objects is.
    StateLogReward,
    /// log R(s') - log R(s) of each transition, corrected as log R is; 0 for exits. The difference is taken in f64: large log-rewards lose
    /// nothing in it.
    LogRewardChange,
    /// log-probability of each transition under a prior policy, without gradient.
    LogPrior,
    /// log n(s) before each transition that isn't an exit: n paths lead to a state from the initial one, so that it is 0 there.
    LogPaths,
    /// log n(s') after each transition that isn't an exit.
    NextLogPaths,
    /// log of the sum of edge flows into each visited state but the initial ones.
    LogInflow,
    /// log of the sum of edge flows out of the same states.
    LogOutflow,
    /// log of the flow out of each trajectory's initial state: log Z.
    LogInitialFlow,
    /// log of the flow behind each trajectory's end: along the exit, or into a terminal state that has none.
    LogTerminalFlow,
    /// A reward for novelty of each transition, not negative, without gradient; 0 for exits, which lead to no new state. A trainer gives it
    /// (`Intrinsic` in the package `gfn-extras`).
    IntrinsicEdge,
    /// The same of each finished object.
    IntrinsicTerminal,
    /// log F of each state by a target network: an older copy of the policy, without gradient. A trainer gives it
    /// ([`Trainer::with_target_network`](crate::train::Trainer::with_target_network)).
    TargetLogFlow,
    /// log P_F of the exit in each state by a target network.
    TargetLogExit,
    /// A quantity of one's own by its name, one number per state, which a policy gives in
    /// [`Evaluation::values`](crate::policy::Evaluation::values).
    Own(&'static str),
}

/// The things that a quantity has a number for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Per {
    /// Each transition, or the state before it, `[transitions]`.
    Transition,
    /// Each transition that isn't an exit, `[inner]`.
    InnerTransition,
    /// Each visited state that flows must balance in: all but the initial ones, trajectory by trajectory.
    BalancedState,
    /// Each trajectory, `[n]`.
    Trajectory,
}

impl Quantity {
    /// The things that there is a number for.
    #[must_use]
    pub fn per(self) -> Per {
        match self {
            Self::LogReward | Self::RawLogReward | Self::LogZ => Per::Trajectory,
            Self::LogInitialFlow | Self::LogTerminalFlow | Self::IntrinsicTerminal => Per::Trajectory,
            Self::LogPaths | Self::NextLogPaths => Per::InnerTransition,
            Self::LogInflow | Self::LogOutflow => Per::BalancedState,
            _ => Per::Transition,
        }
    }

    /// The error of an objective, or of whoever else asked for it, that finds none: it names both, and the setting that gives it.
    ///
    /// ```
    /// use gfn::objective::Quantity;
    /// let message = Quantity::LogFlow.missing("my objective").to_string();
    /// assert!(message.starts_with("my objective needs a state-flow estimator") && message.contains("`flow: true`"));
    /// ```
    #[must_use]
    pub fn missing(self, needed_by: &'static str) -> Error {
        let (missing, remedy) = match self {
            Self::LogPf => ("a forward policy", "use a policy that gives P_F"),
            Self::LogPb => ("a backward policy", "use a policy that gives P_B"),
            Self::LearnedLogPb => (
                "a backward policy that is learned",
                "build the policy with one (`backward` in its configuration), or choose an objective that doesn't train P_B",
            ),
            Self::LogReward | Self::RawLogReward => ("a reward", "give one number per finished object"),
            Self::LogFlow => (
                "a state-flow estimator (log F)",
                "build the policy with one (`flow: true` in its `EstimatorsConfig`), or choose an objective without state flows, such \
                 as trajectory balance",
            ),
            Self::LogZ => (
                "a log Z estimator",
                "give the policy one (`Policy::log_z`), or choose an objective without log Z, such as log-partition variance",
            ),
            Self::LogExit => (
                "every state to be terminating, by an exit action",
                "use an environment in which every state can be finished, or another objective",
            ),
            Self::Entropy => (
                "the entropy of P_F",
                "use a policy whose distribution tells it (`Distribution::entropies`), as those over discrete actions do",
            ),
            Self::StateLogReward | Self::LogRewardChange => (
                "rewards of partial states (`Reward::partial_log_reward`)",
                "use a reward that gives them, or choose an objective without",
            ),
            Self::LogPrior => ("a prior policy", "wrap the policy in `WithPrior`"),
            Self::LogPaths | Self::NextLogPaths => (
                "an estimator of log n(s)",
                "build the policy with one (`paths: true` in its configuration), or choose another objective of P_B",
            ),
            Self::LogInflow | Self::LogOutflow | Self::LogInitialFlow | Self::LogTerminalFlow => (
                "edge flows",
                "use a discrete environment and a policy with logits, or choose another objective than flow matching",
            ),
            Self::IntrinsicEdge | Self::IntrinsicTerminal => (
                "intrinsic rewards",
                "give the trainer a companion that supplies them (`Intrinsic` of gfn-extras), or set them by hand (`Scores::set`)",
            ),
            Self::TargetLogFlow | Self::TargetLogExit => (
                "a target network",
                "give the trainer one (`with_target_network`), or compare with the policy itself (`NextExit::Own`, `Quantity::LogFlow`)",
            ),
            Self::Own(name) => (name, "use a policy that gives it (`Evaluation::values`, under `Quantity::Own`)"),
        };
        Error::missing(needed_by, missing, remedy)
    }

    /// `true` if a loss is differentiated by it: rewards, priors and target networks are constants to what is trained.
    pub(crate) fn is_differentiated(self) -> bool {
        let of_reward = [Self::LogReward, Self::RawLogReward, Self::StateLogReward, Self::LogRewardChange];
        let lent =
            [Self::LogPrior, Self::IntrinsicEdge, Self::IntrinsicTerminal, Self::TargetLogFlow, Self::TargetLogExit];
        !of_reward.contains(&self) && !lent.contains(&self)
    }
}

/// The most quantities that a set holds.
const MAX_HELD: usize = 16;

/// A set of at most 16 quantities: those that an objective needs, or that a caller wants of a policy.
///
/// ```
/// use gfn::objective::{Quantities, Quantity};
/// let needs = Quantity::LogZ | Quantity::Entropy;
/// assert!(needs.has(Quantity::Entropy) && !needs.has(Quantity::LogFlow));
/// assert_eq!(Quantities::from(Quantity::LogPf), Quantities::PF);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantities {
    held: [Option<Quantity>; MAX_HELD],
    /// `true` if there were more than it can hold.
    overfull: bool,
}

impl Quantities {
    /// The forward policy alone.
    pub const PF: Self = Self::one(Quantity::LogPf);
    /// The backward policy alone.
    pub const PB: Self = Self::one(Quantity::LogPb);
    /// Nothing.
    pub const NONE: Self = Self { held: [None; MAX_HELD], overfull: false };

    const fn one(quantity: Quantity) -> Self {
        let mut held = [None; MAX_HELD];
        held[0] = Some(quantity);
        Self { held, overfull: false }
    }

    /// `true` if a quantity is in it.
    #[must_use]
    pub fn has(self, quantity: Quantity) -> bool {
        self.iter().any(|held| held == quantity)
    }

    /// `true` if any of these is in it.
    #[must_use]
    pub fn has_any(self, of: &[Quantity]) -> bool {
        of.iter().any(|&quantity| self.has(quantity))
    }

    /// Those that are in it, in the order in which they came.
    fn iter(self) -> impl Iterator<Item = Quantity> {
        self.held.into_iter().flatten()
    }

    /// Those that aren't the library's.
    pub(crate) fn own(self) -> impl Iterator<Item = Quantity> {
        self.iter().filter(|quantity| matches!(quantity, Quantity::Own(_)))
    }

    /// Refuses a set that couldn't hold all that it was to.
    pub(crate) fn check(self) -> Result<()> {
        if self.overfull {
            return Err(Error::config("the quantities that an objective needs", "more than 16", "at most 16"));
        }
        Ok(())
    }
}

impl PartialEq for Quantities {
    /// The order in which quantities came plays no part.
    fn eq(&self, other: &Self) -> bool {
        self.iter().all(|quantity| other.has(quantity)) && self.iter().count() == other.iter().count()
    }
}

impl Eq for Quantities {}

impl From<Quantity> for Quantities {
    fn from(quantity: Quantity) -> Self {
        Self::one(quantity)
    }
}

impl<Q: Into<Self>> BitOr<Q> for Quantities {
    type Output = Self;

    fn bitor(mut self, other: Q) -> Self {
        self |= other;
        self
    }
}

impl<Q: Into<Self>> BitOrAssign<Q> for Quantities {
    fn bitor_assign(&mut self, other: Q) {
        let other: Self = other.into();
        self.overfull |= other.overfull;
        for quantity in other.iter() {
            if !self.has(quantity) {
                match self.held.iter_mut().find(|place| place.is_none()) {
                    Some(place) => *place = Some(quantity),
                    None => self.overfull = true,
                }
            }
        }
    }
}

impl<Q: Into<Quantities>> BitOr<Q> for Quantity {
    type Output = Quantities;

    fn bitor(self, other: Q) -> Quantities {
        Quantities::from(self) | other
    }
}

/// Tensors by quantity.
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
    /// The same with one more, in place of any before it.
    #[must_use]
    pub fn with(mut self, quantity: Quantity, tensor: Tensor) -> Self {
        self.insert(quantity, tensor);
        self
    }

    /// Puts one in, in place of any before it.
    pub fn insert(&mut self, quantity: Quantity, tensor: Tensor) {
        self.0.insert(quantity, tensor);
    }

    /// The tensor of a quantity, if there is one.
    #[must_use]
    pub fn get(&self, quantity: Quantity) -> Option<&Tensor> {
        self.0.get(&quantity)
    }

    /// The same for an objective that can't do without.
    ///
    /// # Errors
    /// [`Error::Missing`], which names objective, quantity and what gives it.
    pub fn need(&self, quantity: Quantity, needed_by: &'static str) -> Result<&Tensor> {
        self.get(quantity).ok_or_else(|| quantity.missing(needed_by))
    }

    /// Takes one out.
    pub fn remove(&mut self, quantity: Quantity) -> Option<Tensor> {
        self.0.remove(&quantity)
    }

    /// Takes out one that there must be: a flat list of `n` numbers.
    pub(crate) fn take_flat(&mut self, quantity: Quantity, n: usize, needed_by: &'static str) -> Result<Tensor> {
        flat(quantity, self.remove(quantity).ok_or_else(|| quantity.missing(needed_by))?, n)
    }

    /// All quantities with their tensors.
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

/// A tensor that must be a flat list: a column would be broadcast against others without a word.
pub(crate) fn flat(quantity: Quantity, tensor: Tensor, n: usize) -> Result<Tensor> {
    if tensor.size()[..] == [n as i64] {
        return Ok(tensor);
    }
    Err(Error::shape(
        format!("`Quantity::{quantity:?}`, as it was given,"),
        vec![n as i64],
        tensor.size(),
        "give one number for each in a flat list `[n]`; a column `[n, 1]` is made one by `squeeze_dim(-1)`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        let set = Quantity::LogZ | Quantity::Own("a") | Quantity::LogZ;
        assert!(set.has(Quantity::LogZ) && set.has(Quantity::Own("a")));
        assert!(!set.has(Quantity::Own("b")) && !set.has(Quantity::LogFlow));
        assert_eq!(set, Quantity::Own("a") | Quantity::LogZ);
        assert_ne!(set, Quantities::from(Quantity::LogZ));
        assert_ne!(set, Quantity::Own("b") | Quantity::LogZ);
        assert_eq!(set.own().collect::<Vec<_>>(), [Quantity::Own("a")]);
    }

    #[test]
    fn a_set_that_is_too_large_is_refused() {
        const NAMES: [&str; 17] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"];
        let of = |names: &[&'static str]| names.iter().fold(Quantities::NONE, |set, &name| set | Quantity::Own(name));
        assert!(of(&NAMES[..16]).check().is_ok());
        assert!(of(&NAMES).check().is_err());
    }
}
