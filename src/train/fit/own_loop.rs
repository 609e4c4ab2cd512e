//! A step in four parts, for loops and optimisers of one's own.

use tch::Tensor;

use crate::env::Env;
use crate::nn::Restored;
use crate::objective::Scores;
use crate::policy::Policy;
use crate::rollout::Trajectories;
use crate::train::TrainEnv;
use crate::train::gradients::{Scored, loss_of};
use crate::train::trainer::Drawn;
use crate::train::{Batch, Context, StepStats, Trainer};
use crate::{Error, Result};

/// The scores of a batch in a loop of one's own ([`Trainer::score`]).
#[derive(Debug)]
pub struct BatchScores {
    whole: Scores,
    /// The shares of several heads, where each learns from one.
    shares: Vec<Scores>,
    /// As they were scored, without gradient: an update changes what `log_z` is a view of.
    seen: Scores,
}

impl BatchScores {
    /// The same without gradients, and without a view of what an update changes.
    ///
    /// # Errors
    /// None but those of scores that don't fit themselves.
    pub fn detached(self) -> Result<Self> {
        let detached =
            |scores: &Scores| Scores::joined(std::slice::from_ref(scores), |_, tensor| tensor.detach().copy());
        let shares = self.shares.iter().map(detached).collect::<Result<_>>()?;
        Ok(Self { whole: detached(&self.whole)?, shares, seen: self.seen })
    }

    /// The scores of the whole batch, with gradients; under Thompson sampling those of all heads' shares, one after the other.
    #[must_use]
    pub fn whole(&self) -> &Scores {
        &self.whole
    }
}

impl<E: TrainEnv> Trainer<E> {
    /// The batch of the next step, of all that the trainer draws from: the policy, a teacher, local search, the replay buffer, given
    /// data, further sources. [`step`](Self::step) does this and what follows by itself.
    ///
    /// ```
    /// use gfn::{env::{Rows, VectorEnv, VectorStates}, objective::TrajectoryBalance, testing::word_env, train::{Trainer, TrainerConfig}, Rng};
    /// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig, Policy};
    /// use tch::{Device, Kind, Tensor};
    /// let env = word_env(2, 2);
    /// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), MlpPolicyConfig::default(), Device::Cpu, Kind::Float)?;
    /// let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
    /// let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))?;
    /// for _ in 0..3 {
    ///     let mut batch = trainer.draw()?;
    ///     let scores = trainer.score(&mut batch)?;
    ///     let loss = trainer.loss(&scores)?;
    ///     loss.backward();
    ///     for parameter in Policy::<VectorEnv>::parameters(trainer.policy()).into_iter().flatten() {
    ///         let (mut values, gradient) = (parameter.tensor.shallow_clone(), parameter.tensor.grad());
    ///         let _ = tch::no_grad(|| values.f_sub_(&(gradient * 0.01)));
    ///         parameter.tensor.grad().zero_();
    ///     }
    ///     trainer.advance(batch, &scores, loss.double_value(&[]))?;
    /// }
    /// assert_eq!(trainer.steps_done(), 3);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`step`](Self::step) up to there; [`Error::Missing`] of several replicas, and where batches are scored in chunks.
    pub fn draw(&mut self) -> Result<Batch<E>> {
        (E::trainer_code().draw)(self)
    }

    pub(in crate::train) fn draw_own(&mut self) -> Result<Batch<E>> {
        self.check_own_loop()?;
        let Drawn { batch, unset_log_z, .. } = self.draw_batch()?;
        // log Z keeps its first value, even if this batch is never advanced.
        unset_log_z.into_iter().for_each(Restored::leave);
        Ok(batch)
    }

    /// The scores of a batch, with gradients: what [`step`](Self::step) computes its loss of.
    ///
    /// # Errors
    /// Those of [`score`](crate::objective::score) and of companions; [`Error::Missing`] as for [`draw`](Self::draw).
    pub fn score(&mut self, batch: &mut Batch<E>) -> Result<BatchScores> {
        (E::trainer_code().score)(self, batch)
    }

    pub(in crate::train) fn score_own(&mut self, batch: &mut Batch<E>) -> Result<BatchScores> {
        self.check_own_loop()?;
        let Self { context, sources, companions, rng, .. } = self;
        check_conditions(context, &batch.trajectories)?;
        if context.objective.epochs() > 1 && !batch.is_drawn() {
            let remedy = "score the whole batch that `draw` gave, for each update";
            return Err(Error::missing(
                context.objective.name(),
                "a batch that it compares later updates on with",
                remedy,
            ));
        }
        let mut shares = Vec::new();
        sources.own.each_part(context, &batch.trajectories, rng, |part, _| {
            shares.push(Scored::new(context, companions, part, context.scoring(), batch.old_values())?.scores);
            Ok(())
        })?;
        let whole = match shares.pop() {
            Some(only) if shares.is_empty() => only,
            last => {
                shares.extend(last);
                Scores::joined(&shares, |_, tensor| tensor)?
            }
        };
        if context.objective.epochs() > 1 && shares.is_empty() {
            batch.keep_old(&whole);
        }
        let seen = Scores::joined(std::slice::from_ref(&whole), |_, tensor| tensor.detach())?;
        Ok(BatchScores { whole, shares, seen })
    }

