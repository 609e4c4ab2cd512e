//! Transitions and states of trajectories, as views.

use tch::Tensor;

use super::Trajectories;
use super::container::parts::Parts;
use crate::Result;
use crate::condition::Conditions;
use crate::env::{Env, Reward, Rows, log_rewards};

/// Single transitions of [`Trajectories`], for training on transitions. [`Container`](super::Container) selects and samples them; to join
/// those of several batches, join the trajectories.
///
/// ```
/// use gfn::{policy::UniformPolicy, rollout::{Container, Sampler}, examples::Chain, Rng};
/// let (env, mut rng) = (Chain::new(4), Rng::seeded(0));
/// let trajectories = Sampler::new(&env, &UniformPolicy).forward(5, &mut rng)?;
/// let some = trajectories.transitions().sample(3, &mut rng)?;
/// assert_eq!((some.states().0.len(), some.actions().0.len(), some.is_exit().len()), (3, 3, 3));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Transitions<'a, E: Env> {
    of: &'a Trajectories<E>,
    rows: Vec<usize>,
}

/// States of [`Trajectories`], without the paths to them. Each is finished (a trajectory ended there) or was visited on the way.
/// [`Container`](super::Container) selects and samples them.
///
/// ```
/// use gfn::{policy::UniformPolicy, rollout::{Container, Sampler}, examples::{Chain, Positions}, Rng};
/// let env = Chain::new(4);
/// let trajectories = Sampler::new(&env, &UniformPolicy).forward(5, &mut Rng::seeded(0))?;
/// let states = trajectories.visited_states();
/// let finished = states.finished();
/// let finished = states.select((0..states.len()).filter(|&i| finished[i]))?;
/// assert_eq!(&finished.states(), trajectories.terminal_states());
/// let reward = |states: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     Ok(states.0.iter().map(|&x| f64::from(x)).collect())
/// };
/// assert!(finished.log_rewards(&reward)?.iter().all(Option::is_some));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct StatesContainer<'a, E: Env> {
    of: &'a Trajectories<E>,
    /// Places as [`Trajectories::at`] takes them.
    places: Vec<usize>,
}

impl<E: Env> Transitions<'_, E> {
    /// The number of transitions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// `true` if there is no transition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The states before.
    #[must_use]
    pub fn states(&self) -> E::States {
        self.of.states.select(&self.rows)
    }

    /// The forward actions.
    #[must_use]
    pub fn actions(&self) -> E::Actions {
        self.of.actions.select(&self.rows)
    }

    /// The states after; for exits, the states before.
    #[must_use]
    pub fn next_states(&self) -> E::States {
        self.of.at(&self.next_places())
    }

    /// The backward actions that undo them, in the labels of the states after; meaningless for exits.
    #[must_use]
    pub fn reverse_actions(&self) -> E::Actions {
        self.of.reverse.select(&self.rows)
    }

    /// `true` for each action that ends its trajectory.
    #[must_use]
    pub fn is_last(&self) -> Vec<bool> {
        self.of.are_ends(&self.next_places())
    }

    /// `true` for each exit action.
    #[must_use]
    pub fn is_exit(&self) -> Vec<bool> {
        self.rows.iter().map(|&row| self.of.exit[row]).collect()
    }

    /// The condition vector of each transition, `[n, C]`, if there are any.
    #[must_use]
    pub fn conditions(&self) -> Option<Tensor> {
        self.of.conditions_at(&self.rows)
    }

    /// log R of the object that each transition finishes; `None` if it finishes none. (torchgfn has minus infinity
    /// there, which looks like a reward of zero.)
    ///
    /// # Errors
    /// Those of [`log_rewards`](crate::env::log_rewards).
    pub fn log_rewards(&self, reward: &dyn Reward<E::States>) -> Result<Vec<Option<f64>>> {
        self.of.log_rewards_at(&self.next_places(), reward)
    }

    /// Each as a piece of a trajectory: itself, and, unless it finishes its object, the row behind it, which then ends the piece in place of an
    /// exit. Whether a row is there for its state alone comes with it. Rewards that aren't known are asked for.
    pub(crate) fn cut_out(&self, reward: &dyn Reward<E::States>) -> Result<(Trajectories<E>, Vec<bool>)> {
        let (next, of) = (self.of.next_rows(), self.of);
        let (mut rows, mut offsets, mut ahead) = (Vec::new(), vec![0], Vec::new());
        for &row in &self.rows {
            rows.push(row);
            ahead.push(false);
            if let Ok(behind) = next[row] {
                rows.push(behind);
                ahead.push(true);
            }
            offsets.push(rows.len());
        }
        let owner = |row: usize| of.offsets.partition_point(|&start| start <= row) - 1;
        let owners: Vec<usize> = self.rows.iter().map(|&row| owner(row)).collect();
        let ends: Vec<usize> =
            self.rows.iter().map(|&row| next[row].unwrap_or_else(|i| of.n_transitions() + i)).collect();
        let finished: Vec<usize> = (0..ends.len()).filter(|&k| next[self.rows[k]].is_err()).collect();
        let mut log_rewards = vec![0.0; ends.len()];
        match &of.log_rewards {
            Some(known) => finished.iter().for_each(|&k| log_rewards[k] = known[owners[k]]),
            None => {
                let asked = of.log_rewards_at(&ends, reward)?;
                log_rewards.iter_mut().zip(asked).for_each(|(value, asked)| *value = asked.unwrap_or(0.0));
            }
        }
        let pieces = Trajectories {
            states: of.states.select(&rows),
            actions: of.actions.select(&rows),
            reverse: of.reverse.select(&rows),
            exit: rows.iter().zip(&ahead).map(|(&row, &ahead)| ahead || of.exit[row]).collect(),
            offsets,
            terminal: of.at(&ends),
            conditions: of.conditions.as_ref().map(|conditions| conditions.pick(&owners)),
            log_rewards: Some(log_rewards),
        };
        Ok((pieces, ahead))
    }

    fn next_places(&self) -> Vec<usize> {
        let (next, n) = (self.of.next_rows(), self.of.n_transitions());
        self.rows.iter().map(|&row| next[row].unwrap_or_else(|i| n + i)).collect()
    }
}

