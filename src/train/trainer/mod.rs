//! The trainer, and its training step as one call or as separate calls for a custom loop.

mod updates;

use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use serde_json::Value;
use tch::{Tensor, no_grad};

use super::checkpoint::Attachments;
use super::config::StepProgress;
use super::context::next_check;
use super::gradients::{self, BatchScores, start_log_z};
use super::sources::{Batch, Sources};
use super::{Companion, Context, StepStats, TrainEnv, TrainerConfig};
use crate::contract::{Budget, check_policy, check_reward};
use crate::distribution::Distribution;
use crate::env::{Env, Reward};
use crate::error::Warning;
use crate::group::Replica;
use crate::nn::UNSET_LOG_Z;
use crate::objective::{Objective, Origin};
use crate::optim::{Adam, Optimizer, Schedule};
use crate::policy::Policy;
use crate::{Error, Result, Rng, runtime};

/// Trains a policy: draws a batch, scores it, differentiates the loss and updates the parameters. For samples
/// of the trained policy, use [`Trained::new`](crate::experiment::Trained::new).
///
/// ```
/// use gfn::{examples::Triangles, prelude::*};
/// let env = Triangles::env();
/// let mut rng = Rng::seeded(0);
/// let net = GraphNet::new(&env, GraphNetConfig::default(), Device::Cpu, Kind::Float, &mut rng)?;
/// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
/// let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng)?;
/// assert!(trainer.step()?.loss.is_finite());
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Trainer<E: Env> {
    pub(super) context: Context<E>,
    pub(super) optimizer: Option<Box<dyn Optimizer>>,
    pub(super) sources: Sources<E>,
    pub(super) companions: Vec<Box<dyn Companion<E>>>,
    pub(super) rng: Rng,
    /// The id of the run, a random number below 2^53; a resumed run and all replicas have the same id.
    pub(super) run_id: u64,
    /// The step of the next check of policy and reward; 0 if `build` couldn't check the policy.
    pub(super) next_check: usize,
    pub(super) latest: Option<Batch<E>>,
    pub(super) description: Value,
    /// The user's text for readers of a checkpoint. Resuming ignores it.
    pub(super) note: Value,
    pub(super) attachments: Attachments,
    /// A warning that names the settings that differ from the checkpoint's; `None` if no setting differs.
    pub(super) resume_warning: Option<Warning>,
    pub(super) progress: StepProgress,
    /// The number of steps of the experiment that built the trainer; `None` for any other trainer.
    pub(crate) planned_steps: Option<usize>,
}

impl<E: TrainEnv> Trainer<E> {
    /// Builds a trainer at step 0 whose only source of trajectories is its policy. Reward, policy and
    /// objective may be boxed. [`policy_as`](Self::policy_as) returns the policy with its concrete type.
    ///
    /// # Errors
    /// [`Error::Config`] for invalid settings; [`Error::Missing`] for an environment without actions, a
    /// policy without an estimate that the objective needs (log F, log Z), and batches of one trajectory if
    /// the objective compares trajectories with their batch's mean; errors of [`TrainEnv::check_laws`],
    /// [`check_policy`] (from the first step if the policy needs conditions) and [`Adam::new`].
    pub fn new(
        env: E,
        reward: impl Reward<E::States> + 'static,
        policy: impl Policy<E> + Send + 'static,
        objective: impl Into<Box<dyn Objective>>,
        config: TrainerConfig,
        rng: Rng,
    ) -> Result<Self> {
        let context = Context {
            env,
            reward: Box::new(reward),
            policy: Box::new(policy),
            conditions: None,
            objective: objective.into(),
            config,
            step: 0,
            group: Box::new(Replica::alone()),
            average: None,
            rollout_times: None,
        };
        (E::trainer_code().build)(context, rng)
    }

