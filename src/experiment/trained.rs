use super::ExactEvaluation;
use crate::env::{EnumerableEnv, Env};
use crate::rollout::Sampler;
use crate::train::TrainEnv;
use crate::train::Trainer;
use crate::{Result, Rng};

/// A trainer after training. Objects can be sampled from its policy, and the policy can be evaluated. Any
/// trainer can be converted to this type.
///
/// ```
/// use gfn::prelude::*;
/// use gfn::examples::Triangles;
/// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
/// let mut trained = Experiment::new(Triangles::env(), reward).steps(5).train()?;
/// for graph in trained.sample(3)?.graphs() {
///     println!("{graph}");
/// }
/// // More steps, and another evaluation.
/// Fit::new(10).run(&mut trained.trainer)?;
/// assert!(trained.exact(8)?.distances.tv < 1.0);
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Trained<E: Env> {
    /// The trainer, with its environment, reward and policy.
    pub trainer: Trainer<E>,
    rng: Rng,
}

impl<E: Env> std::fmt::Debug for Trained<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trained").field("trainer", &self.trainer).finish_non_exhaustive()
    }
}

impl<E: TrainEnv> Trained<E> {
    /// Wraps a trainer. Samples are drawn from a separate random stream, so they don't change further
    /// training.
    #[must_use]
    pub fn new(trainer: Trainer<E>) -> Self {
        let rng = trainer.evaluation_rng();
        Self { trainer, rng }
    }

    /// Samples `n` finished objects from the policy, without exploration. Each call samples new objects.
    ///
    /// # Errors
    /// The errors of [`Sampler::walks`].
    pub fn sample(&mut self, n: usize) -> Result<E::States> {
        let walks = Sampler::new(self.trainer.env(), self.trainer.policy()).walks(n, &mut self.rng)?;
        Ok(walks.terminal)
    }
}

impl<E: EnumerableEnv> Trained<E> {
    /// Compares the exact distribution of the policy with the target distribution. The environment must have
    /// at most `limit` states, which are all listed. [`StateGraph::build`](crate::env::StateGraph::build)
    /// with the same limit shows before training if there are more.
    ///
    /// # Errors
    /// The errors of [`ExactEvaluation::new`].
    pub fn exact(&self, limit: usize) -> Result<ExactEvaluation<E>> {
        ExactEvaluation::new(&self.trainer, limit)
    }
}
