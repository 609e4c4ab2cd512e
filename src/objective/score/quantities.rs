//! Functions that compute the quantities of a batch.

use tch::{Device, Kind, Tensor};

use super::edge_flows::edge_flows;
use super::rewards::{both_log_rewards, log_reward_changes, partial_log_rewards};
use super::visited_states::VisitedStates;
use super::{SCORING, Scores, Scoring};
use crate::distribution::Distribution;
use crate::env::{Direction, Env, Reward, Rows};
use crate::policy::{Evaluation, Policy};
use crate::quantity::{Quantities, Quantity, Values, flat};
use crate::rollout::Trajectories;
use crate::tensor::{from_host, index_tensor, select_rows, to_device};
use crate::{Error, Result};

/// The absolute value of a log-reward from which scores use double precision. In single precision adjacent
/// numbers of this size differ by 2^-9 or more, which is too coarse for residuals.
const MIN_SIZE_FOR_DOUBLE: f64 = 16_384.0;

/// A batch of trajectories, and the policy's evaluation of its distinct states.
pub(super) struct EvaluatedBatch<'a, E: Env> {
    env: &'a E,
    reward: &'a dyn Reward<E::States>,
    policy: &'a dyn Policy<E>,
    trajectories: &'a Trajectories<E>,
    scoring: Scoring<'a>,
    visited_states: VisitedStates<'a, E>,
    /// The forward actions of all transitions. The policy evaluates only one of several equal or isomorphic
    /// states, so the actions are renamed to the node labels of this state.
    actions: E::Actions,
    pf: E::Dist,
    pb: E::Dist,
    prior: Option<E::Dist>,
    /// Further quantities that the policy computed, such as log F, one number per distinct state.
    values: Values,
    raw_log_reward: Vec<f64>,
    log_reward: Vec<f64>,
    /// log P_F of each transition, `[transitions]`. All scores get the dtype and the device of this tensor.
    log_pf: Tensor,
    /// `true` if some log-rewards are so large that scores need double precision.
    is_wide: bool,
}

/// A function that computes one quantity of an evaluated batch.
type Compute<'a, E> = fn(&mut EvaluatedBatch<'a, E>) -> Result<Tensor>;

