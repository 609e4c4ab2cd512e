use tch::{Kind, Tensor};

use super::VisitedRows;
use super::container::parts::{Owned, Parts};
use super::container::pick;
use super::run::Rollout;
use super::{ReplayEnv, Walks};
use crate::condition::Conditions;
use crate::env::{
    Direction, Env, Reward, Rows, check_instances, check_log_rewards, check_one_instance, log_rewards,
};
use crate::error::check_len;
use crate::tensor::to_host;
use crate::{Error, Result};

/// A batch of complete trajectories in forward order. Their lengths may differ.
///
/// A row is a transition. The rows of trajectory `i` are `offsets[i]..offsets[i + 1]`, in order. Each row
/// holds the state before the transition, the forward action taken in this state, and the backward action
/// that undoes it, in the labels of the next state. Trajectories that were sampled backwards are stored in
/// forward order, too.
///
/// In an environment up to isomorphism, if a trajectory was sampled backwards, the state to which the action
/// of row `t` leads and the stored state of row `t + 1` may be labelled differently. The backward action uses
/// the labels of row `t + 1`.
pub struct Trajectories<E: Env> {
    pub(crate) states: VisitedRows<E::States>,
    pub(crate) actions: E::Actions,
    pub(crate) reverse: E::Actions,
    pub(crate) exit: Vec<bool>,
    pub(crate) offsets: Vec<usize>,
    pub(crate) terminal: E::States,
    pub(crate) conditions: Option<Conditions>,
    pub(crate) log_rewards: Option<Vec<f64>>,
}

// `Clone` is implemented by hand, because a derived implementation would require `E: Clone`.
impl<E: Env> Clone for Trajectories<E> {
    fn clone(&self) -> Self {
        self.pick(&(0..self.len()).collect::<Vec<_>>())
    }
}

impl<E: Env> std::fmt::Debug for Trajectories<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trajectories").field("offsets", &self.offsets).finish_non_exhaustive()
    }
}

impl<E: Env> Trajectories<E> {
    /// Returns the number of trajectories.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns `true` if there is no trajectory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of transitions of all trajectories, exit actions included.
    #[must_use]
    pub fn n_transitions(&self) -> usize {
        self.exit.len()
    }

    /// Returns the index of each trajectory's first transition, followed by the number of transitions, `[n +
    /// 1]`.
    #[must_use]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Returns the state before each action, trajectory by trajectory. The result contains all visited
    /// states, except terminal states that are reached without an exit action.
    #[must_use]
    pub fn states(&self) -> &E::States {
        self.states.host()
    }

    /// Returns the forward action of each transition.
    #[must_use]
    pub fn actions(&self) -> &E::Actions {
        &self.actions
    }

    /// Returns the backward action that undoes each transition, in the labels of the state after the
    /// transition. The entries of exits have no meaning.
    #[must_use]
    pub fn reverse_actions(&self) -> &E::Actions {
        &self.reverse
    }

    /// Returns `true` for each transition that is an exit action.
    #[must_use]
    pub fn is_exit(&self) -> &[bool] {
        &self.exit
    }

    /// Returns the finished objects, one per trajectory.
    #[must_use]
    pub fn terminal_states(&self) -> &E::States {
        &self.terminal
    }

    /// Returns the condition vectors, `[n, C]`; `None` without conditions.
    #[must_use]
    pub fn conditions(&self) -> Option<&Tensor> {
        self.conditions.as_ref().map(|c| &c.0)
    }

    /// Returns the mean number of actions per trajectory, exits included; 0 without trajectories.
    #[must_use]
    pub fn mean_len(&self) -> f64 {
        self.n_transitions() as f64 / self.len().max(1) as f64
    }

    /// Records log-rewards, one per trajectory. Files store them with the trajectories, and training uses
    /// them instead of evaluating the reward.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of log-rewards; [`Error::NonFinite`] for a log-reward that isn't
    /// finite.
    pub fn with_log_rewards(mut self, log_rewards: Vec<f64>) -> Result<Self> {
        check_log_rewards(&log_rewards, self.terminal_states())?;
        self.log_rewards = Some(log_rewards);
        Ok(self)
    }

    /// Returns the log-rewards recorded by [`with_log_rewards`](Self::with_log_rewards) or read from a file;
    /// `None` if none are recorded.
    #[must_use]
    pub fn recorded_log_rewards(&self) -> Option<&[f64]> {
        self.log_rewards.as_deref()
    }