    pub(super) fn build(mut context: Context<E>, rng: Rng) -> Result<Self> {
        context.share_among_seeds()?;
        let Context { env, policy, objective, config, .. } = &mut context;
        runtime::prepare();
        objective.check()?;
        config.check(objective.as_ref())?;
        env.check_laws()?;
        if config.epsilon.is_none() {
            let explorable = objective.origin() == Origin::Any && E::Dist::MIXES_WITH_UNIFORM;
            config.epsilon = Some(if explorable { TrainerConfig::EPSILON } else { Schedule::Constant(0.0) });
        }
        let mut optimizer: Option<Box<dyn Optimizer>> = None;
        if let Some(parameters) = policy.parameters() {
            optimizer = Some(Box::new(Adam::new(parameters, config.adam)?));
        }
        let is_checked = check_policy(env, policy.as_ref(), None, Budget::quick(), &mut Rng::seeded(0))?;
        if is_checked {
            context.check_estimates()?;
        }
        Ok(Self {
            context,
            optimizer,
            sources: Sources::default(),
            companions: Vec::new(),
            rng,
            // Forked processes have equal hash keys but different process ids, so the process id is hashed.
            run_id: RandomState::new().hash_one(std::process::id()) >> 11,
            next_check: if is_checked { next_check(0) } else { 0 },
            latest: None,
            description: Value::Null,
            note: Value::Null,
            attachments: Attachments::new(),
            resume_warning: None,
            progress: StepProgress::default(),
            planned_steps: None,
        })
    }

    /// Makes one training step by [`draw`](Self::draw), [`score`](Self::score), [`loss`](Self::loss),
    /// [`apply`](Self::apply) and [`advance`](Self::advance). If the objective splits its batches
    /// ([`Objective::n_minibatches`]), the batch is split by [`split`](Self::split), and each epoch makes an
    /// update on each minibatch. Only [`Fit`](crate::run::Fit) raises warnings.
    ///
    /// # Errors
    /// The errors of the five methods. A step that fails clears the gradients of the parameters.
    pub fn step(&mut self) -> Result<StepStats> {
        (E::trainer_code().step)(self)
    }

    pub(super) fn make_step(&mut self) -> Result<StepStats> {
        let is_split = self.context.objective.n_minibatches() > 1;
        let step = if is_split { self.update_by_minibatches() } else { self.update_once() };
        step.inspect_err(|_| {
            self.context.clear_gradients();
            if let Some(mut log_z) = std::mem::take(&mut self.progress).first_log_z {
                let _ = no_grad(|| log_z.fill_(UNSET_LOG_Z));
            }
        })
    }

    /// Draws the batch of the next step from all sources of the trainer.
    ///
    /// ```
    /// use gfn::prelude::*;
    /// let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    /// let env = GraphEnv::free(actions, GraphState::undirected(3))?;
    /// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
    /// let mut trainer = Experiment::new(env, reward).steps(2).trainer()?;
    /// // A step with the trainer's optimiser.
    /// let mut batch = trainer.draw()?;
    /// let scores = trainer.score(&mut batch)?;
    /// let loss = trainer.loss(&scores)?;
    /// trainer.apply(&loss, &scores)?;
    /// trainer.advance(batch, &scores)?;
    /// // A step with plain gradient descent.
    /// let mut batch = trainer.draw()?;
    /// let scores = trainer.score(&mut batch)?;
    /// trainer.loss(&scores)?.backward();
    /// for parameter in trainer.policy().parameters().into_iter().flatten() {
    ///     let (mut values, gradient) = (parameter.tensor.shallow_clone(), parameter.tensor.grad());
    ///     let _ = tch::no_grad(|| values.f_sub_(&(gradient * 0.01)));
    ///     parameter.tensor.grad().zero_();
    /// }
    /// trainer.advance(batch, &scores)?;
    /// assert_eq!(trainer.steps_done(), 2);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of sampler, reward, policy and sources; [`Error::Missing`], once, if the parameters were
    /// updated since the last call, but [`advance`](Self::advance) wasn't called. Steps 1, 11 and 101
    /// check the policy as [`new`](Self::new) does, and return [`Error::Contract`] for a reward that
    /// differs between isomorphic graphs. [`reward_calls`](Self::reward_calls) doesn't count the check's
    /// objects (at most 16).
    pub fn draw(&mut self) -> Result<Batch<E>> {
        (E::trainer_code().draw)(self)
    }

