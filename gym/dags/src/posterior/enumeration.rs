use gfn::Result;
use gfn::env::{Rows, StateGraph, log_rewards};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::tensor::log_sum_exp;

use super::{Marginals, most_probable};
use crate::{DagReward, LocalScore};

/// The exact posterior over the graphs of an environment, which is computed by enumeration.
///
/// The numbers of acyclic graphs with 1 to 6 nodes are 1, 3, 25, 543, 29,281 and 3,781,503. The
/// probabilities are in the order of the environment's [`StateGraph`](gfn::env::StateGraph). The posterior
/// can therefore be compared with the exact distribution of a policy
/// ([`StateGraph::terminating_distribution`](gfn::env::StateGraph::terminating_distribution)) by
/// [`Distances`](gfn::metrics::Distances).
///
/// ```
/// use gfn_dags::*;
/// let rows = [[0.5, 1.0, -0.2], [-1.0, -0.5, 0.3], [0.2, 0.8, 1.1], [1.5, 0.1, -0.7], [-0.3, 0.6, 0.4]];
/// let bge = Bge::new(&ContinuousData::from_rows(&rows)?, BgeConfig::default())?;
/// let reward = DagReward::new(bge, StructurePrior::Uniform)?;
/// let env = BayesianStructure::new(StructureConfig::new(3))?.into_env();
/// let posterior = ExactPosterior::enumerate(&env, &reward, 100)?;
/// assert_eq!(posterior.probs().len(), 25);
/// assert!((posterior.log_z() + 18.09036457170277).abs() < 1e-9);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ExactPosterior {
    states: GraphStates,
    probs: Vec<f64>,
    log_z: f64,
}

impl ExactPosterior {
    /// Enumerates the graphs of an environment and computes their posterior. The graphs are in the order of
    /// the environment's [`StateGraph`](gfn::env::StateGraph).
    ///
    /// # Errors
    /// [`Error::TooManyStates`](gfn::Error::TooManyStates) for more than `limit` graphs; errors of the
    /// reward.
    pub fn enumerate<S: LocalScore>(env: &GraphEnv, reward: &DagReward<S>, limit: usize) -> Result<Self> {
        Self::from_states(StateGraph::build(env, limit)?.states(), reward)
    }

    /// Computes the posterior over the given graphs, which must be distinct.
    ///
    /// # Errors
    /// Errors of the reward.
    pub fn from_states<S: LocalScore>(states: &GraphStates, reward: &DagReward<S>) -> Result<Self> {
        let log_joint = log_rewards(reward, states, None)?;
        let log_z = log_sum_exp(log_joint.iter().copied());
        let probs = log_joint.iter().map(|x| (x - log_z).exp()).collect();
        Ok(Self { states: states.clone(), probs, log_z })
    }

    /// Returns the graphs over which the posterior is computed.
    #[must_use]
    pub fn states(&self) -> &GraphStates {
        &self.states
    }

    /// Returns the posterior probability of each graph.
    #[must_use]
    pub fn probs(&self) -> &[f64] {
        &self.probs
    }

    /// Returns log Z, which is the natural logarithm of the sum of the rewards. It is the log-evidence,
    /// unless rewards are relative to a reference graph.
    #[must_use]
    pub fn log_z(&self) -> f64 {
        self.log_z
    }

    /// Computes the entropy of the posterior, in nats.
    #[must_use]
    pub fn entropy(&self) -> f64 {
        -self.probs.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>()
    }

    /// Computes the posterior marginals of edges, paths and Markov blankets.
    ///
    /// # Errors
    /// Errors of [`Marginals::from_graphs`], for example if there are no graphs.
    pub fn marginals(&self) -> Result<Marginals> {
        Marginals::from_graphs(&self.states, Some(&self.probs))
    }

    /// Returns the `k` most probable graphs and their probabilities, with the most probable first.
    ///
    /// # Errors
    /// Errors of [`most_probable`].
    pub fn top(&self, k: usize) -> Result<(GraphStates, Vec<f64>)> {
        let top = most_probable(&self.states, Some(&self.probs), k)?;
        let rows: Vec<usize> = top.iter().map(|(row, _)| *row).collect();
        Ok((self.states.select(&rows), top.into_iter().map(|(_, p)| p).collect()))
    }
}
