use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::Result;
use crate::objective::{Objective, Residuals, Scores};
use crate::quantity::{Quantities, Quantity};
use crate::tensor::select_rows;

/// The quantity that the state-flow estimator estimates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum StateFlow {
    /// The state flow log F(s) itself.
    #[default]
    Whole,
    /// The difference between log F(s) and log R(s), the reward of the partial state (forward-looking): `log
    /// F(s) = log R(s) + estimate` (Pan et al., *Better Training of GFlowNets with Local Credit and
    /// Incomplete Trajectories*, 2023). This choice needs rewards of partial states
    /// ([`Reward::partial_log_reward`](crate::env::Reward::partial_log_reward)).
    ForwardLooking,
}

impl StateFlow {
    /// Returns the quantities from which [`log_flow`](Self::log_flow) computes log F.
    pub(in crate::objective) fn needs(self) -> Quantities {
        match self {
            Self::Whole => Quantity::LogFlow.into(),
            Self::ForwardLooking => Quantity::LogFlow | Quantity::StateLogReward,
        }
    }

    /// Returns log F of the state before each transition, `[transitions]`.
    pub(in crate::objective) fn log_flow(self, scores: &Scores, objective: &'static str) -> Result<Tensor> {
        let estimate = scores.need(Quantity::LogFlow, objective)?;
        match self {
            Self::Whole => Ok(estimate.shallow_clone()),
            Self::ForwardLooking => Ok(estimate + scores.need(Quantity::StateLogReward, objective)?),
        }
    }
}

/// Detailed balance (Bengio et al., *GFlowNet Foundations*, 2023, eq. 12).
///
/// The residual of a transition from s to s' is `log F(s) + log P_F - log F(s') - log P_B`, with R(x) for
/// F(s') in the last transition. The objective needs log F; in the forward-looking form it also needs rewards
/// of partial states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetailedBalance {
    /// The quantity that the state-flow estimator estimates.
    pub flow: StateFlow,
}

impl Objective for DetailedBalance {
    fn name(&self) -> &'static str {
        match self.flow {
            StateFlow::Whole => "detailed balance",
            StateFlow::ForwardLooking => "forward-looking detailed balance",
        }
    }
    fn needs(&self) -> Quantities {
        self.flow.needs()
    }
    fn learns_from_transitions(&self) -> bool {
        true
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let log_flow = self.flow.log_flow(scores, self.name())?;
        let values =
            &log_flow + &scores.log_pf - scores.behind(&log_flow, &scores.log_reward) - &scores.log_pb;
        Ok(Residuals { weights: scores.mean_weights(&values), values })
    }
}

/// Modified detailed balance (Deleu et al., *Bayesian Structure Learning with GFlowNets*, 2022, eq. 9), for
/// environments in which every state can be terminal. The objective doesn't need state flows.
///
/// The residual of a transition from s to s' that isn't an exit is `log P_F(s' | s) + log P_F(exit | s') -
/// log P_B(s | s') - log P_F(exit | s) - (log R(s') - log R(s))`. The objective needs the log-probability of
/// the exit in every state and the change of log R in every step. A batch that consists only of exits has no
/// residuals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModifiedDetailedBalance {
    /// The policy that gives P_F(exit | s').
    pub next_exit: NextExit,
}

/// The policy that gives P_F(exit | s'), the exit probability after a step, in modified detailed balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextExit {
    /// The trained policy, with gradient.
    #[default]
    TrainedPolicy,
    /// A target network ([`Quantity::TargetLogExit`]), without gradient, as in Deleu et al. The solution is
    /// the same as with the trained policy.
    TargetNetwork,
}

impl Objective for ModifiedDetailedBalance {
    fn name(&self) -> &'static str {
        match self.next_exit {
            NextExit::TrainedPolicy => "modified detailed balance",
            NextExit::TargetNetwork => "modified detailed balance with a target network",
        }
    }
    fn needs(&self) -> Quantities {
        let needs = Quantity::LogExit | Quantity::LogRewardChange;
        match self.next_exit {
            NextExit::TrainedPolicy => needs,
            NextExit::TargetNetwork => needs | Quantity::TargetLogExit,
        }
    }
    fn learns_from_transitions(&self) -> bool {
        true
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let name = self.name();
        let exit = scores.need(Quantity::LogExit, name)?;
        let change = scores.need(Quantity::LogRewardChange, name)?;
        let next_exit = match self.next_exit {
            NextExit::TrainedPolicy => exit,
            NextExit::TargetNetwork => scores.need(Quantity::TargetLogExit, name)?,
        };
        let inner = scores.offsets.windows(2).flat_map(|ends| ends[0]..ends[1].saturating_sub(1));
        let before: Vec<usize> = inner.collect();
        let after: Vec<usize> = before.iter().map(|row| row + 1).collect();
        let step = select_rows(&(&scores.log_pf - &scores.log_pb - exit - change), &before);
        Ok(Residuals::mean(step + select_rows(next_exit, &after)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::to_host;

    /// Checks, on a trajectory of two transitions and an exit, that the setting `next_exit` chooses the
    /// network (trained policy or target network) whose P_F(exit | s') is used in the residuals.
    #[test]
    fn the_next_exit_comes_from_the_chosen_network() {
        let [log_pf, log_pb] =
            [[-1.0, -2.0, -0.5], [-0.25, -0.75, 0.0]].map(|values| Tensor::from_slice(&values));
        let mut scores = Scores::new(vec![0, 3], log_pf, log_pb, Tensor::from_slice(&[3.0]));
        let values = [
            (Quantity::LogExit, [-4.0, -3.0, -0.5]),
            (Quantity::TargetLogExit, [-7.0, -6.0, -5.0]),
            (Quantity::LogRewardChange, [1.0, 2.0, 0.0]),
        ];
        values
            .into_iter()
            .try_for_each(|(quantity, list)| scores.set(quantity, Tensor::from_slice(&list)))
            .unwrap();
        let residuals =
            |next_exit| to_host(&ModifiedDetailedBalance { next_exit }.residuals(&scores).unwrap().values);
        // A residual is log P_F + log P_F(exit | s') - log P_B - log P_F(exit | s) - change of log R.
        assert_eq!(
            residuals(NextExit::TrainedPolicy),
            [-1.0 - 3.0 + 0.25 + 4.0 - 1.0, -2.0 - 0.5 + 0.75 + 3.0 - 2.0]
        );
        assert_eq!(
            residuals(NextExit::TargetNetwork),
            [-1.0 - 6.0 + 0.25 + 4.0 - 1.0, -2.0 - 5.0 + 0.75 + 3.0 - 2.0]
        );
    }
}
