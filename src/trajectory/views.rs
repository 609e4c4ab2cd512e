use super::Trajectories;
use crate::env::{Env, Rows};

/// Single transitions, taken out of their trajectories: what transition-wise training and buffers of transitions use.
pub struct Transitions<E: Env> {
    /// The state before.
    pub states: E::States,
    /// The forward action.
    pub actions: E::Actions,
    /// The state after; where the action is the exit, the state before.
    pub next_states: E::States,
    /// Whether the action ends its trajectory.
    pub is_last: Vec<bool>,
    /// Whether the action is the exit.
    pub is_exit: Vec<bool>,
}

impl<E: Env> Trajectories<E> {
    /// For each row, the row of the state after its action: `Ok(row)` in [`states`](Trajectories::states), or `Err(i)` for
    /// the terminal state of trajectory `i`.
    pub(crate) fn next_rows(&self) -> Vec<std::result::Result<usize, usize>> {
        let mut next = Vec::with_capacity(self.n_transitions());
        for (i, ends) in self.offsets().windows(2).enumerate() {
            next.extend((ends[0] + 1..ends[1]).map(Ok));
            next.push(Err(i));
        }
        next
    }

    /// Every transition on its own, trajectory by trajectory.
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
            is_last: next.iter().map(|row| row.is_err()).collect(),
            is_exit: self.is_exit().to_vec(),
        }
    }
}
