use tch::Tensor;

/// The quantities that an objective needs from [`score`](crate::objective::score), besides log-probabilities and
/// rewards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// log F of every visited state.
    pub log_flow: bool,
    /// log Z of every trajectory.
    pub log_z: bool,
    /// log P_F of the exit in every visited state.
    pub log_p_exit: bool,
    /// log R of every visited state, finished or not.
    pub state_log_reward: bool,
    /// The change of log R in each step.
    pub log_reward_change: bool,
    /// log P_F of the exit in every visited state under a target network.
    pub lagged_log_p_exit: bool,
    /// log-probabilities under a prior policy.
    pub log_prior: bool,
    /// Edge flows into and out of every visited state.
    pub edge_flows: bool,
    /// The log of the number of paths to every visited state.
    pub log_paths: bool,
    /// A P_B that is trained; with a fixed one the objective would learn nothing.
    pub learned_pb: bool,
    /// Paths that a policy took. The objective trains P_B on the path, and paths drawn by uniform backward steps would
    /// make it uniform. Checked by the trainer.
    pub taken_paths: bool,
    /// At least two trajectories, because each is compared with the batch mean. Checked by the trainer.
    pub several: bool,
    /// Intrinsic rewards. [`score`](crate::objective::score) can't compute them; the trainer adds them
    /// ([`Trainer::with_intrinsic`](crate::train::Trainer::with_intrinsic)).
    pub intrinsic: bool,
}

impl Needs {
    /// The union of two sets of needs.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            log_flow: self.log_flow || other.log_flow,
            log_z: self.log_z || other.log_z,
            log_p_exit: self.log_p_exit || other.log_p_exit,
            state_log_reward: self.state_log_reward || other.state_log_reward,
            log_reward_change: self.log_reward_change || other.log_reward_change,
            lagged_log_p_exit: self.lagged_log_p_exit || other.lagged_log_p_exit,
            log_prior: self.log_prior || other.log_prior,
            edge_flows: self.edge_flows || other.edge_flows,
            log_paths: self.log_paths || other.log_paths,
            learned_pb: self.learned_pb || other.learned_pb,
            taken_paths: self.taken_paths || other.taken_paths,
            several: self.several || other.several,
            intrinsic: self.intrinsic || other.intrinsic,
        }
    }
}

/// The edge flows of visited states; the policy's logits are their logarithms.
#[derive(Debug)]
pub struct EdgeFlows {
    /// log of the sum of flows into each visited state except the initial one, trajectory by trajectory, `[k]`.
    pub log_inflow: Tensor,
    /// log of the sum of flows out of the same states, `[k]`.
    pub log_outflow: Tensor,
    /// log of the flow out of each trajectory's initial state, `[n]`: log Z.
    pub log_initial: Tensor,
    /// log of the last flow of each trajectory, `[n]`: along the exit, or into a terminal state that has none.
    pub log_terminal: Tensor,
}

/// The log of the number of paths to the states before and after each transition that isn't an exit.
#[derive(Debug)]
pub struct LogPaths {
    /// The rows of these transitions, `[k]`.
    pub rows: Tensor,
    /// log n(s) before, `[k]`; 0 for the initial state.
    pub before: Tensor,
    /// log n(s') after, `[k]`.
    pub after: Tensor,
}

/// Rewards for novelty, all non-negative, without gradient.
#[derive(Debug)]
pub struct IntrinsicRewards {
    /// r of each transition, `[transitions]`; 0 for exits, because they lead to no new state.
    pub edges: Tensor,
    /// r of each trajectory's terminal state, `[n]`.
    pub terminal: Tensor,
}

/// The quantities of the first of several updates on one batch, without gradient.
#[derive(Debug)]
pub struct OldScores {
    /// log P_F of each transition, `[transitions]`.
    pub log_pf: Tensor,
    /// log F of the state before each transition, `[transitions]`.
    pub log_flow: Option<Tensor>,
}

/// The quantities from which objectives compute their loss. Rows are transitions, trajectory by trajectory.
///
/// A trajectory visits `s_0 .. s_{n-1}` and leaves the last by the exit action, whose P_B is 1. Without an exit action
/// its last transition leads to the terminal state. In both cases the flow after the last transition is the reward.
#[derive(Debug)]
pub struct Scores {
    /// The first row of each trajectory, and the number of rows, `[n + 1]`.
    pub offsets: Vec<usize>,
    /// log P_F of each transition, `[transitions]`.
    pub log_pf: Tensor,
    /// log P_B of each transition, `[transitions]`; 0 for exits.
    pub log_pb: Tensor,
    /// log R of each trajectory's terminal state, `[n]`, with the symmetry correction if the environment has one.
    pub log_reward: Tensor,
    /// log R without correction, `[n]`, for objectives in which P_B cancels, and the correction with it.
    pub raw_log_reward: Tensor,
    /// The trajectories' conditions, `[n, C]`.
    pub conditions: Option<Tensor>,
    /// log F of the state before each transition, `[transitions]`.
    pub log_flow: Option<Tensor>,
    /// log Z of each trajectory, `[n]`.
    pub log_z: Option<Tensor>,
    /// log P_F of the exit in the state before each transition, `[transitions]`.
    pub log_p_exit: Option<Tensor>,
    /// log R of the state before each transition, `[transitions]`, with the correction of `log_reward`.
    pub state_log_reward: Option<Tensor>,
    /// log R(s') - log R(s) of each transition that isn't an exit, with the correction of `log_reward`,
    /// `[transitions]`; 0 for exits. The difference is computed in f64, so that large log-rewards lose no precision.
    pub log_reward_change: Option<Tensor>,
    /// Like `log_p_exit`, but under a target network and without gradient
    /// ([`lagged_exits`](crate::objective::lagged_exits)).
    pub lagged_log_p_exit: Option<Tensor>,
    /// log-probability of each transition under the prior, `[transitions]`, without gradient.
    pub log_prior: Option<Tensor>,
    /// Flows along the edges around visited states.
    pub edge_flows: Option<EdgeFlows>,
    /// Numbers of paths.
    pub log_paths: Option<LogPaths>,
    /// Rewards for novelty. The trainer sets them; [`score`](crate::objective::score) leaves them out.
    pub intrinsic: Option<IntrinsicRewards>,
    /// The quantities of the first update on this batch; `None` in the first.
    pub old: Option<OldScores>,
    /// Number of states evaluated, and number visited.
    pub distinct: (usize, usize),
}

