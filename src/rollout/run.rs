//! The roll-out loop. The loop samples in both directions, with all policies, and also replays stored
//! actions.

use super::Trajectories;
use super::VisitedRows;
use crate::env::{Direction, Env, Rows};
use crate::{Error, Result};

/// The settings of a roll-out.
pub(crate) struct Rollout {
    pub(crate) direction: Direction,
    /// The number of steps after which the roll-out fails with an error.
    pub(crate) max_steps: usize,
    /// `true` to store every state. Otherwise terminal states are the only states that are stored, which
    /// needs less memory and is enough to fill a replay buffer.
    pub(crate) keep_states: bool,
}

/// The transitions of all trajectories, in the order in which the roll-out made them: the first step of each
/// trajectory, then the second step of each, and so on. `Rollout::finish` sorts them by trajectory.
struct StepRows<E: Env> {
    /// The number of steps of each trajectory so far.
    lengths: Vec<usize>,
    states: Option<E::States>,
    actions: Option<E::Actions>,
    reverse: Option<E::Actions>,
    exit: Vec<bool>,
    /// The index of each transition's trajectory, and the number of steps that this trajectory had made
    /// before the transition.
    origins: Vec<(usize, usize)>,
}

impl<E: Env> StepRows<E> {
    fn new(n: usize) -> Self {
        let lengths = vec![0; n];
        Self { lengths, states: None, actions: None, reverse: None, exit: Vec::new(), origins: Vec::new() }
    }

    fn push(&mut self, live: &[usize], states: Option<E::States>, actions: E::Actions, reverse: E::Actions) {
        for &i in live {
            self.origins.push((i, self.lengths[i]));
            self.lengths[i] += 1;
        }
        append(&mut self.states, states);
        append(&mut self.actions, Some(actions));
        append(&mut self.reverse, Some(reverse));
    }
}

/// Appends the batch `more` to the batch `rows` if both are `Some`. If `rows` is `None`, it is set to `more`.
fn append<R: Rows>(rows: &mut Option<R>, more: Option<R>) {
    match (rows.as_mut(), more) {
        (Some(rows), Some(more)) => rows.append(more),
        (None, more) => *rows = more,
        (Some(_), None) => {}
    }
}

impl Rollout {
    /// Runs trajectories from the states `start` until every trajectory is finished, and returns them in
    /// forward order.
    ///
    /// `choose(states, live, lengths)` returns an action for each unfinished trajectory: `states` are the
    /// states of these trajectories, `live` their indices, and `lengths` the number of steps of all
    /// trajectories so far. Finished trajectories are left out in later steps.
    pub(crate) fn run<E: Env>(
        &self,
        env: &E,
        start: E::States,
        mut choose: impl FnMut(&E::States, &[usize], &[usize]) -> Result<E::Actions>,
    ) -> Result<Trajectories<E>> {
        let n = start.len();
        let mut live: Vec<usize> = (0..n).collect();
        let mut rows = StepRows::new(n);
        let mut terminal = None;
        let mut states = start;
        if self.direction == Direction::Backward {
            terminal = Some(states.clone());
            if let Some(exits) = env.exit_actions(&states) {
                let stored = self.keep_states.then(|| states.clone());
                rows.push(&live, stored, exits.clone(), exits);
                rows.exit = vec![true; n];
            }
            let initial = env.is_initial(&states);
            live.retain(|&i| !initial[i]);
            states = states.select(&live);
        }
        let mut ended_at = Vec::with_capacity(n);
        for step_index in 0.. {
            if live.is_empty() {
                break;
            }
            if step_index == self.max_steps {
                let direction = self.direction;
                let limit = self.max_steps;
                return Err(Error::StepLimit { direction, limit, live: live.len(), n });
            }
            let actions = choose(&states, &live, &rows.lengths)?;
            let before = (self.keep_states && self.direction == Direction::Forward).then(|| states.clone());
            let step = env.step(self.direction, &mut states, &actions)?;
            match self.direction {
                Direction::Forward => rows.push(&live, before, actions, step.reverse),
                // A backward step is stored as the forward transition that it undoes, which starts in the
                // parent.
                Direction::Backward => {
                    rows.push(&live, self.keep_states.then(|| states.clone()), step.reverse, actions);
                }
            }
            rows.exit.extend(step.exit);
            let (ended, unfinished): (Vec<usize>, Vec<usize>) = (0..live.len()).partition(|&k| step.done[k]);
            if self.direction == Direction::Forward && !ended.is_empty() {
                ended_at.extend(ended.iter().map(|&k| live[k]));
                append(&mut terminal, Some(states.select(&ended)));
            }
            if !ended.is_empty() {
                states = states.select(&unfinished);
                live = unfinished.iter().map(|&k| live[k]).collect();
            }
        }
        self.finish(rows, terminal, &ended_at)
    }

    /// Sorts the recorded transitions by trajectory, in forward order, and returns the trajectories.
    /// `terminal` holds the objects. A forward roll-out lists them in the order in which trajectories ended,
    /// and `ended_at` holds the indices of these trajectories in the same order.
    fn finish<E: Env>(
        &self,
        rows: StepRows<E>,
        terminal: Option<E::States>,
        ended_at: &[usize],
    ) -> Result<Trajectories<E>> {
        let n = rows.lengths.len();
        let (Some(terminal), Some(actions), Some(reverse), true) =
            (terminal, rows.actions, rows.reverse, n > 0 && !rows.lengths.contains(&0))
        else {
            return Err(Error::config(
                "the batch of trajectories",
                format!("{n} trajectories"),
                "at least one trajectory, each with at least one step",
            ));
        };
        let mut offsets = vec![0];
        for length in &rows.lengths {
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        let mut order = vec![0; rows.origins.len()];
        for (row, &(i, step)) in rows.origins.iter().enumerate() {
            let position = match self.direction {
                Direction::Forward => offsets[i] + step,
                Direction::Backward => offsets[i + 1] - 1 - step,
            };
            order[position] = row;
        }
        let terminal = match self.direction {
            Direction::Backward => terminal,
            Direction::Forward => {
                let mut position = vec![0; n];
                for (k, &i) in ended_at.iter().enumerate() {
                    position[i] = k;
                }
                terminal.permute(&position)
            }
        };
        Ok(Trajectories {
            states: VisitedRows::OnHost(
                rows.states.map_or_else(|| terminal.select(&[]), |states| states.permute(&order)),
            ),
            actions: actions.permute(&order),
            reverse: reverse.permute(&order),
            exit: order.iter().map(|&row| rows.exit[row]).collect(),
            offsets,
            terminal,
            conditions: None,
            log_rewards: None,
        })
    }
}
