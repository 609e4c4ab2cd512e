//! The parts of a trainer that its sources and companions see, and the trait of environments that can be
//! trained on.

use tch::{Tensor, no_grad};

use super::companions::Averaged;
use super::{AverageFor, Batch, BatchScores, StepStats, Trainer, TrainerConfig, checkpoint};
use crate::condition::{ConditionSource, Conditions};
use crate::contract::{Budget, check_env, check_graph_env, check_tensor_form};
use crate::distribution::{Distribution, Exploration};
use crate::env::{Env, Reward, VectorEnv};
use crate::graph::GraphEnv;
use crate::group::Group;
use crate::nn::Parameters;
use crate::objective::{Objective, Scoring};
use crate::optim::Average;
use crate::policy::{OwnedPolicy, Policy};
use crate::quantity::{Quantities, Quantity};
use crate::rollout::{ReplayEnv, RolloutTimes, Trajectories};
use crate::tensor::{fetch_all, to_host};
use crate::{Error, Result, Rng};

/// The parts of a trainer that its sources ([`Source`](super::Source)) and companions
/// ([`Companion`](super::Companion)) see: environment, reward, policy, objective and settings.
#[non_exhaustive]
pub struct Context<E: Env> {
    /// The environment that the trainer trains on.
    pub env: E,
    /// The reward, which computes log R of objects.
    pub reward: Box<dyn Reward<E::States>>,
    /// The policy that is trained; [`policy`](Self::policy) returns a reference to it.
    pub(super) policy: Box<dyn OwnedPolicy<E> + Send>,
    /// The source of each trajectory's condition ([`Trainer::with_conditions`]); `None` if the trainer has no
    /// conditions.
    pub conditions: Option<Box<dyn ConditionSource>>,
    /// The objective, which gives the loss.
    pub objective: Box<dyn Objective>,
    /// The settings of the trainer.
    pub config: TrainerConfig,
    /// The number of completed training steps.
    pub step: usize,
    /// The connection of this replica to the replicas that train with it. The group may have a single member.
    /// All members draw and learn at the same time, so the sources and companions of different members may
    /// exchange tensors.
    pub group: Box<dyn Group>,
    pub(super) average: Option<Averaged>,
    /// The measured times of roll-outs on the host and on the device; `None` if they weren't measured.
    pub(crate) rollout_times: Option<RolloutTimes>,
}

