//! The roll-out loop, shared by both directions, every policy, and the replay of recorded walks.

use super::Trajectories;
use crate::env::{Direction, Env, Rows};
use crate::{Error, Result};

/// The settings of a roll-out.
pub(crate) struct Rollout {
    pub(crate) direction: Direction,
    pub(crate) max_steps: usize,
    /// `true` to keep every state. Otherwise the result has none but terminal states, which is cheap and enough to fill a
    /// buffer.
    pub(crate) keep_states: bool,
}

/// Rows collected step by step for the whole batch, sorted into trajectory order at the end.
struct Levels<E: Env> {
    /// Steps of each trajectory so far.
    lengths: Vec<usize>,
    states: Option<E::States>,
    actions: Option<E::Actions>,
    reverse: Option<E::Actions>,
    exit: Vec<bool>,
    /// (trajectory, step) of each row.
    places: Vec<(usize, usize)>,
}

impl<E: Env> Levels<E> {
    fn push(&mut self, live: &[usize], states: Option<E::States>, actions: E::Actions, reverse: E::Actions) {
        for &i in live {
            self.places.push((i, self.lengths[i]));
            self.lengths[i] += 1;
        }
        append(&mut self.states, states);
        append(&mut self.actions, Some(actions));
        append(&mut self.reverse, Some(reverse));
    }
}

/// Adds rows to those so far, if there are any.
fn append<R: Rows>(rows: &mut Option<R>, more: Option<R>) {
    match (rows.as_mut(), more) {
        (Some(rows), Some(more)) => rows.append(more),
        (None, more) => *rows = more,
        (Some(_), None) => {}
    }
}

impl Rollout {
    /// Runs from `start` until every trajectory is done; the result is in forward order.
    ///
    /// `choose(states, live, lengths)` picks an action for each live row; `live` holds their trajectories, `lengths`
    /// every trajectory's number of steps so far. Trajectories that are done leave the batch.
    pub(crate) fn run<E: Env>(
        &self,
        env: &E,
        start: E::States,
        mut choose: impl FnMut(&E::States, &[usize], &[usize]) -> Result<E::Actions>,
    ) -> Result<Trajectories<E>> {
        let n = start.len();
        let mut live: Vec<usize> = (0..n).collect();
        let mut levels = Levels {
            lengths: vec![0; n],
            states: None,
            actions: None,
            reverse: None,
            exit: Vec::new(),
            places: Vec::new(),
        };
        let mut terminal = None;
        let mut states = start;
        if self.direction == Direction::Backward {
            terminal = Some(states.clone());
            if let Some(exits) = env.exit_actions(&states) {
                let kept = self.keep_states.then(|| states.clone());
                levels.push(&live, kept, exits.clone(), exits);
                levels.exit = vec![true; n];
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
            match self.direction {
                Direction::Forward => levels.push(&live, before, actions, step.reverse),
                // A backward step becomes a forward row that starts in the parent.
                Direction::Backward => {
                    levels.push(&live, self.keep_states.then(|| states.clone()), step.reverse, actions);
                }
            }
            levels.exit.extend(step.exit);
            let (ended, going): (Vec<usize>, Vec<usize>) = (0..live.len()).partition(|&k| step.done[k]);
            if self.direction == Direction::Forward && !ended.is_empty() {
                ended_at.extend(ended.iter().map(|&k| live[k]));
                append(&mut terminal, Some(states.select(&ended)));
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
    ) -> Result<Trajectories<E>> {
        let n = levels.lengths.len();
        let (Some(terminal), Some(actions), Some(reverse), true) =
            (terminal, levels.actions, levels.reverse, n > 0 && !levels.lengths.contains(&0))
        else {
            return Err(Error::config(
                "the batch of trajectories",
                format!("{n} trajectories"),
                "at least one trajectory, each with at least one step",
            ));
        };
        let mut offsets = vec![0];
        levels.lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + length));
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
        Ok(Trajectories {
            states: levels.states.map_or_else(|| terminal.select(&[]), |states| states.permute(&order)),
            actions: actions.permute(&order),
            reverse: reverse.permute(&order),
            exit: order.iter().map(|&row| levels.exit[row]).collect(),
            offsets,
            terminal,
            conditions: None,
            log_rewards: None,
        })
    }
}
