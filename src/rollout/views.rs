//! Views of the transitions and states of trajectories.

use tch::Tensor;

use super::Trajectories;
use super::VisitedRows;
use super::container::parts::Parts;
use crate::Result;
use crate::condition::Conditions;
use crate::env::{Env, Reward, Rows, log_rewards};

/// A view of single transitions of [`Trajectories`], for training on transitions instead of trajectories.
/// [`Container`](super::Container) selects and samples transitions. To join transitions of several batches,
/// join the trajectories.
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
    trajectories: &'a Trajectories<E>,
    /// The indices of the view's transitions in `trajectories`.
    rows: Vec<usize>,
}

/// A view of visited states of [`Trajectories`], without the paths to them. Each state is either a terminal
/// state or the state before a transition. [`Container`](super::Container) selects and samples states.
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
    trajectories: &'a Trajectories<E>,
    /// The state indices of the states in the view ([`Trajectories::at`] defines state indices).
    indices: Vec<usize>,
}

impl<E: Env> Transitions<'_, E> {
    /// Returns the number of transitions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns `true` if there is no transition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the state before each transition.
    #[must_use]
    pub fn states(&self) -> E::States {
        self.trajectories.states().select(&self.rows)
    }

    /// Returns the forward action of each transition.
    #[must_use]
    pub fn actions(&self) -> E::Actions {
        self.trajectories.actions.select(&self.rows)
    }

    /// Returns the state after each transition. An exit doesn't change the state, so the state after an exit
    /// equals the state before it.
    #[must_use]
    pub fn next_states(&self) -> E::States {
        self.trajectories.at(&self.next_indices())
    }

    /// Returns the backward action that undoes each transition, in the labels of the state after the
    /// transition. The entries of exits have no meaning.
    #[must_use]
    pub fn reverse_actions(&self) -> E::Actions {
        self.trajectories.reverse.select(&self.rows)
    }

    /// Returns `true` for each transition that ends its trajectory.
    #[must_use]
    pub fn is_last(&self) -> Vec<bool> {
        self.trajectories.are_terminal(&self.next_indices())
    }

    /// Returns `true` for each exit action.
    #[must_use]
    pub fn is_exit(&self) -> Vec<bool> {
        self.rows.iter().map(|&row| self.trajectories.exit[row]).collect()
    }

    /// Returns the condition vector of each transition, `[n, C]`; `None` without conditions.
    #[must_use]
    pub fn conditions(&self) -> Option<Tensor> {
        self.trajectories.conditions_at(&self.rows)
    }

    /// Returns log R of the object that each transition finishes; `None` for a transition that doesn't finish
    /// an object. (torchgfn returns minus infinity for such transitions, which can't be distinguished from a
    /// reward of zero.)
    ///
    /// # Errors
    /// The errors of [`log_rewards`](crate::env::log_rewards).
    pub fn log_rewards(&self, reward: &dyn Reward<E::States>) -> Result<Vec<Option<f64>>> {
        self.trajectories.log_rewards_at(&self.next_indices(), reward)
    }

    /// Converts each transition to a separate trajectory. If a transition doesn't finish its object, the new
    /// trajectory also gets the next transition of the original trajectory, because objectives take the flow
    /// of the state after the first transition from the second one. The added transition is treated as an
    /// exit. The second result has an entry for each transition of the new trajectories: `true` if it was
    /// added. Rewards of finished objects are evaluated unless they were recorded.
    pub(crate) fn cut_out(&self, reward: &dyn Reward<E::States>) -> Result<(Trajectories<E>, Vec<bool>)> {
        let trajectories = self.trajectories;
        let next = trajectories.next_rows();
        let mut rows = Vec::new();
        let mut offsets = vec![0];
        let mut ahead = Vec::new();
        for &row in &self.rows {
            rows.push(row);
            ahead.push(false);
            if let Ok(next_row) = next[row] {
                rows.push(next_row);
                ahead.push(true);
            }
            offsets.push(rows.len());
        }
        let owner = |row: usize| trajectories.offsets.partition_point(|&start| start <= row) - 1;
        let owners: Vec<usize> = self.rows.iter().map(|&row| owner(row)).collect();
        let ends: Vec<usize> = self
            .rows
            .iter()
            .map(|&row| next[row].unwrap_or_else(|i| trajectories.n_transitions() + i))
            .collect();
        let finished: Vec<usize> = (0..ends.len()).filter(|&k| next[self.rows[k]].is_err()).collect();
        let mut log_rewards = vec![0.0; ends.len()];
        match &trajectories.log_rewards {
            Some(recorded) => finished.iter().for_each(|&k| log_rewards[k] = recorded[owners[k]]),
            None => {
                let evaluated = trajectories.log_rewards_at(&ends, reward)?;
                log_rewards = evaluated.into_iter().map(|log_reward| log_reward.unwrap_or(0.0)).collect();
            }
        }
        let exit = rows.iter().zip(&ahead).map(|(&row, &is_ahead)| is_ahead || trajectories.exit[row]);
        let pieces = Trajectories {
            states: VisitedRows::OnHost(trajectories.states().select(&rows)),
            actions: trajectories.actions.select(&rows),
            reverse: trajectories.reverse.select(&rows),
            exit: exit.collect(),
            offsets,
            terminal: trajectories.at(&ends),
            conditions: trajectories.conditions.as_ref().map(|conditions| conditions.pick(&owners)),
            log_rewards: Some(log_rewards),
        };
        Ok((pieces, ahead))
    }

    /// Returns the state index of the state after each transition (`Trajectories::at` defines state indices).
    fn next_indices(&self) -> Vec<usize> {
        let next = self.trajectories.next_rows();
        let n = self.trajectories.n_transitions();
        self.rows.iter().map(|&row| next[row].unwrap_or_else(|i| n + i)).collect()
    }
}

