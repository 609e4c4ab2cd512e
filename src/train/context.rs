//! What a trainer works on: its environment, and all that its sources and companions see of it.

use tch::Tensor;

use super::trainer::Beginning;
use super::{Batch, BatchScores, Ended, Fit, StepStats, Trainer, TrainerConfig};
use crate::condition::{ConditionSource, Conditions};
use crate::distribution::Exploration;
use crate::env::{Env, Reward, VectorEnv, log_rewards};
use crate::graph::GraphEnv;
use crate::group::Group;
use crate::nn::Parameters;
use crate::objective::{Objective, Scoring};
use crate::policy::{OwnedPolicy, Policy};
use crate::rollout::{ReplayEnv, Trajectories};
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

/// An environment that a [`Trainer`] can train on.
///
/// For [`GraphEnv`] and [`VectorEnv`] the trainer is compiled in this library, so that programs compile fast. For any other environment it
/// is compiled in the program, and an empty implementation is enough: `impl TrainEnv for MyEnv {}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` isn't an environment to train on yet",
    note = "if it implements `Env`, write `impl gfn::train::TrainEnv for MyEnv {{}}`",
    note = "rules become an environment by `.env()`, `VectorEnv::new` or `GraphEnv::new`"
)]
pub trait TrainEnv: ReplayEnv {
    /// Returns the trainer's functions for this environment. An implementation with this very body, never inlined, has them compiled in its
    /// own crate.
    #[doc(hidden)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

impl TrainEnv for GraphEnv {
    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

impl TrainEnv for VectorEnv {
    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

type StepBy<'a, E> = &'a mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>;
type FitBy<E> = fn(Fit<'_, E>, &mut Trainer<E>, StepBy<'_, E>) -> Result<Ended>;

/// The functions of a [`Trainer`] that are much code: each is what the public method of its name calls.
#[doc(hidden)]
#[derive(Debug)]
pub struct TrainerCode<E: Env> {
    pub(super) begin: fn(Beginning<E>) -> Result<Trainer<E>>,
    pub(super) step: fn(&mut Trainer<E>) -> Result<StepStats>,
    pub(super) draw: fn(&mut Trainer<E>) -> Result<Batch<E>>,
    pub(super) score: fn(&mut Trainer<E>, &mut Batch<E>) -> Result<BatchScores>,
    pub(super) advance: fn(&mut Trainer<E>, Batch<E>, &BatchScores, f64) -> Result<StepStats>,
    pub(super) fit: FitBy<E>,
    pub(super) prefill: fn(&mut Trainer<E>, usize) -> Result<usize>,
    pub(super) save: fn(&Trainer<E>, &std::path::Path) -> Result<()>,
    pub(super) resume: fn(&mut Trainer<E>, &std::path::Path) -> Result<()>,
}

impl<E: TrainEnv> TrainerCode<E> {
    #[allow(clippy::new_without_default, reason = "a default would be compiled in the program")]
    pub fn new() -> Self {
        Self {
            begin: Trainer::begin,
            step: Trainer::make_step,
            draw: Trainer::draw_own,
            score: Trainer::score_own,
            advance: Trainer::advance_own,
            fit: |fit, trainer, step| fit.fit(trainer, step),
            prefill: Trainer::fill,
            save: Trainer::save_to,
            resume: Trainer::resume_from,
        }
    }
}