impl<E: Env> Context<E> {
    /// Returns the policy in training.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy<E> {
        self.policy.as_ref()
    }

    /// Returns the exploration with which fresh trajectories are sampled at this step.
    ///
    /// # Errors
    /// [`Error::Config`] for a schedule whose value at this step is out of bounds.
    pub fn exploration(&self) -> Result<Exploration> {
        self.config.exploration(self.step)
    }

    /// Returns the moving average of the parameters together with the parameters; `None` if the trainer keeps
    /// no average or the policy has no parameters.
    pub(super) fn averaged(&self) -> Option<(&Averaged, &Parameters)> {
        self.average.as_ref().zip(self.policy.parameters())
    }

    /// Returns the moving average together with the parameters, if fresh trajectories are sampled with the
    /// average; otherwise `None`.
    pub(super) fn sampling_average(&self) -> Option<(&Average, &Parameters)> {
        let (averaged, parameters) =
            self.averaged().filter(|(one, _)| one.purpose == AverageFor::Sampling)?;
        Some((&averaged.average, parameters))
    }

    /// Returns the group of replicas if it has several members; otherwise `None`.
    #[must_use]
    pub fn replicas(&self) -> Option<&dyn Group> {
        Some(self.group.as_ref()).filter(|group| group.size() > 1)
    }

    /// Returns the number of trajectories of a batch that this replica draws: the whole batch if it trains
    /// alone.
    #[must_use]
    pub fn share(&self) -> usize {
        self.share_of(self.config.batch)
    }

    /// Returns the number of items that this replica handles if `n` items are divided among all replicas.
    pub(super) fn share_of(&self, n: usize) -> usize {
        let before = |rank| rank * n / self.group.size();
        before(self.group.rank() + 1) - before(self.group.rank())
    }

    /// Draws a condition for each of `n` trajectories. Returns them as a tensor `[n, C]` for conditions of
    /// `C` numbers; `None` if the trainer has no conditions.
    ///
    /// # Errors
    /// The errors of the source of conditions.
    pub fn draw_conditions(&self, n: usize, rng: &mut Rng) -> Result<Option<Tensor>> {
        let Some(source) = &self.conditions else { return Ok(None) };
        let Conditions(drawn) = Conditions::checked(source.draw(n, rng)?, n)?;
        Ok(Some(drawn))
    }

    /// Returns the first member's `value` on all members of the group. Every member must call this method.
    ///
    /// # Errors
    /// [`Error::Peer`] if another replica has ended.
    pub fn broadcast_from_first(&self, value: f64) -> Result<f64> {
        let all = self.group.join(&Tensor::from_slice(&[value]))?;
        Ok(all.first().map_or(value, |first| first.double_value(&[0])))
    }

    /// Computes the log-rewards of the trajectories' objects, and returns the trajectories with these
    /// log-rewards.
    pub(super) fn rewarded(&self, trajectories: Trajectories<E>) -> Result<Trajectories<E>> {
        let rewards = trajectories.log_rewards(self.reward.as_ref())?;
        trajectories.with_log_rewards(rewards)
    }

    /// Returns the settings by which whole trajectories are scored at this step.
    pub(super) fn scoring(&self) -> Scoring<'static> {
        Scoring {
            exponent: self.config.reward_exponent.at(self.step),
            ..Scoring::new(self.objective.needs())
        }
    }

    /// Returns the number of updates on each batch.
    pub(super) fn updates_per_batch(&self) -> usize {
        self.config.transitions.map_or(self.objective.epochs(), |transitions| transitions.updates_per_draw)
    }

    /// Returns the random stream of this replica for one step; `None` without other replicas. This stream is
    /// derived from the stream that all replicas share, so a checkpoint stores only the shared stream.
    pub(super) fn split_stream(&self, shared: &mut Rng) -> Option<Rng> {
        self.replicas().map(|group| {
            let mut streams = shared.split();
            for _ in 0..group.rank() {
                streams.split();
            }
            streams.split()
        })
    }

    /// Returns an error for trajectories with conditions if the trainer draws no conditions or its source of
    /// conditions refuses them, and for trajectories without conditions if the trainer draws conditions.
    pub(super) fn check_conditions(&self, trajectories: &Trajectories<E>) -> Result<()> {
        match (&self.conditions, trajectories.conditions()) {
            (None, None) => Ok(()),
            (Some(source), Some(conditions)) => source.check(conditions),
            _ => Err(Error::missing(
                "a batch from outside of the trainer",
                "conditions if the trainer draws conditions, and no conditions otherwise",
                "sample the trajectories under conditions from `Context::draw_conditions`; \
                 `Trainer::with_conditions` sets the source of conditions",
            )),
        }
    }

    /// Returns an error for an update without [`Trainer::apply`] if batches are scored in chunks or there are
    /// several replicas, because only `apply` computes the gradients in these cases.
    pub(super) fn check_custom_update(&self) -> Result<()> {
        let (setting, remedy) = if self.replicas().is_some() {
            ("a run with several replicas", "update by `Trainer::apply`, which sums their gradients")
        } else if self.config.chunk.is_some() {
            (
                "a trainer that scores batches in chunks",
                "update by `Trainer::apply`, or leave `TrainerConfig::chunk` out",
            )
        } else {
            return Ok(());
        };
        Err(Error::missing(setting, "an update by the trainer", remedy))
    }

    /// Returns an error if the policy lacks an estimate that the objective needs: log F, log Z, a prior, or a
    /// custom quantity, or the probabilities of all actions. The policy is evaluated without conditions. A
    /// policy without parameters isn't checked, because it can't be trained: such a trainer only samples and
    /// evaluates.
    pub(super) fn check_estimates(&self) -> Result<()> {
        if self.policy.parameters().is_none() {
            return Ok(());
        }
        let needs = self.objective.needs();
        let mut wants = Quantities::NONE;
        for (quantity, needed_for) in [
            (Quantity::LogFlow, [Quantity::LogFlow, Quantity::TargetLogFlow].as_slice()),
            (Quantity::LogPrior, &[Quantity::LogPrior]),
        ] {
            if needs.has_any(needed_for) {
                wants |= quantity;
            }
        }
        for quantity in needs.custom() {
            wants |= quantity;
        }
        let name = self.objective.name();
        if wants != Quantities::NONE {
            let initial = self.env.initial(&[0]);
            let evaluation = no_grad(|| self.policy.evaluate(&self.env, &initial, None, wants))?;
            for quantity in wants.iter().filter(|&quantity| quantity != Quantity::LogPrior) {
                evaluation.values.need(quantity, name)?;
            }
            if wants.has(Quantity::LogPrior) && evaluation.prior.is_none() {
                return Err(Quantity::LogPrior.missing(name));
            }
        }
        if needs.has(Quantity::AllLogPf) && !self.lists_actions()? {
            return Err(Quantity::AllLogPf.missing(name));
        }
        if needs.has(Quantity::LogZ) && no_grad(|| self.policy.log_z(None, 1)).is_none() {
            return Err(Quantity::LogZ.missing(name));
        }
        Ok(())
    }

    /// Returns `false` if the policy can't list the actions of a state, as in a continuous environment.
    fn lists_actions(&self) -> Result<bool> {
        let initial = self.env.initial(&[0]);
        let wants = Quantity::LogPf.into();
        let evaluation = no_grad(|| self.policy.evaluate(&self.env, &initial, None, wants))?;
        match evaluation.pf.map(|pf| pf.support(&[0])) {
            Some(Err(Error::Missing { .. })) => Ok(false),
            Some(Err(error)) => Err(error),
            _ => Ok(true),
        }
    }

    pub(super) fn clear_gradients(&self) {
        if let Some(parameters) = self.policy.parameters() {
            parameters.clear_gradients();
        }
    }

    /// Returns the Euclidean norm of the gradients of all parameters.
    pub(super) fn gradient_norm(&self) -> f64 {
        let parameters = self.policy.parameters().into_iter().flat_map(Parameters::iter);
        let gradients = parameters.map(|parameter| parameter.tensor.grad()).filter(Tensor::defined);
        let norms: Vec<Tensor> = gradients.map(|gradient| gradient.norm()).collect();
        let norms = fetch_all(&norms.iter().collect::<Vec<_>>());
        norms.iter().flat_map(to_host).map(|norm| norm * norm).sum::<f64>().sqrt()
    }
}

