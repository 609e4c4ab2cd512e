use tch::Tensor;

use super::Trajectories;
use super::container::parts::Parts;
use super::container::pick;
use crate::Result;
use crate::condition::Conditions;
use crate::env::{Env, Reward, Rows, log_rewards};

/// Single transitions, taken out of their trajectories, for training on transitions and for buffers of transitions.
///
/// [`Container`](super::Container) selects, samples and joins them.
pub struct Transitions<E: Env> {
    /// The state before.
    pub states: E::States,
    /// The forward action.
    pub actions: E::Actions,
    /// The state after; for an exit, the state before.
    pub next_states: E::States,
    /// The backward action that undoes it, in the labels of the state after; meaningless for exits.
    pub reverse_actions: E::Actions,
    /// Whether the action ends its trajectory.
    pub is_last: Vec<bool>,
    /// Whether the action is the exit.
    pub is_exit: Vec<bool>,
    /// The condition vector of each transition, `[n, C]`, if there are any.
    pub conditions: Option<Conditions>,
}

// Deriving it would ask for an environment that can be cloned.
impl<E: Env> Clone for Transitions<E> {
    fn clone(&self) -> Self {
        self.pick(&(0..self.len()).collect::<Vec<_>>())
    }
}

impl<E: Env> std::fmt::Debug for Transitions<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transitions").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<E: Env> Transitions<E> {
    /// The number of transitions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.is_last.len()
    }

    /// Whether there is no transition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_last.is_empty()
    }

    /// The condition vectors, `[n, C]`, if there are any.
    #[must_use]
    pub fn conditions(&self) -> Option<&Tensor> {
        self.conditions.as_ref().map(|c| &c.0)
    }

    /// log R of the object that each transition finishes; `None` if it finishes none. (torchgfn has minus infinity
    /// there, which looks like a reward of zero.)
    ///
    /// # Errors
    /// Those of [`log_rewards`](crate::env::log_rewards).
    pub fn log_rewards<R: Reward<E::States> + ?Sized>(&self, reward: &R) -> Result<Vec<Option<f64>>> {
        finished_log_rewards::<E::States, R>(reward, &self.next_states, &self.is_last, self.conditions.as_ref())
    }
}

/// log R of the finished states among some states.
pub(super) fn finished_log_rewards<S: Rows, R: Reward<S> + ?Sized>(
    reward: &R,
    states: &S,
    finished: &[bool],
    conditions: Option<&Conditions>,
) -> Result<Vec<Option<f64>>> {
    let rows: Vec<usize> = (0..finished.len()).filter(|&row| finished[row]).collect();
    let mut out = vec![None; finished.len()];
    if rows.is_empty() {
        return Ok(out);
    }
    let conditions = conditions.map(|c| c.pick(&rows).0);
    let values = log_rewards(reward, &states.select(&rows), conditions.as_ref())?;
    rows.iter().zip(values).for_each(|(&row, value)| out[row] = Some(value));
    Ok(out)
}

impl<E: Env> Parts for Transitions<E> {
    fn count(&self) -> usize {
        self.len()
    }
    fn pick(&self, rows: &[usize]) -> Self {
        Self {
            states: self.states.select(rows),
            actions: self.actions.select(rows),
            next_states: self.next_states.select(rows),
            reverse_actions: self.reverse_actions.select(rows),
            is_last: pick(&self.is_last, rows),
            is_exit: pick(&self.is_exit, rows),
            conditions: self.conditions.as_ref().map(|c| c.pick(rows)),
        }
    }
    fn join(&mut self, other: Self) {
        self.states.append(other.states);
        self.actions.append(other.actions);
        self.next_states.append(other.next_states);
        self.reverse_actions.append(other.reverse_actions);
        self.is_last.extend(other.is_last);
        self.is_exit.extend(other.is_exit);
    }
    fn vectors(&mut self) -> &mut Option<Conditions> {
        &mut self.conditions
    }
}

impl<E: Env> Trajectories<E> {
    /// For each row, the row of the state after its action: `Ok(row)` in [`states`](Trajectories::states), or `Err(i)`
    /// for the terminal state of trajectory `i`.
    pub(crate) fn next_rows(&self) -> Vec<std::result::Result<usize, usize>> {
        let mut next = Vec::with_capacity(self.n_transitions());
        for (i, ends) in self.offsets().windows(2).enumerate() {
            next.extend((ends[0] + 1..ends[1]).map(Ok));
            next.push(Err(i));
        }
        next
    }

    /// The trajectory of each row.
    fn owners(&self) -> Vec<usize> {
        let ends = self.offsets().windows(2).enumerate();
        ends.flat_map(|(i, ends)| std::iter::repeat_n(i, ends[1] - ends[0])).collect()
    }

    /// Every transition as a single one, trajectory by trajectory.
    #[must_use]
    pub fn transitions(&self) -> Transitions<E> {
        let next = self.next_rows();
        let n = self.n_transitions();
        let mut after = self.states().clone();
        after.append(self.terminal_states().clone());
        let rows: Vec<usize> = next.iter().map(|row| row.unwrap_or_else(|i| n + i)).collect();
        Transitions {
            states: self.states().clone(),
            actions: self.actions().clone(),
            next_states: after.select(&rows),
            reverse_actions: self.reverse_actions().clone(),
            is_last: next.iter().map(|row| row.is_err()).collect(),
            is_exit: self.is_exit().to_vec(),
            conditions: self.conditions.as_ref().map(|c| c.pick(&self.owners())),
        }
    }

    /// Every visited state once, trajectory by trajectory: those on the way, which aren't finished, then the terminal
    /// one.
    #[must_use]
    pub fn visited_states(&self) -> super::StatesContainer<E> {
        let n = self.n_transitions();
        let mut all = self.states().clone();
        all.append(self.terminal_states().clone());
        let (mut rows, mut owners) = (Vec::new(), Vec::new());
        for (i, ends) in self.offsets().windows(2).enumerate() {
            // An exit leaves its state as it is: that state is the terminal one.
            rows.extend((ends[0]..ends[1]).filter(|&row| !self.is_exit()[row]));
            rows.push(n + i);
            owners.resize(rows.len(), i);
        }
        let log_rewards = self.log_rewards.as_ref().map(|known| {
            let of = |(&row, &i): (&usize, &usize)| (row >= n).then(|| known[i]);
            rows.iter().zip(&owners).map(of).collect()
        });
        super::StatesContainer {
            states: all.select(&rows),
            finished: rows.iter().map(|&row| row >= n).collect(),
            conditions: self.conditions.as_ref().map(|c| c.pick(&owners)),
            log_rewards,
        }
    }
}
