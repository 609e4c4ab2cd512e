//! Trajectories: ragged, flat rows of (state, action) plus offsets. No padding, no dummy action, no sink row.

mod rollout;
mod views;
mod walks;

pub(crate) use rollout::{Recorded, Rollout};
pub use views::Transitions;
pub use walks::Walks;

use tch::Tensor;

use crate::env::{Direction, DiscreteEnv, Env, Rows, Slots};
use crate::{Error, Result};

/// A batch of complete forward trajectories of different lengths.
///
/// The rows of trajectory `i` are `offsets[i]..offsets[i + 1]`, in order. Row `t` holds the state before its action, the
/// forward action, and the backward action that undoes it, named in the state after it. Trajectories that were sampled
/// backwards are converted on the way in: they look no different.
///
/// Up to isomorphism the state after row `t` and the state of row `t + 1` may differ in their labels when the walk was taken
/// backwards; `reverse` is named in the latter.
pub struct Trajectories<E: Env> {
    pub(crate) states: E::States,
    pub(crate) actions: E::Actions,
    pub(crate) reverse: E::Actions,
    pub(crate) exit: Vec<bool>,
    pub(crate) offsets: Vec<usize>,
    pub(crate) terminal: E::States,
    pub(crate) conditions: Option<Conditions>,
}

/// A condition vector for each trajectory, `[n, C]`; it enters policy, log Z and reward.
#[derive(Debug)]
pub struct Conditions(pub Tensor);

impl Clone for Conditions {
    fn clone(&self) -> Self {
        Self(self.0.shallow_clone())
    }
}

impl<E: Env> Clone for Trajectories<E> {
    fn clone(&self) -> Self {
        Self {
            states: self.states.clone(),
            actions: self.actions.clone(),
            reverse: self.reverse.clone(),
            exit: self.exit.clone(),
            offsets: self.offsets.clone(),
            terminal: self.terminal.clone(),
            conditions: self.conditions.clone(),
        }
    }
}

impl<E: Env> std::fmt::Debug for Trajectories<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trajectories").field("offsets", &self.offsets).finish_non_exhaustive()
    }
}

impl<E: Env> Trajectories<E> {
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

    /// The number of transitions of all trajectories, exit actions included.
    #[must_use]
    pub fn n_transitions(&self) -> usize {
        self.exit.len()
    }

    /// Where each trajectory's rows start, `[n + 1]`.
    #[must_use]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The states before each action, trajectory by trajectory: every visited state but terminal ones without an exit.
    #[must_use]
    pub fn states(&self) -> &E::States {
        &self.states
    }

    /// The forward actions.
    #[must_use]
    pub fn actions(&self) -> &E::Actions {
        &self.actions
    }

    /// The backward action of each transition, named in the state that it led to; meaningless for exits.
    #[must_use]
    pub fn reverse_actions(&self) -> &E::Actions {
        &self.reverse
    }

    /// Whether each action is the exit action.
    #[must_use]
    pub fn is_exit(&self) -> &[bool] {
        &self.exit
    }

    /// The finished objects, one per trajectory.
    #[must_use]
    pub fn terminal_states(&self) -> &E::States {
        &self.terminal
    }

    /// The condition vectors, `[n, C]`, if there are any.
    #[must_use]
    pub fn conditions(&self) -> Option<&Tensor> {
        self.conditions.as_ref().map(|c| &c.0)
    }

    /// The mean number of actions, exits included.
    #[must_use]
    pub fn mean_len(&self) -> f64 {
        self.n_transitions() as f64 / self.len().max(1) as f64
    }

    /// Adds the trajectories of another batch behind one's own.
    ///
    /// # Errors
    /// [`Error::Missing`] if only one of the two has conditions.
    pub fn append(&mut self, other: Self) -> Result<()> {
        self.conditions = match (self.conditions.take(), other.conditions) {
            (None, None) => None,
            (Some(mine), Some(theirs)) => Some(Conditions(Tensor::cat(&[mine.0, theirs.0], 0))),
            _ => {
                return Err(Error::Missing {
                    objective: "appending trajectories",
                    needs: "conditions on both batches or on neither",
                    remedy: "sample both with conditions",
                });
            }
        };
        let shift = self.n_transitions();
        self.offsets.extend(other.offsets[1..].iter().map(|o| o + shift));
        self.states.append(other.states);
        self.actions.append(other.actions);
        self.reverse.append(other.reverse);
        self.exit.extend(other.exit);
        self.terminal.append(other.terminal);
        Ok(())
    }

