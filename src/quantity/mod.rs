//! What can be asked of a batch of trajectories: one list of quantities, sets of them, and what was found for each.
//!
//! An objective says which [`Quantity`]s it needs; [`score`](crate::objective::score) asks the policy for those that are its to give,
//! finds the others, and the objective reads them from its [`Scores`](crate::objective::Scores).
//!
//! A policy may give quantities that the library doesn't know. Nothing but the name has to be agreed on:
//!
//! ```
//! use gfn::quantity::{Quantities, Quantity};
//! const SURPRISE: Quantity = Quantity::Own("the surprise of each state");
//! let needs = Quantity::LogZ | SURPRISE;
//! assert!(needs.has(SURPRISE) && !needs.has(Quantity::LogFlow));
//! assert_eq!(needs | Quantity::LogZ, needs);
//! ```

mod facts;
mod set;
mod values;

pub use facts::Per;
pub use set::Quantities;
pub use values::Values;
pub(crate) use values::flat;

/// Something that is known of each transition, state or trajectory of a batch.
///
/// What stands for a state belongs to the state before each transition. All quantities are flat lists; [`per`](Self::per) says of what.
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
    /// ([`Trainer::with_intrinsic`](crate::train::Trainer::with_intrinsic)).
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