impl<E: Env> StatesContainer<'_, E> {
    /// The number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// `true` if there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The states.
    #[must_use]
    pub fn states(&self) -> E::States {
        self.of.at(&self.places)
    }

    /// `true` for each finished object.
    #[must_use]
    pub fn finished(&self) -> Vec<bool> {
        self.of.are_ends(&self.places)
    }

    /// The condition vector of each state, `[n, C]`, if there are any.
    #[must_use]
    pub fn conditions(&self) -> Option<Tensor> {
        self.of.conditions_at(&self.places)
    }

    /// log R of each finished state, evaluated by a reward; `None` for others.
    ///
    /// # Errors
    /// Those of [`log_rewards`](crate::env::log_rewards).
    pub fn log_rewards(&self, reward: &dyn Reward<E::States>) -> Result<Vec<Option<f64>>> {
        self.of.log_rewards_at(&self.places, reward)
    }
}

impl<E: Env> Parts for Transitions<'_, E> {
    fn count(&self) -> usize {
        self.len()
    }
    fn pick(&self, indices: &[usize]) -> Self {
        Self { of: self.of, rows: super::container::pick(&self.rows, indices) }
    }
}

impl<E: Env> Parts for StatesContainer<'_, E> {
    fn count(&self) -> usize {
        self.len()
    }
    fn pick(&self, indices: &[usize]) -> Self {
        Self { of: self.of, places: super::container::pick(&self.places, indices) }
    }
}

impl<E: Env> Trajectories<E> {
    /// For each row, the row of the state after its action: `Ok(row)` in [`states`](Trajectories::states), or `Err(i)`
    /// for the terminal state of trajectory `i`.
    pub fn next_rows(&self) -> Vec<std::result::Result<usize, usize>> {
        let ends = self.offsets.windows(2).enumerate();
        ends.flat_map(|(i, ends)| (ends[0] + 1..ends[1]).map(Ok).chain([Err(i)])).collect()
    }

    /// Every transition as a single one, trajectory by trajectory.
    #[must_use]
    pub fn transitions(&self) -> Transitions<'_, E> {
        Transitions { of: self, rows: (0..self.n_transitions()).collect() }
    }

    /// Every visited state once, trajectory by trajectory: those on the way, which aren't finished, then the terminal
    /// one.
    #[must_use]
    pub fn visited_states(&self) -> StatesContainer<'_, E> {
        let n = self.n_transitions();
        // An exit leaves its state as it is: that state is the terminal one.
        let inner = |row: &usize| !self.exit[*row];
        let ends = self.offsets.windows(2).enumerate();
        let places = ends.flat_map(|(i, ends)| (ends[0]..ends[1]).filter(inner).chain([n + i])).collect();
        StatesContainer { of: self, places }
    }

    /// The states at places: those of rows, and behind them all terminal states.
    fn at(&self, places: &[usize]) -> E::States {
        let mut all = self.states.clone();
        all.append(self.terminal.clone());
        all.select(places)
    }

    /// `true` for each place of a terminal state.
    fn are_ends(&self, places: &[usize]) -> Vec<bool> {
        places.iter().map(|&place| place >= self.n_transitions()).collect()
    }

    /// The conditions of the trajectories that places belong to.
    fn conditions_at(&self, places: &[usize]) -> Option<Tensor> {
        let n = self.n_transitions();
        let owner = |&place: &usize| match place.checked_sub(n) {
            Some(i) => i,
            None => self.offsets.partition_point(|&start| start <= place) - 1,
        };
        let owners: Vec<usize> = places.iter().map(owner).collect();
        self.conditions.as_ref().map(|conditions| conditions.pick(&owners).0)
    }

    /// log R of terminal states among places.
    fn log_rewards_at(&self, places: &[usize], reward: &dyn Reward<E::States>) -> Result<Vec<Option<f64>>> {
        let ends: Vec<usize> = places.iter().filter_map(|place| place.checked_sub(self.n_transitions())).collect();
        if ends.is_empty() {
            return Ok(vec![None; places.len()]);
        }
        let conditions = self.conditions.as_ref().map(|conditions: &Conditions| conditions.pick(&ends).0);
        let mut values = log_rewards(reward, &self.terminal.select(&ends), conditions.as_ref())?.into_iter();
        Ok(self.are_ends(places).into_iter().map(|end| if end { values.next() } else { None }).collect())
    }
}