impl<E: Env> StatesContainer<'_, E> {
    /// Returns the number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Returns `true` if there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Returns the states of the view.
    #[must_use]
    pub fn states(&self) -> E::States {
        self.trajectories.at(&self.indices)
    }

    /// Returns `true` for each state that is a finished object.
    #[must_use]
    pub fn finished(&self) -> Vec<bool> {
        self.trajectories.are_terminal(&self.indices)
    }

    /// Returns the condition vector of each state, `[n, C]`; `None` without conditions.
    #[must_use]
    pub fn conditions(&self) -> Option<Tensor> {
        self.trajectories.conditions_at(&self.indices)
    }

    /// Evaluates a reward, and returns log R of each finished object; `None` for other states.
    ///
    /// # Errors
    /// The errors of [`log_rewards`](crate::env::log_rewards).
    pub fn log_rewards(&self, reward: &dyn Reward<E::States>) -> Result<Vec<Option<f64>>> {
        self.trajectories.log_rewards_at(&self.indices, reward)
    }
}

impl<E: Env> Parts for Transitions<'_, E> {
    fn count(&self) -> usize {
        self.len()
    }
    fn pick(&self, indices: &[usize]) -> Self {
        Self { trajectories: self.trajectories, rows: super::container::pick(&self.rows, indices) }
    }
}

impl<E: Env> Parts for StatesContainer<'_, E> {
    fn count(&self) -> usize {
        self.len()
    }
    fn pick(&self, indices: &[usize]) -> Self {
        Self { trajectories: self.trajectories, indices: super::container::pick(&self.indices, indices) }
    }
}

impl<E: Env> Trajectories<E> {
    /// Returns the position of the state after each transition: `Ok(t)` for the state before transition `t`,
    /// the state `t` of [`states`](Trajectories::states); `Err(i)` for the terminal state of trajectory `i`.
    pub fn next_rows(&self) -> Vec<std::result::Result<usize, usize>> {
        let ends = self.offsets.windows(2).enumerate();
        ends.flat_map(|(i, ends)| (ends[0] + 1..ends[1]).map(Ok).chain([Err(i)])).collect()
    }

    /// Returns a view of all transitions, trajectory by trajectory.
    #[must_use]
    pub fn transitions(&self) -> Transitions<'_, E> {
        Transitions { trajectories: self, rows: (0..self.n_transitions()).collect() }
    }

    /// Returns a view of all visited states, trajectory by trajectory. In each trajectory the terminal state
    /// comes last.
    #[must_use]
    pub fn visited_states(&self) -> StatesContainer<'_, E> {
        let n = self.n_transitions();
        // Exits are left out. The state before an exit is the terminal state, which is added as the last
        // state of the trajectory.
        let inner = |row: &usize| !self.exit[*row];
        let ends = self.offsets.windows(2).enumerate();
        let indices = ends.flat_map(|(i, ends)| (ends[0]..ends[1]).filter(inner).chain([n + i])).collect();
        StatesContainer { trajectories: self, indices }
    }

    /// Returns the states with these state indices. The state index `t` is the state before transition `t`,
    /// and the state index `n_transitions() + i` is the terminal state of trajectory `i`.
    fn at(&self, indices: &[usize]) -> E::States {
        let mut all = self.states().clone();
        all.append(self.terminal.clone());
        all.select(indices)
    }

    /// Returns `true` for each state index of a terminal state.
    fn are_terminal(&self, indices: &[usize]) -> Vec<bool> {
        indices.iter().map(|&index| index >= self.n_transitions()).collect()
    }

    /// Returns, for each of these state indices, the condition of the trajectory that visits the state.
    fn conditions_at(&self, indices: &[usize]) -> Option<Tensor> {
        let n = self.n_transitions();
        let owner = |&index: &usize| match index.checked_sub(n) {
            Some(i) => i,
            None => self.offsets.partition_point(|&start| start <= index) - 1,
        };
        let owners: Vec<usize> = indices.iter().map(owner).collect();
        self.conditions.as_ref().map(|conditions| conditions.pick(&owners).0)
    }

    /// Evaluates a reward, and returns log R of the state at each index; `None` if the state isn't terminal.
    fn log_rewards_at(&self, indices: &[usize], reward: &dyn Reward<E::States>) -> Result<Vec<Option<f64>>> {
        let ends: Vec<usize> =
            indices.iter().filter_map(|index| index.checked_sub(self.n_transitions())).collect();
        if ends.is_empty() {
            return Ok(vec![None; indices.len()]);
        }
        let conditions = self.conditions.as_ref().map(|conditions: &Conditions| conditions.pick(&ends).0);
        let mut values = log_rewards(reward, &self.terminal.select(&ends), conditions.as_ref())?.into_iter();
        Ok(self
            .are_terminal(indices)
            .into_iter()
            .map(|is_terminal| if is_terminal { values.next() } else { None })
            .collect())
    }
}
