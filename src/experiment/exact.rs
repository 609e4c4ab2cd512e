use crate::env::{EnumerableEnv, StateGraph};
use crate::metrics::{Distances, Target, TerminatingDistribution};
use crate::quantity::Quantity;
use crate::train::Trainer;
use crate::{Error, Result};

/// The exact distribution of a policy, and the target distribution of the reward. Probabilities are listed by
/// the index of the state in `space`.
///
/// ```
/// use gfn::prelude::*;
/// use gfn::examples::Triangles;
/// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
/// let exact = Experiment::new(Triangles::env(), reward).steps(100).train()?.exact(100)?;
/// assert_eq!(exact.space.states().graphs()[exact.most_probable(1)[0]].n_edges(), 3);
/// assert!((exact.target.log_z - (3.0 * 1f64.exp().ln_1p())).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct ExactEvaluation<E: EnumerableEnv> {
    /// The state graph, with all states of the environment.
    pub space: StateGraph<E>,
    /// The target distribution R(x) / Z.
    pub target: Target,
    /// The distribution of finished objects that the policy samples.
    pub learned: TerminatingDistribution,
    /// The distances between the policy's distribution and the target distribution.
    pub distances: Distances,
}

impl<E: EnumerableEnv> std::fmt::Debug for ExactEvaluation<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("ExactEvaluation");
        out.field("space", &self.space).field("distances", &self.distances).finish_non_exhaustive()
    }
}

impl<E: EnumerableEnv> ExactEvaluation<E> {
    /// Lists all states of the trainer's environment, which must be at most `limit`, and compares the exact
    /// distribution of its policy with the target.
    ///
    /// # Errors
    /// [`Error::TooManyStates`] for more than `limit` states; [`Error::Config`] for several instances
    /// ([`StateGraph::build_of`] lists the states of one instance), and for an objective that is relative to
    /// a prior, whose target isn't R / Z; the errors of [`StateGraph::build`],
    /// [`StateGraph::check_ways_back`], [`StateGraph::terminating_distribution`] and
    /// [`StateGraph::target_distribution`].
    pub fn new(trainer: &Trainer<E>, limit: usize) -> Result<Self> {
        let objective = &trainer.context().objective;
        if objective.needs().has(Quantity::LogPrior) {
            let expected = "an objective whose target is R / Z; an objective relative to a prior has another \
                target, which you can compare with `StateGraph::terminating_distribution`";
            return Err(Error::config("the objective of an exact evaluation", objective.name(), expected));
        }
        let space = StateGraph::build(trainer.env(), limit)?;
        space.check_ways_back(trainer.env())?;
        let target = space.target_distribution(trainer.reward(), None)?;
        let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
        let distances = Distances::between(&learned.probs, &target.probs)?;
        Ok(Self { space, target, learned, distances })
    }

    /// Returns the indices of the `n` states in which the policy ends most often, the most probable first.
    #[must_use]
    pub fn most_probable(&self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.space.len()).collect();
        order.sort_by(|&a, &b| self.learned.probs[b].total_cmp(&self.learned.probs[a]));
        order.truncate(n);
        order
    }
}