    /// Evaluates a reward, and returns log R of each finished object.
    ///
    /// # Errors
    /// The errors of [`log_rewards`].
    pub fn log_rewards(&self, reward: &dyn Reward<E::States>) -> Result<Vec<f64>> {
        match (self.states.device(), reward.on_tensors()) {
            (Some(kept), Some(tensors)) if self.conditions.is_none() => {
                let values = to_host(&tensors.log_rewards(&kept.terminal)?.to_kind(Kind::Double));
                check_log_rewards(&values, &self.terminal)?;
                Ok(values)
            }
            _ => log_rewards(reward, &self.terminal, self.conditions()),
        }
    }

    /// Returns the trajectories in compact form ([`Walks`]: actions and terminal states), which a replay
    /// buffer stores. [`replay`](Self::replay) restores the trajectories from the actions.
    ///
    /// In an environment up to isomorphism, nodes are labelled in the order in which they were inserted, in
    /// actions and terminal states.
    ///
    /// # Errors
    /// The errors of [`Symmetry::to_insertion_order`](crate::env::Symmetry::to_insertion_order).
    pub fn walks(&self, env: &E) -> Result<Walks<E>> {
        // States on a device belong to labelled environments, whose actions aren't renamed, so these states
        // aren't copied to the host.
        let renamed = match self.states.device() {
            Some(_) => None,
            None => env.symmetry().to_insertion_order(
                self.states(),
                &self.actions,
                &self.reverse,
                &self.offsets,
            )?,
        };
        let (actions, terminal) = renamed.unwrap_or_else(|| (self.actions.clone(), self.terminal.clone()));
        Ok(Walks { actions, terminal, offsets: self.offsets.clone(), conditions: self.conditions.clone() })
    }
}

/// Returns the indices of the transitions (or actions) of the trajectories with the indices `walks`. The
/// second list holds the offsets that divide the first list into trajectories.
pub(crate) fn rows_of(offsets: &[usize], walks: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut rows = Vec::new();
    let mut starts = vec![0];
    for &i in walks {
        rows.extend(offsets[i]..offsets[i + 1]);
        starts.push(rows.len());
    }
    (rows, starts)
}

impl<E: Env> Parts for Trajectories<E> {
    fn count(&self) -> usize {
        self.len()
    }
    fn pick(&self, trajectories: &[usize]) -> Self {
        let (rows, offsets) = rows_of(&self.offsets, trajectories);
        Self {
            states: self.states.select(&rows, trajectories),
            actions: self.actions.select(&rows),
            reverse: self.reverse.select(&rows),
            exit: pick(&self.exit, &rows),
            offsets,
            terminal: self.terminal.select(trajectories),
            conditions: self.conditions.as_ref().map(|c| c.pick(trajectories)),
            log_rewards: self.log_rewards.as_ref().map(|known| pick(known, trajectories)),
        }
    }
}

impl<E: Env> Owned for Trajectories<E> {
    fn join(&mut self, other: Self) {
        self.log_rewards = match (self.log_rewards.take(), other.log_rewards) {
            (Some(first), Some(second)) => Some([first, second].concat()),
            (recorded, None) if other.exit.is_empty() => recorded,
            (None, recorded) if self.exit.is_empty() => recorded,
            // If only one of two non-empty batches has recorded log-rewards, they are dropped, because either
            // all trajectories of a batch have a recorded log-reward or none has.
            _ => None,
        };
        let shift = self.exit.len();
        self.offsets.extend(other.offsets[1..].iter().map(|o| o + shift));
        self.states.append(other.states, [&self.terminal, &other.terminal]);
        self.actions.append(other.actions);
        self.reverse.append(other.reverse);
        self.exit.extend(other.exit);
        self.terminal.append(other.terminal);
    }
    fn vectors(&mut self) -> &mut Option<Conditions> {
        &mut self.conditions
    }
}

