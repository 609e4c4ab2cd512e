//! The roll-out loop, shared by both directions, every policy, and the replay of recorded walks.

use super::{Trajectories, Walks};
use crate::env::{Direction, Env, Rows};
use crate::{Error, Result};

/// The settings of a roll-out.
pub(crate) struct Rollout {
    pub(crate) direction: Direction,
    pub(crate) max_steps: usize,
    /// Whether to keep every state. Otherwise only actions and terminal states are kept, which is cheap and enough to
    /// fill a buffer.
    pub(crate) keep_states: bool,
}

/// The result of a roll-out: rows in trajectory order, in the forward direction.
pub(crate) struct Recorded<E: Env> {
    states: Option<E::States>,
    actions: E::Actions,
    reverse: E::Actions,
    exit: Vec<bool>,
    pub(crate) offsets: Vec<usize>,
    terminal: E::States,
}

impl<E: Env> Recorded<E> {
    pub(crate) fn into_trajectories(self) -> Trajectories<E> {
        Trajectories {
            states: self.states.unwrap_or_else(|| self.terminal.select(&[])),
            actions: self.actions,
            reverse: self.reverse,
            exit: self.exit,
            offsets: self.offsets,
            terminal: self.terminal,
            conditions: None,
            log_rewards: None,
        }
    }

    pub(crate) fn into_walks(self) -> Walks<E> {
        Walks { actions: self.actions, offsets: self.offsets, terminal: self.terminal, conditions: None }
    }
}

/// Rows collected step by step for the whole batch, sorted into trajectory order at the end.
struct Levels<E: Env> {
    /// Steps of each trajectory so far.
    lengths: Vec<usize>,
    states: Option<E::States>,
    actions: Option<(E::Actions, E::Actions)>,
    exit: Vec<bool>,
    /// (trajectory, step) of each row.
    places: Vec<(usize, usize)>,
}

impl<E: Env> Levels<E> {
    fn push(&mut self, live: &[usize], states: Option<E::States>, actions: (E::Actions, E::Actions), exit: Vec<bool>) {
        for &i in live {
            self.places.push((i, self.lengths[i]));
            self.lengths[i] += 1;
        }
        self.exit.extend(exit);
        match (&mut self.states, states) {
            (Some(rows), Some(new)) => rows.append(new),
            (rows @ None, new) => *rows = new,
            (Some(_), None) => {}
        }
        match &mut self.actions {
            Some(rows) => {
                rows.0.append(actions.0);
                rows.1.append(actions.1);
            }
            None => self.actions = Some(actions),
        }
    }
}

impl Rollout {
    /// Runs from `start` until every trajectory is done.
    ///
    /// `choose(states, live, lengths)` picks an action for each live row; `live` holds their trajectories, `lengths`
    /// every trajectory's number of steps so far. Trajectories that are done leave the batch.
    pub(crate) fn run<E: Env>(
        &self,
        env: &E,
        start: E::States,
        mut choose: impl FnMut(&E::States, &[usize], &[usize]) -> Result<E::Actions>,
    ) -> Result<Recorded<E>> {
        let n = start.len();
        let mut live: Vec<usize> = (0..n).collect();
        let mut levels =
            Levels { lengths: vec![0; n], states: None, actions: None, exit: Vec::new(), places: Vec::new() };
        let mut terminal = None;
        let mut states = start;
        if self.direction == Direction::Backward {
            terminal = Some(states.clone());
            if let Some(exits) = env.exit_actions(&states) {
                let kept = self.keep_states.then(|| states.clone());
                levels.push(&live, kept, (exits.clone(), exits), vec![true; n]);
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
                let (direction, limit) = (self.direction, self.max_steps);
                return Err(Error::StepLimit { direction, limit, live: live.len(), n });
            }
            let actions = choose(&states, &live, &levels.lengths)?;
            let before = (self.keep_states && self.direction == Direction::Forward).then(|| states.clone());
            let step = env.step(self.direction, &mut states, &actions)?;
            let (kept, actions) = match self.direction {
                Direction::Forward => (before, (actions, step.reverse)),
                // A backward step becomes a forward row that starts in the parent.
                Direction::Backward => (self.keep_states.then(|| states.clone()), (step.reverse, actions)),
            };
            levels.push(&live, kept, actions, step.exit);
            let (ended, going): (Vec<usize>, Vec<usize>) = (0..live.len()).partition(|&k| step.done[k]);
            if self.direction == Direction::Forward && !ended.is_empty() {
                ended_at.extend(ended.iter().map(|&k| live[k]));
                let finished = states.select(&ended);
                match &mut terminal {
                    Some(rows) => E::States::append(rows, finished),
                    None => terminal = Some(finished),
                }
            }
            if !ended.is_empty() {
                states = states.select(&going);
                live = going.iter().map(|&k| live[k]).collect();
            }
        }
        self.finish(levels, terminal, &ended_at)
    }

    fn finish<E: Env>(
        &self,
        levels: Levels<E>,
        terminal: Option<E::States>,
        ended_at: &[usize],
    ) -> Result<Recorded<E>> {
        let n = levels.lengths.len();
        let (Some(terminal), Some((actions, reverse)), None) =
            (terminal, levels.actions, levels.lengths.iter().position(|&l| l == 0).or((n == 0).then_some(0)))
        else {
            return Err(Error::config(
                "the batch of trajectories",
                format!("{n} trajectories"),
                "at least one trajectory, each with at least one step",
            ));
        };
        let mut offsets = vec![0];
        offsets.extend(levels.lengths.iter().scan(0, |sum, length| {
            *sum += length;
            Some(*sum)
        }));
        let mut order = vec![0; levels.places.len()];
        for (row, &(i, step)) in levels.places.iter().enumerate() {
            let place = match self.direction {
                Direction::Forward => offsets[i] + step,
                Direction::Backward => offsets[i + 1] - 1 - step,
            };
            order[place] = row;
        }
        let terminal = match self.direction {
            Direction::Backward => terminal,
            Direction::Forward => {
                let mut place = vec![0; n];
                ended_at.iter().enumerate().for_each(|(k, &i)| place[i] = k);
                terminal.permute(&place)
            }
        };
        Ok(Recorded {
            states: levels.states.map(|states| states.permute(&order)),
            actions: actions.permute(&order),
            reverse: reverse.permute(&order),
            exit: order.iter().map(|&row| levels.exit[row]).collect(),
            offsets,
            terminal,
        })
    }
}
