use gfn::graph::GraphState;
use gfn::{Result, Rng};

use super::parent_table::ParentTable;
use crate::{Ancestry, BayesianStructure, DagReward, LocalScore, NodeSet, acyclic};

/// A Markov chain over orders of the nodes (Friedman and Koller 2003). The weight of an order is the sum of
/// the rewards of all graphs whose edges lead from earlier to later nodes, which is a product of sums over
/// the parent sets of each node. Such a chain mixes far better than a chain over graphs.
///
/// The stationary distribution of graphs that are drawn from orders ([`draw`](Self::draw)) isn't the
/// posterior: a graph counts once for each order that it fits. [`order_weights`](crate::order_weights)
/// corrects this, and [`OrderSamples`](crate::OrderSamples) runs several chains and applies the weights.
///
/// A step proposes one of three moves: it exchanges two neighbours (half of all steps), exchanges any two
/// nodes, or moves a node to another place. All three are symmetric, so the acceptance rate is the ratio of
/// the weights, at most 1. Only the nodes between the two places get new sums.
///
/// ```
/// use gfn::Rng;
/// use gfn_dags::*;
/// let rows = [[0.5, 1.0, -0.2], [-1.0, -0.5, 0.3], [0.2, 0.8, 1.1], [1.5, 0.1, -0.7], [-0.3, 0.6, 0.4]];
/// let bge = Bge::new(&ContinuousData::from_rows(&rows)?, BgeConfig::default())?;
/// let reward = DagReward::new(CachedScores::new(bge), StructurePrior::Uniform)?;
/// let env = BayesianStructure::new(StructureConfig::new(3))?;
/// let rng = &mut Rng::seeded(0);
/// let mut chain = OrderChain::new(&env, &reward, rng)?;
/// let graphs = chain.sample(4_000, 5, rng)?.into();
/// let weights = order_weights(&graphs)?;
/// let found = Marginals::from_graphs(&graphs, weights.as_deref())?;
/// assert!(found.edge.rmse(&EdgeMarginals::sum(&env, &reward)?.edge)? < 0.02);
/// // A local score is computed for each node and each of its four parent sets, once.
/// assert_eq!(reward.score().len(), 3 * 4);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OrderChain {
    table: ParentTable,
    order: Vec<usize>,
    /// The number of ancestors of each node by required edges, including the node itself.
    depths: Vec<usize>,
    /// The logarithm of the sum of each node's factors, indexed by node.
    sums: Vec<f64>,
    accepted: u64,
    steps: u64,
}

impl OrderChain {
    /// Creates a chain that starts from a random order. The local scores of all parent sets that the
    /// environment permits are computed first: set `max_parents` for more than 20 nodes.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) for more than 64 nodes, and for more than 12 million permitted
    /// parent sets; [`Error::Shape`](gfn::Error::Shape) if the reward has another number of nodes;
    /// [`Error::NonFinite`](gfn::Error::NonFinite) for a score that isn't finite.
    pub fn new<S: LocalScore>(env: &BayesianStructure, reward: &DagReward<S>, rng: &mut Rng) -> Result<Self> {
        let table = ParentTable::new(env, reward)?;
        let n = table.n_nodes();
        let required = Ancestry::from_graph(&acyclic(n, &env.config().required)?)?;
        let depths = (0..n).map(|node| required.n_ancestors(node)).collect();
        let mut chain =
            Self { table, depths, sums: vec![0.0; n], order: (0..n).collect(), accepted: 0, steps: 0 };
        chain.restart(rng);
        Ok(chain)
    }

    /// Returns `true` if the parent sets that an environment permits are few enough for a chain: at most 12
    /// million of at most 64 nodes.
    #[must_use]
    pub fn is_possible(env: &BayesianStructure) -> bool {
        ParentTable::can_list(env)
    }

    /// Continues from a new random order, so that independent chains can share the table of scores.
    pub fn restart(&mut self, rng: &mut Rng) {
        let n = self.order.len();
        for i in (1..n).rev() {
            self.order.swap(i, rng.below(i + 1));
        }
        // The order must fit the required edges. Sorting is stable, so the rest stays random.
        self.order.sort_by_key(|&node| self.depths[node]);
        let sums = self.sums_between(0, n - 1);
        self.set_sums(&sums);
    }

    /// Returns the logarithm of the weight of the current order.
    #[must_use]
    pub fn log_weight(&self) -> f64 {
        self.sums.iter().sum()
    }

    /// Returns the share of accepted steps; 0 before the first step.
    #[must_use]
    pub fn acceptance(&self) -> f64 {
        self.accepted as f64 / self.steps.max(1) as f64
    }

    /// Computes the sums of the nodes from one place of the order to another.
    fn sums_between(&self, first: usize, last: usize) -> Vec<(usize, f64)> {
        let mut before = self.order[..first].iter().fold(0u64, |set, node| set | 1 << node);
        let mut out = Vec::with_capacity(last + 1 - first);
        for &node in &self.order[first..=last] {
            out.push((node, self.table.log_sum(node, before)));
            before |= 1 << node;
        }
        out
    }

    fn set_sums(&mut self, sums: &[(usize, f64)]) {
        for &(node, sum) in sums {
            self.sums[node] = sum;
        }
    }

    /// Proposes another order and accepts or rejects it.
    pub fn step(&mut self, rng: &mut Rng) {
        let n = self.order.len();
        self.steps += 1;
        if n < 2 {
            return;
        }
        let kind = rng.uniform();
        let a = rng.below(n);
        let b = if kind < 0.5 { (a + 1) % n } else { (a + 1 + rng.below(n - 1)) % n };
        let before = self.order.clone();
        if kind < 0.75 {
            self.order.swap(a, b);
        } else {
            let node = self.order.remove(a);
            self.order.insert(b, node);
        }
        let sums = self.sums_between(a.min(b), a.max(b));
        let change: f64 = sums.iter().map(|(node, sum)| sum - self.sums[*node]).sum();
        if rng.uniform() < change.exp() {
            self.set_sums(&sums);
            self.accepted += 1;
        } else {
            self.order = before;
        }
    }

    /// Draws a graph that fits the current order, in proportion to its reward.
    ///
    /// # Errors
    /// Errors of [`acyclic`], which don't occur.
    pub fn draw(&self, rng: &mut Rng) -> Result<GraphState> {
        let mut before = 0u64;
        let mut edges = Vec::new();
        for &node in &self.order {
            let parents = NodeSet::from_bits(self.table.draw(node, before, rng));
            edges.extend(parents.iter().map(|parent| (parent as u32, node as u32)));
            before |= 1 << node;
        }
        acyclic(self.order.len(), &edges)
    }

    /// Draws `samples` graphs, each after `thin` further steps. The first fifth of the steps aren't used:
    /// `samples * thin / 4` steps are made before the first graph.
    ///
    /// # Errors
    /// Errors of [`draw`](Self::draw).
    pub fn sample(&mut self, samples: usize, thin: usize, rng: &mut Rng) -> Result<Vec<GraphState>> {
        for _ in 0..samples * thin / 4 {
            self.step(rng);
        }
        let mut out = Vec::with_capacity(samples);
        for _ in 0..samples {
            for _ in 0..thin {
                self.step(rng);
            }
            out.push(self.draw(rng)?);
        }
        Ok(out)
    }
}
