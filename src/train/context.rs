//! The parts of a trainer that its sources and companions see, and the environments that it can train on.

use tch::Tensor;

use super::companions::Averaged;
use super::{AverageFor, Batch, BatchScores, StepStats, Trainer, TrainerConfig, checkpoint};
use crate::condition::{ConditionSource, Conditions};
use crate::contract::{Budget, check_env, check_graph_env};
use crate::distribution::Exploration;
use crate::env::{Env, Reward, VectorEnv, log_rewards};
use crate::graph::GraphEnv;
use crate::group::Group;
use crate::nn::Parameters;
use crate::objective::{Objective, Scoring};
use crate::optim::Average;
use crate::policy::{OwnedPolicy, Policy};
use crate::rollout::{ReplayEnv, Trajectories};
use crate::{Error, Result, Rng};

/// Environment, reward, policy, objective and settings of a trainer: everything that its sources ([`Source`](super::Source)) and companions
/// ([`Companion`](super::Companion)) see of it.
#[non_exhaustive]
pub struct Context<E: Env> {
    /// The environment.
    pub env: E,
    /// log R.
    pub reward: Box<dyn Reward<E::States>>,
    /// See [`policy`](Self::policy).
    pub(super) policy: Box<dyn OwnedPolicy<E> + Send>,
    /// The source of each trajectory's condition ([`Trainer::with_conditions`]), if there is one.
    pub conditions: Option<Box<dyn ConditionSource>>,
    /// The loss.
    pub objective: Box<dyn Objective>,
    /// The settings.
    pub config: TrainerConfig,
    /// The number of steps made; during a step, the number of steps before it.
    pub step: usize,
    /// The connection of this replica to the replicas that train as one. The group may have one member. All members draw and learn at the same
    /// time, so sources and companions may exchange tensors with those of other members.
    pub group: Box<dyn Group>,
    pub(super) average: Option<Averaged>,
}