    /// The loss of scores by the trainer's objective: one finite number, to be differentiated.
    ///
    /// # Errors
    /// [`Error::NonFinite`] and [`Error::Shape`] as [`step`](Self::step) has them, and those of the objective.
    pub fn loss(&self, scores: &BatchScores) -> Result<Tensor> {
        let BatchScores { whole, shares, .. } = scores;
        let of_shares = shares.iter().map(|share| loss_of(&self.context, share));
        let sum = of_shares.reduce(|sum, loss| Ok(sum? + loss?));
        sum.map_or_else(|| loss_of(&self.context, whole), |sum| Ok(sum? / shares.len() as f64))
    }

    /// Ends a step whose update was made outside: sources learn from the scores (priorities, a teacher), averages follow, the step is
    /// counted, schedules move on, warnings look at it. `loss` is what was differentiated, for the record. A batch from elsewhere, or one
    /// chosen from, counts as a step, too; nobody's priorities follow it. [`before_update`](crate::train::Companion::before_update) of companions isn't called.
    ///
    /// # Errors
    /// Those of sources and companions; [`Error::Shape`] for scores of another batch; [`Error::Warned`] as for [`step`](Self::step).
    pub fn advance(&mut self, batch: Batch<E>, scores: &BatchScores, loss: f64) -> Result<StepStats> {
        (E::trainer_code().advance)(self, batch, scores, loss)
    }

    pub(in crate::train) fn advance_own(
        &mut self,
        batch: Batch<E>,
        scores: &BatchScores,
        loss: f64,
    ) -> Result<StepStats> {
        let BatchScores { shares, seen, .. } = scores;
        if batch.trajectories.is_empty() {
            return Err(Error::config("batch", "no trajectory", "at least one trajectory"));
        }
        let (got, expected) = (seen.offsets.as_slice(), batch.trajectories.offsets());
        if shares.is_empty() && got != expected {
            let sizes =
                [expected, got].map(|offsets| vec![offsets.len() as i64 - 1, offsets.last().map_or(0, |&n| n as i64)]);
            let [expected, got] = sizes;
            return Err(Error::shape(
                "scores, as trajectories and transitions,",
                expected,
                got,
                "advance a batch with its own scores, as `score` gave them",
            ));
        }
        let exponent = self.context.objective.reward_exponent();
        let mut stats = StepStats { loss, grad_norm: gradient_norm(&self.context), ..StepStats::default() };
        stats.describe(seen, exponent);
        stats.mean_len = batch.trajectories.mean_len();
        self.sources.learn(&batch, seen, &self.context)?;
        self.end_step(batch, stats, &seen.log_weights(exponent))
    }

    /// Offers trajectories to the replay buffer, with their recorded log-rewards or those that the reward gives; the number that stayed.
    ///
    /// # Errors
    /// [`Error::Missing`] without a buffer, and those of reward and buffer.
    pub fn remember(&mut self, trajectories: &Trajectories<E>) -> Result<usize> {
        let Self { context, sources, .. } = self;
        let Some(replay) = &mut sources.replay else {
            return Err(Error::missing(
                "keeping trajectories",
                "a replay buffer",
                "give the trainer one (`with_replay`)",
            ));
        };
        check_conditions(context, trajectories)?;
        let walks = trajectories.walks(&context.env)?;
        if let Some(known) = trajectories.recorded_log_rewards() {
            return replay.buffer.add(&context.env, &walks, known);
        }
        let rewards = trajectories.log_rewards(context.reward.as_ref())?;
        sources.reward_calls += rewards.len() as u64;
        replay.buffer.add(&context.env, &walks, &rewards)
    }

    fn check_own_loop(&self) -> Result<()> {
        let context = &self.context;
        let (part, remedy) = if context.replicas().is_some() {
            ("several replicas", "train them by `step` or `Fit`, which join their gradients")
        } else if context.config.chunk.is_some() {
            ("batches that are scored in chunks", "train by `step` or `Fit`, or without `TrainerConfig::chunk`")
        } else if context.config.transitions.is_some() {
            (
                "updates on single transitions",
                "train by `step` or `Fit`, or score them by `objective::score_transitions`",
            )
        } else {
            return Ok(());
        };
        Err(Error::missing(part, "a trainer that differentiates by itself", remedy))
    }
}

/// Refuses trajectories under conditions that the trainer can't have drawn, and those without where it has some.
fn check_conditions<E: Env>(context: &Context<E>, trajectories: &Trajectories<E>) -> Result<()> {
    match (&context.conditions, trajectories.conditions()) {
        (None, None) => Ok(()),
        (Some(source), Some(conditions)) => source.check(conditions),
        _ => Err(Error::missing(
            "trajectories from elsewhere",
            "conditions where the trainer has some, and none where it hasn't",
            "draw them under conditions of `Context::conditions`",
        )),
    }
}

/// The norm of the gradients that are there.
fn gradient_norm<E: Env>(context: &Context<E>) -> f64 {
    let parameters = context.policy.parameters().into_iter().flatten();
    let gradients = parameters.map(|parameter| parameter.tensor.grad()).filter(Tensor::defined);
    gradients.fold(0.0, |sum: f64, gradient| sum + gradient.norm().double_value(&[]).powi(2)).sqrt()
}
