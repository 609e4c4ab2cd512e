//! The updates of a training step.

use tch::no_grad;

use crate::contract::{Budget, check_policy};
use crate::train::config::check_minibatches;
use crate::train::context::next_check;
use crate::train::replicas::check_equal_tasks;
use crate::train::{Batch, Context, StepStats, TrainEnv, Trainer};
use crate::{Result, Rng};

impl<E: TrainEnv> Trainer<E> {
    /// Checks replicas and policy if a check is due, and draws new noise for the policy's noisy layers.
    pub(super) fn prepare(&mut self) -> Result<()> {
        if self.latest.is_none() {
            // Replicas may have resumed from unequal checkpoints, so each run compares their trainers again.
            self.check_equal_replicas()?;
            check_equal_tasks(&self.context, self.is_sampled_outside())?;
            self.context.measure_rollouts(self.is_sampled_outside())?;
        }
        let Context { env, policy, conditions, step, .. } = &self.context;
        if *step >= self.next_check {
            let rng = &mut Rng::seeded(*step as u64);
            check_policy(env, policy, conditions.as_deref(), Budget::quick(), rng)?;
            self.next_check = next_check(*step);
        }
        // Without noisy layers this call draws no random numbers.
        if let Some(parameters) = policy.parameters() {
            parameters.reset_noise(&mut self.rng);
        }
        Ok(())
    }

    pub(super) fn update_once(&mut self) -> Result<StepStats> {
        let mut batch = self.draw_batch()?;
        let scores = self.score_batch(&mut batch)?;
        let loss = self.loss(&scores)?;
        self.apply_loss(&loss, &scores)?;
        for _ in 1..self.context.updates_per_batch() {
            let again = self.score_batch(&mut batch)?;
            let loss = self.loss(&again)?;
            self.apply_loss(&loss, &again)?;
        }
        self.advance_batch(batch, &scores)
    }

    /// Makes the step of an objective that splits its batches: in each epoch one update on each minibatch.
    pub(super) fn update_by_minibatches(&mut self) -> Result<StepStats> {
        let mut batch = self.draw_batch()?;
        // The scores of the whole batch are only reported, so they need no gradients.
        let scores = no_grad(|| self.score_batch(&mut batch))?;
        let _ = self.loss(&scores)?;
        let mut minibatches = self.split(&batch)?;
        for _ in 0..self.context.objective.epochs() {
            for minibatch in &mut minibatches {
                let scores = self.score_batch(minibatch)?;
                let loss = self.loss(&scores)?;
                self.apply_loss(&loss, &scores)?;
            }
        }
        self.advance_batch(batch, &scores)
    }

    /// Splits a drawn batch at random into the objective's number of minibatches, of nearly equal sizes. Each
    /// minibatch keeps its scores from before the first update, so call this method before
    /// [`apply`](Self::apply). For a loop that makes the updates of [`step`](Self::step) itself.
    ///
    /// ```
    /// use gfn::{objective::ProximalPolicy, prelude::*};
    /// let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    /// let env = GraphEnv::free(actions, GraphState::undirected(3))?;
    /// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
    /// let objective = ProximalPolicy { n_minibatches: 2, ..ProximalPolicy::default() };
    /// let mut trainer = Experiment::new(env, reward).objective(objective).steps(1).trainer()?;
    /// let mut batch = trainer.draw()?;
    /// let whole = tch::no_grad(|| trainer.score(&mut batch))?;
    /// let mut minibatches = trainer.split(&batch)?;
    /// for _ in 0..objective.epochs {
    ///     for minibatch in &mut minibatches {
    ///         let scores = trainer.score(minibatch)?;
    ///         let loss = trainer.loss(&scores)?;
    ///         trainer.apply(&loss, &scores)?;
    ///     }
    /// }
    /// trainer.advance(batch, &whole)?;
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a batch with too few trajectories for the objective's
    /// minibatches; the errors of [`score`](Self::score).
    pub fn split(&mut self, batch: &Batch<E>) -> Result<Vec<Batch<E>>> {
        let objective = self.context.objective.as_ref();
        check_minibatches(objective, batch.trajectories.len())?;
        let rng = self.progress.replica_rng.as_mut().unwrap_or(&mut self.rng);
        let mut minibatches = batch.split(objective.n_minibatches(), rng)?;
        for minibatch in &mut minibatches {
            no_grad(|| self.score_batch(minibatch))?;
        }
        Ok(minibatches)
    }
}
