use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::Result;
use crate::objective::{Balance, Needs, Residuals, Scores, mean_weights, needed};
use crate::tensor::index_tensor;

/// The quantity that the state-flow estimator estimates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum StateFlow {
    /// log F(s) itself.
    #[default]
    Whole,
    /// Forward-looking: the part of log F beyond the state's own reward, `log F(s) = log R(s) + estimate` (Pan et al.,
    /// *Better Training of GFlowNets with Local Credit and Incomplete Trajectories*, 2023). Needs rewards of partial
    /// states ([`Reward::partial_log_reward`](crate::env::Reward::partial_log_reward)).
    ForwardLooking,
}

impl StateFlow {
    /// The quantities that an objective with this parametrisation needs.
    pub(in crate::objective) fn needs(self) -> Needs {
        Needs { log_flow: true, state_log_reward: self == Self::ForwardLooking, ..Needs::default() }
    }

    /// log F of the state before each transition, `[transitions]`.
    pub(in crate::objective) fn of(self, scores: &Scores, objective: &'static str) -> Result<Tensor> {
        let estimate = needed(scores.log_flow.as_ref(), objective, "state flows log F")?;
        match self {
            Self::Whole => Ok(estimate.shallow_clone()),
            Self::ForwardLooking => {
                Ok(estimate + needed(scores.state_log_reward.as_ref(), objective, "rewards of partial states")?)
            }
        }
    }
}

/// log F of the state after each transition: the next row's, or the reward after the last transition of a trajectory.
pub(in crate::objective) fn next_flow(scores: &Scores, log_flow: &Tensor) -> Tensor {
    flow_behind(scores, log_flow, &scores.log_reward)
}

/// Same as [`next_flow`], with these rewards, `[n]`.
pub(in crate::objective) fn flow_behind(scores: &Scores, log_flow: &Tensor, log_reward: &Tensor) -> Tensor {
    let rows = log_flow.size()[0];
    let n = scores.len() as i64;
    // The rewards are appended to the flows, and each last transition points to its reward.
    let all = Tensor::cat(&[log_flow.shallow_clone(), log_reward.shallow_clone()], 0);
    let mut next: Vec<i64> = (1..=rows).collect();
    for (i, end) in (0..n).zip(&scores.offsets[1..]) {
        next[end - 1] = rows + i;
    }
    all.index_select(0, &Tensor::from_slice(&next).to_device(log_flow.device()))
}

/// Detailed balance (Bengio et al., *GFlowNet Foundations*, 2023, eq. 12).
///
/// Residual per transition: `log F(s) + log P_F - log F(s') - log P_B`, with R(x) for F(s') in the last one. Needs log
/// F; the forward-looking form also needs rewards of partial states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetailedBalance {
    /// The quantity that the state-flow estimator estimates.
    pub flow: StateFlow,
}

impl Balance for DetailedBalance {
    fn name(&self) -> &'static str {
        match self.flow {
            StateFlow::Whole => "detailed balance",
            StateFlow::ForwardLooking => "forward-looking detailed balance",
        }
    }
    fn needs(&self) -> Needs {
        self.flow.needs()
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let log_flow = self.flow.of(scores, Balance::name(self))?;
        let values = &log_flow + &scores.log_pf - next_flow(scores, &log_flow) - &scores.log_pb;
        Ok(Residuals { weights: mean_weights(&values), values })
    }
}

/// Modified detailed balance (Deleu et al., *Bayesian Structure Learning with GFlowNets*, 2022, eq. 9), for
/// environments in which every state can be terminal. It needs no state flows.
///
/// Residual per transition from s to s', except exits:
/// `log P_F(s' | s) + log P_F(exit | s') - log P_B(s | s') - log P_F(exit | s) - (log R(s') - log R(s))`. Needs the
/// exit's log-probability in every state and the change of the reward in every step. A batch of exits alone has no
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
    Own,
    /// A target network ([`lagged_exits`](crate::objective::lagged_exits)), without gradient, as in Deleu et al. Both
    /// choices have the same solution.
    Lagged,
}

impl Balance for ModifiedDetailedBalance {
    fn name(&self) -> &'static str {
        match self.next_exit {
            NextExit::Own => "modified detailed balance",
            NextExit::Lagged => "modified detailed balance with a lagged copy",
        }
    }
    fn needs(&self) -> Needs {
        let lagged_log_p_exit = self.next_exit == NextExit::Lagged;
        Needs { log_p_exit: true, log_reward_change: true, lagged_log_p_exit, ..Needs::default() }
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let name = Balance::name(self);
        let exit = needed(scores.log_p_exit.as_ref(), name, "the exit's log-probability in every state")?;
        let change = needed(scores.log_reward_change.as_ref(), name, "the change of the reward in every step")?;
        let next_exit = match self.next_exit {
            NextExit::Own => exit,
            NextExit::Lagged => {
                needed(scores.lagged_log_p_exit.as_ref(), name, "a copy of the policy that lags behind")?
            }
        };
        let inner = scores.offsets.windows(2).flat_map(|ends| ends[0]..ends[1].saturating_sub(1));
        let before: Vec<usize> = inner.collect();
        let after: Vec<usize> = before.iter().map(|row| row + 1).collect();
        let (before, after) = (index_tensor(&before, exit.device()), index_tensor(&after, exit.device()));
        let step = (&scores.log_pf - &scores.log_pb - exit - change).index_select(0, &before);
        let values = step + next_exit.index_select(0, &after);
        Ok(Residuals { weights: mean_weights(&values), values })
    }
}