    pub(super) fn draw_batch(&mut self) -> Result<Batch<E>> {
        let started = Instant::now();
        self.progress.restart()?;
        let needs_reward_check = self.latest.is_none() || self.context.step >= self.next_check;
        self.prepare()?;
        self.progress.replica_rng = self.context.split_stream(&mut self.rng);
        let Self { context, sources, rng, progress, .. } = self;
        let batch = sources.draw(context, progress.replica_rng.as_mut().unwrap_or(rng))?;
        if needs_reward_check && !sources.fresh_traits(context).is_external {
            check_reward(
                &context.env,
                context.reward.as_ref(),
                &batch.trajectories,
                batch.fresh,
                Budget::quick(),
            )?;
        }
        progress.first_log_z = start_log_z(context, &batch.trajectories, batch.fresh)?;
        if let (Some(averaged), Some(parameters)) = (&mut context.average, context.policy.parameters())
            && progress.first_log_z.is_some()
        {
            averaged.average.restart(parameters)?;
        }
        progress.stats.seconds[0] = started.elapsed().as_secs_f64();
        Ok(batch)
    }

    /// Computes all quantities of a batch that the objective needs, with gradients.
    ///
    /// # Errors
    /// The errors of [`score`](crate::objective::score) and of companions; [`Error::Missing`] for custom
    /// trajectories whose conditions don't match the trainer's, for a batch that must be scored in parts, and
    /// for a batch not from [`draw`](Self::draw) if the objective makes several updates.
    pub fn score(&mut self, batch: &mut Batch<E>) -> Result<BatchScores> {
        (E::trainer_code().score)(self, batch)
    }

    pub(super) fn score_batch(&mut self, batch: &mut Batch<E>) -> Result<BatchScores> {
        let started = Instant::now();
        let Self { context, sources, companions, rng, progress, .. } = self;
        if !batch.is_drawn() {
            context.check_conditions(&batch.trajectories)?;
        }
        if batch.is_drawn() && sources.fresh_traits(context).is_scored_in_parts {
            let missing = "a step that scores each part of a batch separately";
            let remedy = "make steps by the function of that source (`thompson_step`)";
            return Err(Error::missing("a source of the trainer", missing, remedy));
        }
        let makes_updates = context.objective.epochs() * context.objective.n_minibatches() > 1;
        let compares_updates = makes_updates && context.config.transitions.is_none();
        if compares_updates && !batch.is_drawn() {
            let remedy = "for each update, score the whole batch that `draw` returned";
            let missing = "a batch that the trainer drew, to compare later updates with the first one";
            return Err(Error::missing(context.objective.name(), missing, remedy));
        }
        let rng = progress.replica_rng.as_mut().unwrap_or(rng);
        let scores = gradients::score(context, companions, &batch.trajectories, batch.old_values(), rng)?;
        if compares_updates {
            batch.old.get_or_insert_with(|| scores.whole().to_old());
        }
        progress.stats.seconds[1] += started.elapsed().as_secs_f64();
        Ok(scores)
    }

    /// Returns the loss of `scores`. A loss on a device is checked later, but before the update.
    ///
    /// # Errors
    /// Errors of the objective; [`Error::NonFinite`] or [`Error::Shape`] unless the loss is a finite scalar.
    pub fn loss(&mut self, scores: &BatchScores) -> Result<Tensor> {
        let started = Instant::now();
        let loss = gradients::loss(&self.context, scores)?;
        self.progress.take_loss(&loss, self.context.step)?;
        self.progress.stats.seconds[1] += started.elapsed().as_secs_f64();
        Ok(loss)
    }

    /// Sets the loss that the step reports. The default is the first loss that [`loss`](Self::loss) returns.
    pub fn record_loss(&mut self, loss: f64) {
        self.progress.loss = Some(loss);
    }

    /// Clears the gradients, differentiates a loss of these scores, and calls [`update`](Self::update).
    ///
    /// # Errors
    /// The errors of [`update`](Self::update); [`Error::Missing`], before any update, for a loss without
    /// gradient (inside `no_grad`), and for scores of parts of a batch if a source learns from losses.
    pub fn apply(&mut self, loss: &Tensor, scores: &BatchScores) -> Result<()> {
        (E::trainer_code().apply)(self, loss, scores)
    }