impl<'a, E: Env> EvaluatedBatch<'a, E> {
    /// The quantities that are computed only if an objective needs them, each with the function that computes
    /// it.
    pub(super) const QUANTITIES: [(Quantity, Compute<'a, E>); 10] = [
        (Quantity::LogFlow, |batch| batch.per_state(Quantity::LogFlow)),
        (Quantity::Entropy, Self::entropy),
        (Quantity::AllLogPf, Self::all_log_pf),
        (Quantity::LogExit, Self::log_exit),
        (Quantity::LogZ, Self::log_z),
        (Quantity::LogRewardChange, Self::log_reward_change),
        (Quantity::StateLogReward, Self::state_log_reward),
        (Quantity::LogPrior, Self::log_prior),
        (Quantity::LogPaths, Self::log_paths),
        (Quantity::NextLogPaths, Self::next_log_paths),
    ];

    /// Evaluates the policy in each distinct state of the trajectories, and the reward of each terminal
    /// state.
    pub(super) fn new(
        env: &'a E,
        reward: &'a dyn Reward<E::States>,
        policy: &'a dyn Policy<E>,
        trajectories: &'a Trajectories<E>,
        scoring: Scoring<'a>,
    ) -> Result<Self> {
        let (raw_log_reward, log_reward) = both_log_rewards(env, reward, trajectories, scoring.exponent)?;
        let visited = VisitedStates::new(env, policy, trajectories);
        let all: Vec<usize> = (0..visited.n_rows).collect();
        let actions = visited.rename(Direction::Forward, &all, trajectories.actions().clone())?;
        let wants = scoring.needs | Quantities::PF | Quantities::PB;
        let Evaluation { pf, pb, prior, values } = visited.evaluate(policy, wants)?;
        let pf = pf.ok_or_else(no_pf)?;
        let pb = pb.ok_or_else(|| Quantity::LogPb.missing(SCORING))?;
        let is_wide = log_reward.iter().any(|value| value.abs() >= MIN_SIZE_FOR_DOUBLE);
        let log_pf = flat(Quantity::LogPf, pf.log_prob(visited.groups_before(), &actions)?, visited.n_rows)?;
        let log_pf = if is_wide { log_pf.to_kind(Kind::Double) } else { log_pf };
        Ok(Self {
            env,
            reward,
            policy,
            trajectories,
            scoring,
            visited_states: visited,
            actions,
            pf,
            pb,
            prior,
            values,
            raw_log_reward,
            log_reward,
            log_pf,
            is_wide,
        })
    }

    /// Returns the scores that are the same for every objective: log-probabilities, log-rewards, and the
    /// offsets of the trajectories.
    pub(super) fn base_scores(&self) -> Result<Scores> {
        let Self { visited_states: visited, trajectories, .. } = self;
        let (kind, device) = self.kind_and_device();
        let (inner, after) = visited.inner();
        let undo =
            visited.rename(Direction::Backward, after, trajectories.reverse_actions().select(inner))?;
        let log_pb_inner = self.pb.log_prob(&visited.group_of(after), &undo)?;
        let log_pb_inner =
            to_device(&flat(Quantity::LogPb, log_pb_inner, after.len())?.to_kind(kind), device);
        let log_pb = Tensor::zeros([visited.n_rows as i64], (kind, device));
        let log_pb = log_pb.index_add(0, &index_tensor(inner, device), &log_pb_inner);
        let offsets = trajectories.offsets().to_vec();
        let log_reward = self.to_scores(&self.log_reward);
        let mut scores = Scores::new(offsets, self.log_pf.shallow_clone(), log_pb, log_reward);
        scores.inner = inner.to_vec();
        scores.ahead = self.scoring.ahead.map(<[bool]>::to_vec);
        scores.raw_log_reward = self.to_scores(&self.raw_log_reward);
        let mut instances = self.env.instances(trajectories.terminal_states());
        instances.dedup();
        scores.instance = instances.first().copied().filter(|_| instances.len() == 1);
        scores.conditions = trajectories.conditions().map(Tensor::shallow_clone);
        scores.distinct = (visited.n_distinct(), visited.len());
        let needs = self.scoring.needs;
        if needs.has(Quantity::LearnedLogPb)
            && scores.log_pf.requires_grad()
            && !scores.log_pb.requires_grad()
        {
            return Err(Quantity::LearnedLogPb.missing(SCORING));
        }
        Ok(scores)
    }

    /// Returns the policy's estimate of a quantity for the state before each transition, `[transitions]`. The
    /// function removes the quantity from the batch, so it can be called only once per quantity.
    pub(super) fn per_state(&mut self, quantity: Quantity) -> Result<Tensor> {
        let values = self.values.take_flat(quantity, self.visited_states.n_distinct(), SCORING)?;
        Ok(self.widened(select_rows(&values, self.rows())))
    }

    /// Returns the quantities that flow matching needs.
    pub(super) fn edge_flows(&self) -> Result<Values> {
        edge_flows(self.env, self.policy, &self.visited_states, &self.pf, &self.pb, self.trajectories)
    }

    fn entropy(&mut self) -> Result<Tensor> {
        let entropies = self.pf.entropies().ok_or_else(|| Quantity::Entropy.missing(SCORING))?;
        self.values.insert(Quantity::Entropy, entropies);
        self.per_state(Quantity::Entropy)
    }

    fn all_log_pf(&mut self) -> Result<Tensor> {
        let (offsets, actions) = self.pf.support(self.rows()).map_err(|error| match error {
            Error::Missing { .. } => Quantity::AllLogPf.missing(SCORING),
            error => error,
        })?;
        let counts = offsets.windows(2).map(|ends| ends[1] - ends[0]);
        let rows = self.rows().iter().zip(counts).flat_map(|(&row, n)| std::iter::repeat_n(row, n));
        Ok(self.widened(self.pf.log_prob(&rows.collect::<Vec<_>>(), &actions)?))
    }

    fn log_exit(&mut self) -> Result<Tensor> {
        let exits = exits_of(self.env, &self.visited_states, self.trajectories)?;
        Ok(self.widened(log_exits(&self.pf, self.rows(), &exits)?))
    }

    fn log_z(&mut self) -> Result<Tensor> {
        if self.env.n_instances() > 1 {
            return Err(Error::missing(
                "an objective with one log Z",
                "the log Z of each instance of the environment",
                "use an objective of state flows, whose flow at the initial state is the instance's log Z \
                 (detailed or subtrajectory balance)",
            ));
        }
        let n = self.trajectories.len();
        let log_z = self.policy.log_z(self.trajectories.conditions(), n);
        let log_z = log_z.ok_or_else(|| Quantity::LogZ.missing(SCORING))?;
        Ok(self.widened(flat(Quantity::LogZ, log_z, n)?))
    }

    fn log_reward_change(&mut self) -> Result<Tensor> {
        let ends = [self.raw_log_reward.as_slice(), &self.log_reward];
        let Self { env, reward, visited_states: visited, trajectories, scoring, .. } = self;
        let change = log_reward_changes(*env, *reward, visited, trajectories, ends, scoring)?;
        Ok(self.to_scores(&change))
    }

    fn state_log_reward(&mut self) -> Result<Tensor> {
        let conditions = self.visited_states.conditions.as_ref();
        let exponent = self.scoring.exponent;
        let partial = partial_log_rewards(self.env, self.reward, self.trajectories, conditions, exponent)?;
        Ok(self.to_scores(&partial))
    }

    fn log_prior(&mut self) -> Result<Tensor> {
        let prior = self.prior.as_ref().ok_or_else(|| Quantity::LogPrior.missing(SCORING))?;
        let rows = self.rows();
        let log_prior = flat(Quantity::LogPrior, prior.log_prob(rows, &self.actions)?, rows.len())?;
        let (kind, device) = self.kind_and_device();
        Ok(to_device(&log_prior.detach().to_kind(kind), device))
    }

    /// Returns the policy's estimate of log n for the state before each transition that isn't an exit. Here n
    /// is the number of paths from the initial state to the state. The initial state has one path, so its log
    /// n is 0.
    fn log_paths(&mut self) -> Result<Tensor> {
        let (inner, _) = self.visited_states.inner();
        let mut has_parents = vec![1.0; self.visited_states.n_rows];
        for &start in &self.trajectories.offsets()[..self.trajectories.len()] {
            has_parents[start] = 0.0;
        }
        let has_parents: Vec<f64> = inner.iter().map(|&row| has_parents[row]).collect();
        let inner = self.visited_states.group_of(inner);
        let paths = self.paths_of(&inner)?;
        Ok(&paths * from_host(&has_parents, paths.kind(), paths.device()))
    }

    /// Returns the policy's estimate of log n for the state after each transition that isn't an exit. Here n
    /// is the number of paths from the initial state to the state.
    fn next_log_paths(&mut self) -> Result<Tensor> {
        let (_, after) = self.visited_states.inner();
        let after = self.visited_states.group_of(after);
        self.paths_of(&after)
    }

    /// Returns the policy's estimates of log n, the log of the number of paths from the initial state, for
    /// the distinct states with these indices.
    fn paths_of(&mut self, groups: &[usize]) -> Result<Tensor> {
        let paths = self.values.take_flat(Quantity::LogPaths, self.visited_states.n_distinct(), SCORING)?;
        let selected = select_rows(&paths, groups);
        self.values.insert(Quantity::LogPaths, paths);
        Ok(selected)
    }

    /// Returns the index, among the distinct states, of the state before each transition.
    fn rows(&self) -> &[usize] {
        self.visited_states.groups_before()
    }

    fn kind_and_device(&self) -> (Kind, Device) {
        (self.log_pf.kind(), self.log_pf.device())
    }

    fn to_scores(&self, values: &[f64]) -> Tensor {
        let (kind, device) = self.kind_and_device();
        from_host(values, kind, device)
    }

    /// Converts a tensor to double precision if the batch's log-rewards are so large that scores need it.
    fn widened(&self, tensor: Tensor) -> Tensor {
        if self.is_wide { tensor.to_kind(Kind::Double) } else { tensor }
    }
}

/// Returns the exit action of the state before each transition. The policy evaluates only one of several
/// equal or isomorphic states, so the actions are renamed to the node labels of this state.
pub(super) fn exits_of<E: Env>(
    env: &E,
    visited: &VisitedStates<'_, E>,
    trajectories: &Trajectories<E>,
) -> Result<E::Actions> {
    let all: Vec<usize> = (0..visited.n_rows).collect();
    let exits = env.exit_actions(trajectories.states()).ok_or_else(|| Quantity::LogExit.missing(SCORING))?;
    visited.rename(Direction::Forward, &all, exits)
}

/// Returns the log-probability of the exit action in each of the states that have the indices `rows` in `pf`.
pub(super) fn log_exits<D: Distribution>(pf: &D, rows: &[usize], exits: &D::Actions) -> Result<Tensor> {
    let log_exit = pf.log_prob(rows, exits).map_err(|error| match error {
        Error::IllegalAction { .. } | Error::IllegalStep { .. } => Quantity::LogExit.missing(SCORING),
        other => other,
    })?;
    flat(Quantity::LogExit, log_exit, rows.len())
}

pub(super) fn no_pf() -> Error {
    Quantity::LogPf.missing(SCORING)
}
