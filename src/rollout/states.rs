use tch::{Device, Tensor};

use super::container::parts::Parts;
use super::container::{join_recorded, pick};
use super::transitions::finished_log_rewards;
use crate::condition::Conditions;
use crate::env::{Env, Reward, Rows, check_log_rewards};
use crate::{Error, Result};

/// States without the paths to them. Each is finished (a trajectory ended there) or was visited on the way.
///
/// [`Container`](super::Container) selects, samples and joins them; the finished ones are
/// `states.select(states.finished())`.
///
/// ```
/// use gfn::{policy::UniformPolicy, rollout::{Container, Sampler}, testing::{Chain, Positions}, Rng};
/// let env = Chain::new(4);
/// let trajectories = Sampler::new(&env, &UniformPolicy).forward(5, &mut Rng::seeded(0))?;
/// let states = trajectories.visited_states();
/// let finished = states.select(states.finished())?;
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

impl<E: Env> Clone for StatesContainer<E> {
    fn clone(&self) -> Self {
        Self {
            states: self.states.clone(),
            finished: self.finished.clone(),
            conditions: self.conditions.clone(),
            log_rewards: self.log_rewards.clone(),
        }
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

    /// Sets a condition vector for each state, `[n, C]`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a tensor that isn't `[n, C]`.
    pub fn with_conditions(mut self, conditions: Tensor) -> Result<Self> {
        self.conditions = Some(Conditions::checked(conditions, self.len())?);
        Ok(self)
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

    /// Appends other states. Recorded log-rewards are kept if both have them.
    ///
    /// # Errors
    /// [`Error::Missing`] if only one of the two has conditions, [`Error::Shape`] if their widths differ; nothing is
    /// appended then.
    pub fn append(&mut self, other: Self) -> Result<()> {
        let (n, m) = (self.len(), other.len());
        self.conditions = Conditions::join((self.conditions.as_ref(), n), (other.conditions.as_ref(), m))?;
        self.log_rewards = join_recorded((self.log_rewards.take(), n), (other.log_rewards, m));
        self.states.append(other.states);
        self.finished.extend(other.finished);
        Ok(())
    }

    /// Moves the tensors (the conditions) to a device; states stay on the host.
    ///
    /// # Errors
    /// [`Error::Torch`] for a device that can't be used.
    pub fn to_device(&self, device: Device) -> Result<Self> {
        let conditions = self.conditions.as_ref().map(|c| c.to_device(device)).transpose()?;
        Ok(Self { conditions, ..self.clone() })
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
    fn join(&mut self, other: Self) -> Result<()> {
        self.append(other)
    }
}
