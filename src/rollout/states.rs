use tch::Tensor;

use super::container::parts::Parts;
use super::container::{join_recorded, pick};
use super::transitions::finished_log_rewards;
use crate::condition::Conditions;
use crate::env::{Env, Reward, Rows, check_log_rewards};
use crate::{Error, Result};

/// States without the paths to them. Each is finished (a trajectory ended there) or was visited on the way.
///
/// [`Container`](super::Container) selects, samples and joins them.
///
/// ```
/// use gfn::{policy::UniformPolicy, rollout::{Container, Sampler}, testing::{Chain, Positions}, Rng};
/// let env = Chain::new(4);
/// let trajectories = Sampler::new(&env, &UniformPolicy).forward(5, &mut Rng::seeded(0))?;
/// let states = trajectories.visited_states();
/// let finished = states.select((0..states.len()).filter(|&i| states.finished()[i]))?;
/// assert_eq!(finished.states(), trajectories.terminal_states());
/// let reward = |states: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     Ok(states.0.iter().map(|&x| f64::from(x)).collect())
/// };
/// assert!(finished.log_rewards(&reward)?.iter().all(Option::is_some));
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct StatesContainer<E: Env> {
    pub(super) states: E::States,
    pub(super) finished: Vec<bool>,
    pub(super) conditions: Option<Conditions>,
    /// The log-rewards of finished states, if they were recorded.
    pub(super) log_rewards: Option<Vec<Option<f64>>>,
}

// Deriving it would ask for an environment that can be cloned.
impl<E: Env> Clone for StatesContainer<E> {
    fn clone(&self) -> Self {
        self.pick(&(0..self.len()).collect::<Vec<_>>())
    }
}

impl<E: Env> std::fmt::Debug for StatesContainer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatesContainer").field("finished", &self.finished).finish_non_exhaustive()
    }
}

impl<E: Env> StatesContainer<E> {
    /// A container of these states, with whether each is finished, and without conditions.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one flag per state.
    pub fn new(states: E::States, finished: Vec<bool>) -> Result<Self> {
        if states.len() != finished.len() {
            return Err(Error::shape(
                "flags of states",
                [states.len() as i64],
                [finished.len() as i64],
                "say of each state whether it is finished",
            ));
        }
        Ok(Self { states, finished, conditions: None, log_rewards: None })
    }

    /// Sets recorded log-rewards, in the form that [`log_rewards`](Self::log_rewards) gives. They are saved with the
    /// states.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one for each finished state and none for others; [`Error::NonFinite`] for one
    /// that isn't finite.
    pub fn with_log_rewards(mut self, log_rewards: Vec<Option<f64>>) -> Result<Self> {
        let known: Vec<f64> = log_rewards.iter().copied().flatten().collect();
        if !log_rewards.iter().map(Option::is_some).eq(self.finished.iter().copied()) {
            return Err(Error::shape(
                "log-rewards of states",
                [self.len() as i64, self.finished.iter().filter(|&&finished| finished).count() as i64],
                [log_rewards.len() as i64, known.len() as i64],
                "give one log-reward for each finished state and `None` for every other",
            ));
        }
        check_log_rewards(&known, known.len())?;
        self.log_rewards = Some(log_rewards);
        Ok(self)
    }

    /// The number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.finished.len()
    }

    /// Whether there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.finished.is_empty()
    }

    /// The states.
    #[must_use]
    pub fn states(&self) -> &E::States {
        &self.states
    }

    /// Whether each state is a finished object.
    #[must_use]
    pub fn finished(&self) -> &[bool] {
        &self.finished
    }

    /// The condition vectors, `[n, C]`, if there are any.
    #[must_use]
    pub fn conditions(&self) -> Option<&Tensor> {
        self.conditions.as_ref().map(|c| &c.0)
    }

    /// The recorded log-rewards, from a file or from [`with_log_rewards`](Self::with_log_rewards).
    #[must_use]
    pub fn recorded_log_rewards(&self) -> Option<&[Option<f64>]> {
        self.log_rewards.as_deref()
    }

    /// log R of each finished state, evaluated by a reward; `None` for others.
    ///
    /// # Errors
    /// Those of [`log_rewards`](crate::env::log_rewards).
    pub fn log_rewards<R: Reward<E::States> + ?Sized>(&self, reward: &R) -> Result<Vec<Option<f64>>> {
        finished_log_rewards::<E::States, R>(reward, &self.states, &self.finished, self.conditions.as_ref())
    }
}

impl<E: Env> Parts for StatesContainer<E> {
    fn count(&self) -> usize {
        self.len()
    }
    fn pick(&self, rows: &[usize]) -> Self {
        Self {
            states: self.states.select(rows),
            finished: pick(&self.finished, rows),
            conditions: self.conditions.as_ref().map(|c| c.pick(rows)),
            log_rewards: self.log_rewards.as_ref().map(|known| pick(known, rows)),
        }
    }
    fn join(&mut self, other: Self) {
        join_recorded(&mut self.log_rewards, self.finished.len(), other.log_rewards, other.finished.len());
        self.states.append(other.states);
        self.finished.extend(other.finished);
    }
    fn vectors(&mut self) -> &mut Option<Conditions> {
        &mut self.conditions
    }
}