/// An environment that a [`Trainer`] can train on.
///
/// The trainer's code for [`GraphEnv`] and [`VectorEnv`] is compiled with this library, so that programs
/// compile fast. The code for another environment is compiled with the program that uses it. An empty
/// implementation is enough: `impl TrainEnv for MyEnv {}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` isn't an environment to train on yet",
    note = "if the type implements `Env`, write `impl gfn::train::TrainEnv for MyEnv {{}}`",
    note = "rules become an environment by `.env()`, `VectorEnv::new` or `GraphEnv::new`"
)]
pub trait TrainEnv: ReplayEnv + 'static {
    /// Checks the laws of the environment. A trainer calls this method once, when the trainer is built. Graph
    /// environments and environments over vectors check a sample of states, in a fraction of a second
    /// ([`Budget::quick`]). The default checks nothing; override it, for example by
    /// [`check_env`](crate::contract::check_env) with a quick budget.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract) with the name of the law and the state that breaks it;
    /// errors of the environment.
    fn check_laws(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the trainer's functions for this environment. An implementation that repeats the body of this
    /// default method, with `#[inline(never)]`, makes the compiler generate these functions in the
    /// implementation's crate.
    #[doc(hidden)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

impl TrainEnv for GraphEnv {
    fn check_laws(&self) -> Result<()> {
        check_graph_env(self, Budget::quick(), &mut Rng::seeded(0))?;
        check_tensor_form(self)
    }

    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

impl TrainEnv for VectorEnv {
    fn check_laws(&self) -> Result<()> {
        let budget = Budget::quick();
        // The check may try each move of a state vector on a copy of the vector. The more entries a vector
        // has, the longer copying takes, so the budget is divided by their number.
        let entries = budget.entries / self.width().max(1);
        check_env(self, Budget { entries, ..budget }, &mut Rng::seeded(0))?;
        check_tensor_form(self)
    }

    #[inline(never)]
    fn trainer_code() -> TrainerCode<Self> {
        TrainerCode::new()
    }
}

/// The steps, counted from 0, at which policy and reward are checked again. Training may have enlarged a
/// violation that was too small for the first check to tell it from rounding.
const CHECKED_AGAIN: [usize; 2] = [10, 100];

/// Returns the step at which policy and reward are checked next, after a check at `step`.
pub(super) fn next_check(step: usize) -> usize {
    CHECKED_AGAIN.into_iter().find(|&again| again > step).unwrap_or(usize::MAX)
}

/// The large functions of a [`Trainer`], as pointers. The trainer's public methods call the functions of the
/// same names.
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