    pub(super) fn apply_loss(&mut self, loss: &Tensor, scores: &BatchScores) -> Result<()> {
        let started = Instant::now();
        scores.check_learners(self.sources.need_losses(&self.context))?;
        self.context.clear_gradients();
        gradients::backward(&self.context, loss, scores)?;
        self.progress.stats.seconds[2] += started.elapsed().as_secs_f64();
        self.update_parameters()
    }

    /// Updates the parameters by their gradients, for a loop that differentiates its loss itself. Calls each
    /// companion's [`before_update`](super::Companion::before_update) and then the optimizer.
    ///
    /// # Errors
    /// The errors of companions and [`Optimizer::step`]; [`Error::Missing`] for scores in chunks or of
    /// several replicas: only [`apply`](Self::apply) computes their gradients.
    pub fn update(&mut self) -> Result<()> {
        self.context.check_custom_update()?;
        self.update_parameters()
    }

    fn update_parameters(&mut self) -> Result<()> {
        let started = Instant::now();
        let Self { context, companions, optimizer, progress, .. } = self;
        progress.read_loss(context.step)?;
        for companion in companions {
            companion.before_update(context)?;
        }
        progress.stats.seconds[2] += started.elapsed().as_secs_f64();
        let started = Instant::now();
        let mut grad_norm = 0.0;
        if let Some(optimizer) = optimizer {
            optimizer.scale_lr(context.config.lr_scale.at(context.step))?;
            grad_norm = optimizer.step()?.grad_norm;
        }
        if progress.updates == 0 {
            progress.stats.grad_norm = grad_norm;
        }
        progress.updates += 1;
        progress.stats.seconds[3] += started.elapsed().as_secs_f64();
        progress.first_log_z = None;
        Ok(())
    }

    /// Ends a step and counts it. Sources learn from `scores`, the scores of the step's first update; a
    /// replay buffer sets priorities, for example. Sources don't learn from a custom batch or from a batch
    /// that was scored in parts. Then companions and the moving average are updated.
    ///
    /// # Errors
    /// The errors of sources and companions; [`Error::Shape`] for scores of another batch; [`Error::Missing`]
    /// for a step without [`apply`](Self::apply) if batches are scored in chunks or by several replicas, and
    /// for scores of parts of a batch if a source learns from losses.
    pub fn advance(&mut self, batch: Batch<E>, scores: &BatchScores) -> Result<StepStats> {
        (E::trainer_code().advance)(self, batch, scores)
    }

    pub(super) fn advance_batch(&mut self, mut batch: Batch<E>, scores: &BatchScores) -> Result<StepStats> {
        let Self { context, sources, companions, progress, .. } = self;
        let StepProgress { mut stats, loss, updates, .. } = progress.finish(context.step)?;
        stats.loss = loss.unwrap_or(f64::NAN);
        if updates == 0 {
            context.check_custom_update()?;
            stats.grad_norm = context.gradient_norm();
        }
        let is_whole = scores.check_batch(&batch.trajectories)?;
        scores.check_learners(batch.is_drawn() && sources.need_losses(context))?;
        let seen = scores.whole().on_host();
        stats.describe(&seen, context.objective.reward_exponent());
        if context.replicas().is_none() {
            stats.mean_len = batch.trajectories.mean_len();
        }
        if is_whole {
            let replica_scores = scores.replica_scores();
            let of_batch = replica_scores.as_ref().unwrap_or(&seen);
            batch.log_weights = of_batch.log_weights(1.0);
            sources.learn(&batch, of_batch, context)?;
        }
        for companion in companions {
            companion.after_step(&batch.trajectories, context)?;
        }
        if let Some(averaged) = &mut context.average {
            averaged.follow(context.policy.parameters(), context.step + 1)?;
        }
        context.step += 1;
        self.latest = Some(batch);
        Ok(stats)
    }
}
