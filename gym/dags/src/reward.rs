use gfn::env::{Reward, TensorReward};
use gfn::graph::{GraphState, GraphStates};
use gfn::runtime::Threads;
use gfn::{Error, Result};
use tch::{Kind, Tensor};

use crate::env::parent_sets;
use crate::on_device::OnDevice;
use crate::{LocalScore, NodeSet, StructurePrior};

/// The smallest number of graphs or parent sets per thread. A further thread is only used if each thread gets
/// this many of them.
const MIN_PER_THREAD: usize = 64;

/// The largest number of nodes for which the terms of all parent sets are computed, for states on a device.
/// For 12 nodes there are 12 * 2^11 of them. With each further node the slowest scores take more than twice
/// as long, up to minutes, while scoring finished graphs on the host takes little of a roll-out.
const MAX_TABLE_NODES: usize = 12;

/// The log-reward of a graph, log p(data, graph). The log-reward is the sum of the graph's local scores and
/// of the terms of the structure prior.
///
/// Every graph can be finished, so the same formula gives the log-reward of intermediate states for
/// forward-looking objectives. The change of the log-reward by one more edge needs only two local scores
/// ([`Reward::log_reward_change`]). The reward depends only on the parents of each node. The environment
/// must ensure that the edges form no cycle.
///
/// Graphs of up to 12 nodes are also scored on a device ([`Reward::on_tensors`]): the terms of all parent
/// sets are computed once, when the first graphs are scored there. This includes parent sets that the rules
/// of the environment exclude, such as its `max_parents`.
///
/// ```
/// use gfn::env::{Env, Reward};
/// use gfn_dags::*;
/// let rows = [[0.5, 1.0, -0.2], [-1.0, -0.5, 0.3], [0.2, 0.8, 1.1], [1.5, 0.1, -0.7], [-0.3, 0.6, 0.4]];
/// let bge = Bge::new(&ContinuousData::from_rows(&rows)?, BgeConfig::default())?;
/// let reward = DagReward::new(CachedScores::ahead(bge, None)?, StructurePrior::Uniform)?;
/// let graphs = vec![acyclic(3, &[])?, acyclic(3, &[(0, 1)])?].into();
/// let log_rewards = reward.log_reward(&graphs, None)?;
/// assert!((log_rewards[0] + 20.576018533636898).abs() < 1e-9);
/// assert!((log_rewards[1] + 21.403017182745014).abs() < 1e-9);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct DagReward<S> {
    score: S,
    /// The structure prior's term of a node, indexed by how many parents the node has.
    prior: Vec<f64>,
    start: f64,
    /// The term of each node and parent set, for states on a device.
    table: OnDevice,
}

impl<S: LocalScore> DagReward<S> {
    /// Creates the reward of a graph from local scores and a structure prior.
    ///
    /// # Errors
    /// Errors of [`StructurePrior::terms`].
    pub fn new(score: S, prior: StructurePrior) -> Result<Self> {
        let prior = prior.terms(score.n_nodes())?;
        Ok(Self { score, prior, start: 0.0, table: OnDevice::default() })
    }

    /// Makes rewards relative to the reward of a reference graph, such as the environment's initial graph.
    /// The posterior stays the same, but log F and log Z become numbers near 0, which networks learn more
    /// easily. torchgfn and jax-dag-gflownet do the same with the empty graph.
    ///
    /// # Errors
    /// [`Error::Shape`] for a graph whose number of nodes differs from that of the scores.
    pub fn relative_to(mut self, start: &GraphState) -> Result<Self> {
        self.start = 0.0;
        self.start = self.log_joint(start)?;
        Ok(self)
    }

    /// Returns the number that is subtracted from each log-reward: log p(data, graph) of the reference
    /// graph, or 0 if there is no reference graph.
    #[must_use]
    pub fn offset(&self) -> f64 {
        self.start
    }

    /// Returns the local scores.
    #[must_use]
    pub fn score(&self) -> &S {
        &self.score
    }