impl<E: Env> Context<E> {
    /// Returns the policy in training.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy<E> {
        self.policy.as_ref()
    }

    /// Returns the exploration of fresh trajectories at this step.
    ///
    /// # Errors
    /// [`Error::Config`] for a schedule that leaves its bounds.
    pub fn exploration(&self) -> Result<Exploration> {
        self.config.exploration(self.step)
    }

    /// Returns the average of the parameters, and the parameters, if there is one.
    pub(super) fn averaged(&self) -> Option<(&Averaged, &Parameters)> {
        self.average.as_ref().zip(self.policy.parameters())
    }

    /// Returns the average that fresh trajectories are sampled by, and the parameters, if there is one.
    pub(super) fn sampling_average(&self) -> Option<(&Average, &Parameters)> {
        let (averaged, parameters) = self.averaged().filter(|(one, _)| one.purpose == AverageFor::Sampling)?;
        Some((&averaged.average, parameters))
    }

    /// Returns the group if it has several members.
    #[must_use]
    pub fn replicas(&self) -> Option<&dyn Group> {
        Some(self.group.as_ref()).filter(|group| group.size() > 1)
    }

    /// The number of trajectories of a batch that this replica draws: the whole batch if there are no others.
    #[must_use]
    pub fn share(&self) -> usize {
        self.share_of(self.config.batch)
    }

    /// The part of `n` items that this replica handles.
    pub(super) fn share_of(&self, n: usize) -> usize {
        let before = |rank| rank * n / self.group.size();
        before(self.group.rank() + 1) - before(self.group.rank())
    }

    /// Draws a condition for each of `n` trajectories, `[n, C]`; `None` if the trainer has no conditions.
    ///
    /// # Errors
    /// Those of the source of conditions.
    pub fn draw_conditions(&self, n: usize, rng: &mut Rng) -> Result<Option<Tensor>> {
        let Some(source) = &self.conditions else { return Ok(None) };
        let Conditions(drawn) = Conditions::checked(source.draw(n, rng)?, n)?;
        Ok(Some(drawn))
    }

    /// Returns the first member's value on all members.
    ///
    /// # Errors
    /// [`Error::Peer`] if another replica has ended.
    pub fn broadcast_from_first(&self, value: f64) -> Result<f64> {
        let all = self.group.join(&Tensor::from_slice(&[value]))?;
        Ok(all.first().map_or(value, |first| first.double_value(&[0])))
    }

    /// Returns the trajectories with the log-rewards of their objects.
    pub(super) fn rewarded(&self, trajectories: Trajectories<E>) -> Result<Trajectories<E>> {
        let rewards = log_rewards(self.reward.as_ref(), trajectories.terminal_states(), trajectories.conditions())?;
        trajectories.with_log_rewards(rewards)
    }

    /// Returns how whole trajectories are scored at this step.
    pub(super) fn scoring(&self) -> Scoring<'static> {
        Scoring { exponent: self.config.reward_exponent.at(self.step), ..Scoring::new(self.objective.needs()) }
    }

    /// The number of updates on each batch.
    pub(super) fn updates_per_batch(&self) -> usize {
        self.config.transitions.map_or(self.objective.epochs(), |transitions| transitions.updates_per_draw)
    }

    /// Returns the random stream of this replica for one step, if there are several replicas. It is derived from the stream that all
    /// replicas share, so a checkpoint needs only that one.
    pub(super) fn split_stream(&self, shared: &mut Rng) -> Option<Rng> {
        self.replicas().map(|group| {
            let mut streams = shared.split();
            for _ in 0..group.rank() {
                streams.split();
            }
            streams.split()
        })
    }

    /// Refuses trajectories under conditions that the trainer can't have drawn, and those without conditions if it has some.
    pub(super) fn check_conditions(&self, trajectories: &Trajectories<E>) -> Result<()> {
        match (&self.conditions, trajectories.conditions()) {
            (None, None) => Ok(()),
            (Some(source), Some(conditions)) => source.check(conditions),
            _ => Err(Error::missing(
                "trajectories from outside of the trainer",
                "conditions if the trainer has some, and none if it hasn't",
                "draw them under conditions of `Context::draw_conditions`; `Trainer::with_conditions` sets their source",
            )),
        }
    }

    /// Refuses an update outside of [`Trainer::apply`] if only `apply` computes the gradients.
    pub(super) fn check_custom_update(&self) -> Result<()> {
        let (setting, remedy) = if self.replicas().is_some() {
            ("several replicas", "update by `Trainer::apply`, which sums their gradients")
        } else if self.config.chunk.is_some() {
            ("batches that are scored in chunks", "update by `Trainer::apply`, or leave `TrainerConfig::chunk` out")
        } else {
            return Ok(());
        };
        Err(Error::missing(setting, "an update by the trainer", remedy))
    }

    pub(super) fn clear_gradients(&self) {
        if let Some(parameters) = self.policy.parameters() {
            parameters.clear_gradients();
        }
    }

    /// The norm of all gradients together.
    pub(super) fn gradient_norm(&self) -> f64 {
        let mut squares = 0.0;
        for parameter in self.policy.parameters().into_iter().flat_map(Parameters::iter) {
            let gradient = parameter.tensor.grad();
            if gradient.defined() {
                squares += gradient.norm().double_value(&[]).powi(2);
            }
        }
        squares.sqrt()
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
pub trait TrainEnv: ReplayEnv + 'static {
    /// Checks the laws of the environment. A trainer calls it once, before its first step. Graph environments
    /// and environments over vectors check samples, in a fraction of a second ([`Budget::quick`]). The default checks
    /// nothing; override it, for example by [`check_env`](crate::contract::check_env) with a quick budget.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract) naming the law and the state; errors of the environment.
    fn check_laws(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the trainer's functions for this environment. An implementation with this very body, never inlined, has them compiled in its
    /// own crate.
    #[doc(hidden)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

impl TrainEnv for GraphEnv {
    fn check_laws(&self) -> Result<()> {
        check_graph_env(self, Budget::quick(), &mut Rng::seeded(0)).map(drop)
    }

    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

impl TrainEnv for VectorEnv {
    fn check_laws(&self) -> Result<()> {
        let budget = Budget::quick();
        // Each move of a vector may be tried on a copy.
        let entries = budget.entries / self.width().max(1);
        check_env(self, Budget { entries, ..budget }, &mut Rng::seeded(0)).map(drop)
    }

    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

/// Steps before which policy and reward are checked again: training may have enlarged what the first check
/// couldn't tell from rounding.
const CHECKED_AGAIN: [usize; 2] = [10, 100];

/// Returns the step before which the next check is due, after a check before `step`.
pub(super) fn next_check(step: usize) -> usize {
    CHECKED_AGAIN.into_iter().find(|&again| again > step).unwrap_or(usize::MAX)
}

/// The large functions of a [`Trainer`]; each public method calls the one of its name.
#[doc(hidden)]
#[derive(Debug)]
pub struct TrainerCode<E: Env> {
    pub(super) build: fn(Context<E>, Rng) -> Result<Trainer<E>>,
    pub(super) step: fn(&mut Trainer<E>) -> Result<StepStats>,
    pub(super) draw: fn(&mut Trainer<E>) -> Result<Batch<E>>,
    pub(super) score: fn(&mut Trainer<E>, &mut Batch<E>) -> Result<BatchScores>,
    pub(super) apply: fn(&mut Trainer<E>, &Tensor, &BatchScores) -> Result<()>,
    pub(super) advance: fn(&mut Trainer<E>, Batch<E>, &BatchScores) -> Result<StepStats>,
    pub(super) checkpoint: fn(&Trainer<E>) -> Result<super::Checkpoint>,
    pub(super) resume: fn(&mut Trainer<E>, &std::path::Path) -> Result<()>,
}

impl<E: TrainEnv> TrainerCode<E> {
    #[allow(clippy::new_without_default, reason = "a default would be compiled in the program")]
    pub fn new() -> Self {
        Self {
            build: Trainer::build,
            step: Trainer::make_step,
            draw: Trainer::draw_batch,
            score: Trainer::score_batch,
            apply: Trainer::apply_loss,
            advance: Trainer::advance_batch,
            checkpoint: checkpoint::make_checkpoint,
            resume: checkpoint::resume,
        }
    }
}