impl Scores {
    /// The number of trajectories.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no trajectory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Scores with log-probabilities and rewards alone: all `[transitions]`, except `log_reward`, which is `[n]`.
    #[must_use]
    pub fn new(offsets: Vec<usize>, log_pf: Tensor, log_pb: Tensor, log_reward: Tensor) -> Self {
        let n = offsets.last().copied().unwrap_or(0);
        Self {
            offsets,
            log_pf,
            log_pb,
            raw_log_reward: log_reward.shallow_clone(),
            log_reward,
            conditions: None,
            log_flow: None,
            log_z: None,
            log_p_exit: None,
            state_log_reward: None,
            log_reward_change: None,
            lagged_log_p_exit: None,
            log_prior: None,
            edge_flows: None,
            log_paths: None,
            intrinsic: None,
            old: None,
            distinct: (n, n),
        }
    }

    /// `beta log R + sum log prior - sum log P_F` of each trajectory. These are log importance weights for the
    /// posterior proportional to prior times R^beta; [`importance_log_z`](crate::metrics::importance_log_z) estimates
    /// its log Z from them.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) for scores without a prior.
    pub fn relative_log_weights(&self, beta: f64) -> crate::Result<Vec<f64>> {
        let prior = self.log_prior.as_ref().ok_or(crate::Error::Missing {
            objective: "an importance weight relative to a prior",
            needs: "a prior policy",
            remedy: "score with `Needs::log_prior` and a policy `WithPrior`",
        })?;
        Ok(self.weights(prior, &self.raw_log_reward, beta))
    }

    /// The log importance weight of each trajectory: `log R + sum log P_B - sum log P_F`; for scores with a prior those
    /// [relative](Self::relative_log_weights) to it.
    pub(crate) fn log_weights(&self, beta: f64) -> Vec<f64> {
        match &self.log_prior {
            Some(prior) => self.weights(prior, &self.raw_log_reward, beta),
            None => self.weights(&self.log_pb, &self.log_reward, 1.0),
        }
    }

    fn weights(&self, reference: &Tensor, log_reward: &Tensor, beta: f64) -> Vec<f64> {
        let [reference, log_pf, log_reward] = [reference, &self.log_pf, log_reward].map(crate::tensor::to_host);
        let ratio = |ends: &[usize]| (ends[0]..ends[1]).map(|row| reference[row] - log_pf[row]).sum::<f64>();
        self.offsets.windows(2).zip(log_reward).map(|(ends, r)| beta * r + ratio(ends)).collect()
    }

    /// The quantities of this update that later updates on the same batch need.
    pub(crate) fn to_old(&self) -> OldScores {
        OldScores { log_pf: self.log_pf.detach(), log_flow: self.log_flow.as_ref().map(Tensor::detach) }
    }

    /// A copy of the scores with a P_B without gradient.
    pub(crate) fn with_constant_log_pb(&self) -> Self {
        let share = |tensor: &Option<Tensor>| tensor.as_ref().map(Tensor::shallow_clone);
        Self {
            offsets: self.offsets.clone(),
            log_pf: self.log_pf.shallow_clone(),
            log_pb: self.log_pb.detach(),
            log_reward: self.log_reward.shallow_clone(),
            raw_log_reward: self.raw_log_reward.shallow_clone(),
            conditions: share(&self.conditions),
            log_flow: share(&self.log_flow),
            log_z: share(&self.log_z),
            log_p_exit: share(&self.log_p_exit),
            state_log_reward: share(&self.state_log_reward),
            log_reward_change: share(&self.log_reward_change),
            lagged_log_p_exit: share(&self.lagged_log_p_exit),
            log_prior: share(&self.log_prior),
            edge_flows: self.edge_flows.as_ref().map(|flows| EdgeFlows {
                log_inflow: flows.log_inflow.shallow_clone(),
                log_outflow: flows.log_outflow.shallow_clone(),
                log_initial: flows.log_initial.shallow_clone(),
                log_terminal: flows.log_terminal.shallow_clone(),
            }),
            log_paths: None,
            intrinsic: self.intrinsic.as_ref().map(|rewards| IntrinsicRewards {
                edges: rewards.edges.shallow_clone(),
                terminal: rewards.terminal.shallow_clone(),
            }),
            old: self
                .old
                .as_ref()
                .map(|old| OldScores { log_pf: old.log_pf.shallow_clone(), log_flow: share(&old.log_flow) }),
            distinct: self.distinct,
        }
    }
}