    /// Returns the contribution of a node with these parents to the log-reward: its local score plus its
    /// prior term.
    pub fn term(&self, node: usize, parents: &NodeSet) -> f64 {
        self.score.local_score(node, parents) + self.prior[parents.len()]
    }

    /// Returns the log-reward of a graph.
    ///
    /// # Errors
    /// [`Error::Shape`] for a graph whose number of nodes differs from that of the scores.
    pub fn log_joint(&self, graph: &GraphState) -> Result<f64> {
        check_nodes(&self.score, graph)?;
        let parents = parent_sets(graph);
        Ok(parents.iter().enumerate().map(|(node, parents)| self.term(node, parents)).sum::<f64>()
            - self.start)
    }

    /// Computes the term of each node and parent set, indexed by `node << n | bits of the parents`. The term
    /// of a set that contains the node is NaN.
    fn compute_table(&self) -> Result<Tensor> {
        let n = self.score.n_nodes();
        let term = |&k: &usize| {
            let node = k >> n;
            let parents = NodeSet::from_bits((k & ((1 << n) - 1)) as u64);
            Ok(if parents.contains(node) { f64::NAN } else { self.term(node, &parents) })
        };
        let entries: Vec<usize> = (0..n << n).collect();
        let terms = Threads::try_map(&entries, MIN_PER_THREAD, term)?;
        Ok(Tensor::from_slice(&terms))
    }
}

impl<S: LocalScore> TensorReward for DagReward<S> {
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor> {
        let n = self.score.n_nodes() as i64;
        let size = states.size();
        if size.len() != 2 || size[1] != n * n {
            let remedy = "give adjacency matrices with one node for each variable of the data";
            return Err(Error::shape("adjacency matrices to score", [-1, n * n], size, remedy));
        }
        let device = states.device();
        let nodes = Tensor::arange(n, (Kind::Int64, device));
        let bits = nodes.ones_like().bitwise_left_shift(&nodes).unsqueeze(1);
        let parents = (states.view([-1, n, n]) * bits).sum_dim_intlist(1, false, Kind::Int64);
        let table = self.table.try_get(device, || self.compute_table())?;
        let terms = table.take(&(parents + nodes * (1 << n)));
        Ok(terms.sum_dim_intlist(1, false, Kind::Double) - self.start)
    }
}

/// Returns an error if the number of nodes of a graph differs from that of the scores.
pub(crate) fn check_nodes(score: &(impl LocalScore + ?Sized), graph: &GraphState) -> Result<()> {
    if graph.n_nodes() == score.n_nodes() {
        return Ok(());
    }
    let remedy = "give graphs with one node for each variable of the data";
    Err(Error::shape("a graph to score", [score.n_nodes() as i64], [graph.n_nodes() as i64], remedy))
}

impl<S: LocalScore> Reward<GraphStates> for DagReward<S> {
    fn log_reward(&self, states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Threads::try_map(states.graphs(), MIN_PER_THREAD, |graph| self.log_joint(graph))
    }

    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        (self.score.n_nodes() <= MAX_TABLE_NODES).then_some(self)
    }

    fn partial_log_reward(
        &self,
        states: &GraphStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, conditions).map(Some)
    }

    fn log_reward_change(
        &self,
        before: &GraphStates,
        after: &GraphStates,
        _: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        // An edge changes the parents of only one node, so the terms of all other nodes cancel.
        let change = |(before, after): (&GraphState, &GraphState)| {
            check_nodes(&self.score, before)?;
            check_nodes(&self.score, after)?;
            let before = parent_sets(before);
            let after = parent_sets(after);
            let terms = before.iter().zip(&after).enumerate().filter(|(_, (before, after))| before != after);
            Ok(terms.map(|(node, (before, after))| self.term(node, after) - self.term(node, before)).sum())
        };
        before.graphs().iter().zip(after.graphs()).map(change).collect::<Result<_>>().map(Some)
    }
}
