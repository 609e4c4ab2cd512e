use gfn::env::{Reward, Rows, Slots};
use gfn::{Error, Result};
use rayon::prelude::*;

use crate::{Dag, DagStates, LocalScore, NodeSet, StructurePrior};

/// Graphs that a thread takes at least.
const MIN_DAGS_PER_THREAD: usize = 64;

/// The log-reward of a graph: the sum of its local scores and of the structure prior's terms, log p(data, graph).
///
/// Every graph can be finished, so the same is given for unfinished ones (forward-looking objectives), and
/// [`deltas`](Self::deltas) gives what one more edge changes, which takes two local scores.
///
/// ```
/// use gfn::env::{Env, Reward, Slots};
/// use gfn_dags::*;
/// let rows = [[0.5, 1.0, -0.2], [-1.0, -0.5, 0.3], [0.2, 0.8, 1.1], [1.5, 0.1, -0.7], [-0.3, 0.6, 0.4]];
/// let bge = Bge::new(&ContinuousData::from_rows(&rows)?, BgeConfig::default())?;
/// let reward = DagReward::new(CachedScores::ahead(bge, None)?, StructurePrior::Uniform)?;
/// let env = BayesianStructure::new(StructureConfig::new(3))?;
/// let empty = reward.log_reward(&env.initial(&[0]), None)?[0];
/// assert!((empty + 20.576018533636898).abs() < 1e-9);
/// let delta = reward.deltas(&env.initial(&[0]), &Slots(vec![1]))?[0];
/// assert!((empty + delta + 21.403017182745014).abs() < 1e-9);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct DagReward<S> {
    score: S,
    /// By number of parents.
    prior: Vec<f64>,
    start: f64,
}

impl<S: LocalScore> DagReward<S> {
    /// The reward of these scores under a prior.
    ///
    /// # Errors
    /// Those of [`StructurePrior::terms`].
    pub fn new(score: S, prior: StructurePrior) -> Result<Self> {
        let prior = prior.terms(score.n_nodes())?;
        Ok(Self { score, prior, start: 0.0 })
    }

    /// Rewards relative to that of a graph, such as the environment's initial one: the same posterior, with numbers near 0 for
    /// networks and log Z to learn. What torchgfn and jax-dag-gflownet do with the empty graph.
    #[must_use]
    pub fn relative_to(mut self, start: &Dag<'_>) -> Self {
        self.start = 0.0;
        self.start = self.log_joint(start);
        self
    }

    /// The value that is subtracted from each log-reward: log p(data, graph) of the graph that rewards are relative to, or 0.
    #[must_use]
    pub fn offset(&self) -> f64 {
        self.start
    }

    /// The scores.
    #[must_use]
    pub fn score(&self) -> &S {
        &self.score
    }

    /// The term of a node with these parents: its score and the prior's.
    pub fn term(&self, node: usize, parents: &NodeSet) -> f64 {
        self.score.local_score(node, parents) + self.prior[parents.len()]
    }

    /// The log-reward of one graph.
    pub fn log_joint(&self, dag: &Dag<'_>) -> f64 {
        (0..dag.n_nodes()).map(|node| self.term(node, &dag.parents(node))).sum::<f64>() - self.start
    }

    /// log R of the state that each forward action leads to, less log R of the state; 0 for an exit.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one action per state, and the graphs have as many nodes as the scores.
    pub fn deltas(&self, states: &DagStates, actions: &Slots) -> Result<Vec<f64>> {
        self.check(states)?;
        if states.len() != actions.len() {
            return Err(Error::shape(
                "actions",
                [states.len() as i64],
                [actions.len() as i64],
                "give one action per state",
            ));
        }
        let n = states.n_nodes();
        let delta = |(dag, &slot): (Dag<'_>, &u32)| {
            let (source, target) = (slot as usize / n, slot as usize % n);
            if source >= n {
                return 0.0;
            }
            let parents = dag.parents(target);
            self.term(target, &parents.with(source)) - self.term(target, &parents.without(source))
        };
        Ok(states.dags().zip(&actions.0).map(delta).collect())
    }

    fn check(&self, states: &DagStates) -> Result<()> {
        if states.n_nodes() == self.score.n_nodes() {
            return Ok(());
        }
        Err(Error::shape(
            "graphs to score",
            [states.len() as i64, self.score.n_nodes() as i64],
            [states.len() as i64, states.n_nodes() as i64],
            "give graphs with one node for each variable of the data",
        ))
    }
}

impl<S: LocalScore> Reward<DagStates> for DagReward<S> {
    fn log_reward(&self, states: &DagStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        self.check(states)?;
        if states.len() < 2 * MIN_DAGS_PER_THREAD || rayon::current_num_threads() == 1 {
            return Ok(states.dags().map(|dag| self.log_joint(&dag)).collect());
        }
        let rows = (0..states.len()).into_par_iter().with_min_len(MIN_DAGS_PER_THREAD);
        Ok(rows.map(|row| self.log_joint(&states.dag(row))).collect())
    }

    fn partial_log_reward(&self, states: &DagStates, conditions: Option<&tch::Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, conditions).map(Some)
    }

    fn log_reward_change(
        &self,
        before: &DagStates,
        after: &DagStates,
        _: Option<&tch::Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.check(before)?;
        self.check(after)?;
        // One edge changes the parents of one node: the others' terms cancel.
        let change = |(before, after): (Dag<'_>, Dag<'_>)| {
            let terms = (0..before.n_nodes()).map(|node| (node, before.parents(node), after.parents(node)));
            let changed = terms.filter(|(_, before, after)| before != after);
            changed.map(|(node, before, after)| self.term(node, &after) - self.term(node, &before)).sum()
        };
        Ok(Some(before.dags().zip(after.dags()).map(change).collect()))
    }
}