impl<E: ReplayEnv> Trajectories<E> {
    /// Replays the actions of stored or external trajectories, starting in the initial state, and returns the
    /// trajectories. Every action is checked.
    ///
    /// In an environment up to isomorphism the nodes of states are labelled in the order in which they were
    /// inserted.
    ///
    /// # Errors
    /// [`Error::IllegalAction`] (in continuous environments [`Error::IllegalStep`]) for an action that isn't
    /// legal in its state, with the index of the trajectory as row; [`Error::Contract`] for a trajectory that
    /// continues after a terminal state or stops before it, and for offsets that don't divide the actions
    /// into trajectories; [`Error::Config`] for an environment of several instances.
    pub fn replay(env: &E, actions: &E::Actions, offsets: &[usize]) -> Result<Self> {
        check_one_instance(
            env,
            "one instance; `Trajectories::replay_of` takes the instance of each trajectory",
        )?;
        Self::replay_of(env, &vec![0; offsets.len().saturating_sub(1)], actions, offsets)
    }

    /// Replays actions as [`replay`](Self::replay) does, for trajectories of the given instances of the
    /// environment.
    ///
    /// # Errors
    /// The errors of [`replay`](Self::replay); [`Error::OutOfRange`] for an instance that the environment
    /// doesn't have; [`Error::Shape`] unless there is one instance for each trajectory.
    pub fn replay_of(env: &E, instances: &[u32], actions: &E::Actions, offsets: &[usize]) -> Result<Self> {
        let n = offsets.len().saturating_sub(1);
        check_len("instances", n, instances.len(), "give one instance for each trajectory")?;
        check_instances(env, instances)?;
        let first = offsets.first().copied().unwrap_or(0);
        let last = offsets.last().copied().unwrap_or(0);
        if first != 0 || last != actions.len() || !offsets.is_sorted() {
            return Err(Error::contract(
                "the offsets of trajectories ascend from 0 to the number of actions",
                format!("offsets {offsets:?} for {} actions", actions.len()),
            ));
        }
        let longest = offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        let rollout = Rollout { direction: Direction::Forward, max_steps: longest + 1, keep_states: true };
        let out = rollout.run(env, env.initial(instances), |states, live, lengths| {
            let mut rows = Vec::with_capacity(live.len());
            for &i in live {
                let row = offsets[i] + lengths[i];
                if row >= offsets[i + 1] {
                    return Err(walk_end(
                        "the actions of a trajectory go on until a terminal state",
                        i,
                        lengths[i],
                    ));
                }
                rows.push(row);
            }
            let next_actions = actions.select(&rows);
            env.check_actions(states, &next_actions).map_err(|error| in_trajectory(error, live))?;
            Ok(next_actions)
        })?;
        if let Some(i) = (0..n).find(|&i| out.offsets[i + 1] - out.offsets[i] != offsets[i + 1] - offsets[i])
        {
            let steps = out.offsets[i + 1] - out.offsets[i];
            return Err(walk_end("the actions of a trajectory stop at its terminal state", i, steps));
        }
        Ok(out)
    }

    /// Returns a trajectory to each of these finished objects. The backward actions come from
    /// [`ReplayEnv::way_back`]; the result is in forward order. The last action is the exit, if the
    /// environment has an exit.
    pub(super) fn default_paths(env: &E, terminal: &E::States) -> Result<Self> {
        if terminal.is_empty() {
            return Ok(Self {
                states: VisitedRows::OnHost(env.initial(&[])),
                actions: env.no_actions(),
                reverse: env.no_actions(),
                exit: Vec::new(),
                offsets: vec![0],
                terminal: env.initial(&[]),
                conditions: None,
                log_rewards: None,
            });
        }
        let rollout =
            Rollout { direction: Direction::Backward, max_steps: MAX_STEPS_BACK, keep_states: true };
        rollout.run(env, terminal.clone(), |states, _, _| env.way_back(states))
    }
}

/// The maximum number of steps of a path that `default_paths` returns.
const MAX_STEPS_BACK: usize = 1_000_000;

/// Returns the error for recorded actions that end before a terminal state or continue after it. `check`
/// names the violated rule.
fn walk_end(check: &'static str, trajectory: usize, steps: usize) -> Error {
    Error::contract(check, format!("this isn't so for trajectory {trajectory} after {steps} steps"))
}

/// Replaces the row in an error, which is an index into `live` (the unfinished trajectories), by the index of
/// the trajectory.
fn in_trajectory(error: Error, live: &[usize]) -> Error {
    match error {
        Error::IllegalAction { row, direction, slot, n_slots, n_legal, detail } => {
            Error::IllegalAction { row: live[row], direction, slot, n_slots, n_legal, detail }
        }
        Error::IllegalStep { row, direction, detail } => {
            Error::IllegalStep { row: live[row], direction, detail }
        }
        other => other,
    }
}
