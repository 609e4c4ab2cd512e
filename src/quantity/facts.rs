//! What is known of each quantity: what it is called, of what there is one, and what gives it.

use std::fmt;

use super::Quantity;
use crate::Error;

/// What a quantity has a number for.
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

/// What a quantity is called, what is missing where there is none, and what to do then.
struct Facts {
    label: &'static str,
    per: Per,
    missing: &'static str,
    remedy: &'static str,
}

impl Quantity {
    /// What there is a number for.
    #[must_use]
    pub fn per(self) -> Per {
        self.facts().per
    }

    /// The error of an objective, or of whoever else asked for it, that finds none: it names both, and the setting that gives it.
    ///
    /// ```
    /// use gfn::quantity::Quantity;
    /// let message = Quantity::LogFlow.missing("my objective").to_string();
    /// assert!(message.starts_with("my objective needs a state-flow estimator") && message.contains("`flow: true`"));
    /// ```
    #[must_use]
    pub fn missing(self, needed_by: &'static str) -> Error {
        let Facts { missing, remedy, .. } = self.facts();
        Error::missing(needed_by, missing, remedy)
    }

    /// Whether a loss is differentiated by it: rewards, priors and target networks are constants to what is trained.
    pub(crate) fn is_differentiated(self) -> bool {
        !matches!(
            self,
            Self::LogReward
                | Self::RawLogReward
                | Self::StateLogReward
                | Self::LogRewardChange
                | Self::LogPrior
                | Self::IntrinsicEdge
                | Self::IntrinsicTerminal
                | Self::TargetLogFlow
                | Self::TargetLogExit
        )
    }

    fn facts(self) -> Facts {
        use Per::{BalancedState, InnerTransition, Trajectory, Transition};
        let facts = |label, per, missing, remedy| Facts { label, per, missing, remedy };
        let of_flows = |label, per| facts(label, per, "edge flows", FLOWS);
        let of_partial =
            |label| facts(label, Transition, "rewards of partial states (`Reward::partial_log_reward`)", PARTIAL);
        let of_novelty = |label, per| facts(label, per, "intrinsic rewards", NOVELTY);
        let of_target = |label| facts(label, Transition, "a target network", TARGET);
        match self {
            Self::LogPf => facts("log P_F of actions", Transition, "a forward policy", "use a policy that gives P_F"),
            Self::LogPb => facts("log P_B of actions", Transition, "a backward policy", "use a policy that gives P_B"),
            Self::LearnedLogPb => facts("log P_B of actions", Transition, "a backward policy that is learned", LEARNED),
            Self::LogReward | Self::RawLogReward => {
                facts("log R of finished objects", Trajectory, "a reward", "give one number per finished object")
            }
            Self::LogFlow => facts("log F of states", Transition, "a state-flow estimator (log F)", FLOW),
            Self::LogZ => facts("log Z of trajectories", Trajectory, "a log Z estimator", LOG_Z),
            Self::LogExit => {
                facts("log P_F of exits", Transition, "every state to be terminating, by an exit action", EXIT)
            }
            Self::Entropy => facts("the entropy of P_F of states", Transition, "the entropy of P_F", ENTROPY),
            Self::StateLogReward => of_partial("log R of states"),
            Self::LogRewardChange => of_partial("the change of log R in each step"),
            Self::LogPrior => {
                facts("log-probabilities of the prior", Transition, "a prior policy", "wrap the policy in `WithPrior`")
            }
            Self::LogPaths | Self::NextLogPaths => {
                facts("log n of states", InnerTransition, "an estimator of log n(s)", PATHS)
            }
            Self::LogInflow => of_flows("log of flows into states", BalancedState),
            Self::LogOutflow => of_flows("log of flows out of states", BalancedState),
            Self::LogInitialFlow => of_flows("log of flows out of initial states", Trajectory),
            Self::LogTerminalFlow => of_flows("log of flows behind trajectories", Trajectory),
            Self::IntrinsicEdge => of_novelty("intrinsic rewards of transitions", Transition),
            Self::IntrinsicTerminal => of_novelty("intrinsic rewards of finished objects", Trajectory),
            Self::TargetLogFlow => of_target("log F of states by the target network"),
            Self::TargetLogExit => of_target("log P_F of exits by the target network"),
            Self::Own(name) => facts(name, Transition, name, OWN),
        }
    }
}

/// As errors name it.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().label)
    }
}

const LEARNED: &str =
    "build the policy with one (`backward` in its configuration), or choose an objective that doesn't train P_B";
const FLOW: &str = "build the policy with one (`flow: true` in its `EstimatorsConfig`), or choose an objective without state flows, such as \
                    trajectory balance";
const LOG_Z: &str =
    "give the policy one (`Policy::log_z`), or choose an objective without log Z, such as log-partition variance";
const EXIT: &str = "use an environment in which every state can be finished, or another objective";
const ENTROPY: &str =
    "use a policy whose distribution tells it (`Distribution::entropies`), as those over discrete actions do";
const PARTIAL: &str = "use a reward that gives them, or choose an objective without";
const PATHS: &str =
    "build the policy with one (`paths: true` in its configuration), or choose another objective of P_B";
const FLOWS: &str =
    "use a discrete environment and a policy with logits, or choose another objective than flow matching";
const NOVELTY: &str = "give the trainer some (`with_intrinsic`), or set them by hand (`Scores::set`)";
const TARGET: &str = "give the trainer one (`with_target_network`), or compare with the policy itself (`NextExit::Own`, `Quantity::LogFlow`)";
const OWN: &str = "use a policy that gives it (`Evaluation::values`, under `Quantity::Own`)";
