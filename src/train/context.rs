use tch::Tensor;

use super::TrainerConfig;
use crate::condition::{ConditionSource, Conditions};
use crate::distribution::Exploration;
use crate::env::{Env, Reward, log_rewards};
use crate::group::Group;
use crate::nn::Parameters;
use crate::objective::{Objective, Scoring};
use crate::policy::{OwnedPolicy, Policy};
use crate::rollout::Trajectories;
use crate::{Result, Rng};

/// Environment, reward, policy, objective and settings of a trainer: all that its sources ([`Source`](super::Source)) and companions
/// ([`Companion`](super::Companion)) see of it.
#[non_exhaustive]
pub struct Context<E: Env> {
    /// The environment.
    pub env: E,
    /// log R.
    pub reward: Box<dyn Reward<E::States>>,
    /// See [`policy`](Self::policy).
    pub(super) policy: Box<dyn OwnedPolicy<E> + Send>,
    /// The source of each trajectory's condition ([`Trainer::with_conditions`](super::Trainer::with_conditions)), if there is one.
    pub conditions: Option<Box<dyn ConditionSource>>,
    /// The loss.
    pub objective: Box<dyn Objective>,
    /// The settings.
    pub config: TrainerConfig,
    /// The number of steps made; during a step, of those before it.
    pub step: usize,
    /// This replica's end of the group of those that train as one; it may be the only one. All of them draw and learn at the same time, so
    /// a source or a companion may speak to those of the others.
    pub group: Box<dyn Group>,
}

impl<E: Env> Context<E> {
    /// The policy, which is trained.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy<E> {
        self.policy.as_ref()
    }

    /// The exploration of fresh trajectories at this step.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a schedule that leaves its bounds.
    pub fn exploration(&self) -> Result<Exploration> {
        self.config.exploration(self.step)
    }

    /// The trajectories with the log-rewards that the reward gives their objects.
    pub(super) fn rewarded(&self, trajectories: Trajectories<E>) -> Result<Trajectories<E>> {
        let rewards = log_rewards(self.reward.as_ref(), trajectories.terminal_states(), trajectories.conditions())?;
        trajectories.with_log_rewards(rewards)
    }

    /// How whole trajectories are scored at this step.
    pub(super) fn scoring(&self) -> Scoring<'static> {
        Scoring { exponent: self.config.reward_exponent.at(self.step), ..Scoring::of(self.objective.needs()) }
    }

    /// The group, where it has several members.
    #[must_use]
    pub fn replicas(&self) -> Option<&dyn Group> {
        Some(self.group.as_ref()).filter(|group| group.size() > 1)
    }

    /// The number of trajectories of a batch that this replica draws: all of them where there is but one.
    #[must_use]
    pub fn share(&self) -> usize {
        self.share_of(self.config.batch)
    }

    /// The number of `n` things that this replica does.
    pub(super) fn share_of(&self, n: usize) -> usize {
        let before = |rank| rank * n / self.group.size();
        before(self.group.rank() + 1) - before(self.group.rank())
    }

    /// A condition for each of `n` trajectories, if there are any.
    pub(super) fn draw_conditions(&self, n: usize, rng: &mut Rng) -> Result<Option<Tensor>> {
        let Some(source) = &self.conditions else { return Ok(None) };
        let Conditions(drawn) = Conditions::checked(source.draw(n, rng)?, n)?;
        Ok(Some(drawn))
    }

    /// The random stream of this replica alone for one step, where there are several. It comes from the stream that all replicas keep at the
    /// same place, so a checkpoint needs no more than that one.
    pub(super) fn own_stream(&self, agreed: &mut Rng) -> Option<Rng> {
        self.replicas().map(|group| {
            let mut streams = agreed.split();
            (0..group.rank()).for_each(|_| _ = streams.split());
            streams.split()
        })
    }
}

impl<E: Env> Context<E> {
    /// Clears what is left of gradients.
    pub(super) fn clear_gradients(&self) {
        self.policy.parameters().into_iter().for_each(Parameters::clear_gradients);
    }
}
