use super::TrainerConfig;
use crate::collective::Collective;
use crate::condition::ConditionSource;
use crate::distribution::Exploration;
use crate::env::{Env, Reward, log_rewards};
use crate::objective::Objective;
use crate::rollout::Trajectories;
use crate::{Error, Result};

/// What a trainer trains, by what and how: all that its sources ([`BatchSource`](super::BatchSource)) and companions
/// ([`Companion`](super::Companion)) see of it.
#[non_exhaustive]
pub struct Context<E: Env, P> {
    /// The environment.
    pub env: E,
    /// log R.
    pub reward: Box<dyn Reward<E::States>>,
    /// What is trained.
    pub policy: P,
    /// What each trajectory's condition is drawn from ([`Trainer::with_conditions`](super::Trainer::with_conditions)), if there is anything.
    pub conditions: Option<Box<dyn ConditionSource>>,
    /// The loss.
    pub objective: Box<dyn Objective>,
    /// The settings.
    pub config: TrainerConfig,
    /// The number of steps made; during a step, of those before it.
    pub step: usize,
    /// This replica's end of the group, where several train as one.
    pub(super) collective: Option<Box<dyn Collective>>,
}

impl<E: Env, P> Context<E, P> {
    /// How fresh trajectories are explored at this step.
    ///
    /// # Errors
    /// [`Error::Config`] for a schedule that leaves its bounds.
    pub fn exploration(&self) -> Result<Exploration> {
        self.config.exploration(self.step)
    }

    /// The trajectories with the log-rewards that the reward gives their objects.
    pub(super) fn rewarded(&self, trajectories: Trajectories<E>) -> Result<Trajectories<E>> {
        let rewards = log_rewards(self.reward.as_ref(), trajectories.terminal_states(), trajectories.conditions())?;
        trajectories.with_log_rewards(rewards)
    }

    /// The group of replicas that train as one; `None` where there is but one. All of them draw and learn at the same time, so a source or
    /// a companion may speak to those of the others.
    #[must_use]
    pub fn replicas(&self) -> Option<&dyn Collective> {
        self.collective.as_deref().filter(|collective| collective.size() > 1)
    }

    /// How many trajectories of a batch this replica draws: all of them where there is but one.
    #[must_use]
    pub fn share(&self) -> usize {
        self.share_of(self.config.batch)
    }

    /// How many of `n` things this replica does.
    pub(super) fn share_of(&self, n: usize) -> usize {
        let (rank, size) = self.replicas().map_or((0, 1), |replicas| (replicas.rank(), replicas.size()));
        let before = |rank| rank * n / size;
        before(rank + 1) - before(rank)
    }

    /// What the objective lacks.
    pub(super) fn missing(&self, needs: &'static str, remedy: &'static str) -> Error {
        Error::missing(self.objective.name(), needs, remedy)
    }
}