    /// The trajectories at these indices, in this order.
    #[must_use]
    pub fn select(&self, trajectories: &[usize]) -> Self {
        let mut rows = Vec::new();
        let mut offsets = vec![0];
        for &i in trajectories {
            rows.extend(self.offsets[i]..self.offsets[i + 1]);
            offsets.push(rows.len());
        }
        let device_index =
            |conditions: &Tensor| conditions.index_select(0, &crate::dist::index(trajectories, conditions.device()));
        Self {
            states: self.states.select(&rows),
            actions: self.actions.select(&rows),
            reverse: self.reverse.select(&rows),
            exit: rows.iter().map(|&row| self.exit[row]).collect(),
            offsets,
            terminal: self.terminal.select(trajectories),
            conditions: self.conditions.as_ref().map(|c| Conditions(device_index(&c.0))),
        }
    }

    /// Terminal states and moves: what a replay buffer stores, and [`replay`](Self::replay) turns back.
    ///
    /// Up to isomorphism both are named in the order of insertion.
    ///
    /// # Errors
    /// Those of [`Env::to_insertion_order`].
    pub fn walks(&self, env: &E) -> Result<Walks<E>> {
        let renamed = env.to_insertion_order(&self.states, &self.actions, &self.reverse, &self.offsets)?;
        let (actions, terminal) = renamed.unwrap_or_else(|| (self.actions.clone(), self.terminal.clone()));
        Ok(Walks { actions, offsets: self.offsets.clone(), terminal })
    }
}

impl<E: DiscreteEnv> Trajectories<E> {
    /// Walks that were recorded, or that come from outside, step by step from the initial state; every action is checked.
    ///
    /// Up to isomorphism the terminal states are those of the replay, labelled in the order of insertion.
    ///
    /// # Errors
    /// [`Error::IllegalAction`] for an action that isn't legal where it is taken, with the trajectory as its row;
    /// [`Error::Contract`] for a walk that goes on behind its end or stops short of it, and for offsets that don't divide the
    /// actions into walks.
    pub fn replay(env: &E, actions: &Slots, offsets: &[usize]) -> Result<Self> {
        let n = offsets.len().saturating_sub(1);
        let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
        if first != 0 || last != actions.len() || !offsets.is_sorted() {
            return Err(Error::Contract {
                check: "the offsets of walks ascend from 0 to the number of actions",
                detail: format!("offsets {offsets:?} for {} actions", actions.len()),
            });
        }
        let longest = offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        let rollout = Rollout { direction: Direction::Forward, max_steps: longest + 1, keep_states: true };
        let out = rollout.run(env, env.initial(n), |states, live, lengths| {
            let masks = env.masks(Direction::Forward, states);
            let taken = live.iter().enumerate().map(|(row, &i)| {
                let place = offsets[i] + lengths[i];
                let slot = (place < offsets[i + 1]).then(|| actions.0.get(place)).flatten();
                let &slot = slot.ok_or_else(|| walk_end("a walk ends in a terminal state", i, lengths[i]))?;
                masks
                    .check(row, slot, || env.describe(Direction::Forward, states, row, slot))
                    .map_err(|error| in_trajectory(error, i))?;
                Ok(slot)
            });
            taken.collect::<Result<_>>().map(Slots)
        })?;
        if let Some(i) = (0..n).find(|&i| out.offsets[i + 1] - out.offsets[i] != offsets[i + 1] - offsets[i]) {
            let steps = out.offsets[i + 1] - out.offsets[i];
            return Err(walk_end("a walk stops at its terminal state", i, steps));
        }
        Ok(out.into_trajectories())
    }
}

fn walk_end(check: &'static str, trajectory: usize, steps: usize) -> Error {
    Error::Contract { check, detail: format!("trajectory {trajectory} after {steps} steps") }
}

fn in_trajectory(error: Error, trajectory: usize) -> Error {
    match error {
        Error::IllegalAction { direction, slot, n_slots, n_legal, detail, .. } => {
            Error::IllegalAction { row: trajectory, direction, slot, n_slots, n_legal, detail }
        }
        other => other,
    }
}
