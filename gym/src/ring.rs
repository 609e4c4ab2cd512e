//! Rings: graphs on fixed labelled nodes, built by adding one edge at a time, with a reward for Hamiltonian
//! rings.

use gfn::env::Reward;
use gfn::graph::{
    ActionSet, AddEdge, BackwardRule, Edge, GraphEnv, GraphKind, GraphState, GraphStates, Semantics,
};
use gfn::runtime::Threads;
use gfn::{Error, Result};

use crate::levels::Levels;

/// The largest number of nodes of an environment. The number of rings on 20 nodes still fits into a `u64`.
const MAX_NODES: usize = 20;
/// The largest number of nodes for which all rings can be listed. There are 5,040 directed rings on 8 nodes.
const MAX_NODES_LISTED: usize = 8;

/// Graphs on `n` labelled nodes, built from the empty graph by adding one edge at a time. Every graph can be
/// finished.
///
/// A *ring* is a graph that is exactly one cycle through all nodes: `n` edges that form one cycle, which is a
/// directed cycle in a directed graph. All graphs on the nodes are states: `2^(n (n - 1))` directed graphs,
/// `2^(n (n - 1) / 2)` undirected graphs. The task is that of torchgfn's `train_graph_ring.py`.
///
/// ```
/// use gfn::graph::GraphKind;
/// use gfn_gym::ring::Ring;
/// let env = Ring::new(4, GraphKind::Directed)?;
/// assert_eq!((env.n_rings(), env.n_states()), (6, 4096.0));
/// assert!(Ring::new(2, GraphKind::Undirected).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ring {
    env: GraphEnv,
    n: usize,
    kind: GraphKind,
}

impl Ring {
    /// Builds the environment of graphs on `n` nodes.
    ///
    /// # Errors
    /// [`Error::Config`] for fewer nodes than a ring needs (2 directed, 3 undirected), and for more than 20
    /// nodes.
    pub fn new(n: usize, kind: GraphKind) -> Result<Self> {
        let (least, expected) = match kind {
            GraphKind::Directed => (2, "2 to 20 nodes for a directed ring"),
            GraphKind::Undirected => (3, "3 to 20 nodes for an undirected ring"),
        };
        if !(least..=MAX_NODES).contains(&n) {
            return Err(Error::config("nodes", n, expected));
        }
        let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
        let initial = GraphState::with_nodes(kind, n);
        let env = GraphEnv::free(actions, initial)?.with_backward(BackwardRule::ByType);
        Ok(Self { env, n, kind })
    }

    /// Returns a reference to the environment, for trainers and samplers.
    #[must_use]
    pub fn env(&self) -> &GraphEnv {
        &self.env
    }

    /// Returns the underlying [`GraphEnv`] by value.
    #[must_use]
    pub fn into_env(self) -> GraphEnv {
        self.env
    }

    /// Returns the number of nodes of every graph.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.n
    }

    /// Returns the kind of the graphs: directed or undirected.
    #[must_use]
    pub fn kind(&self) -> GraphKind {
        self.kind
    }

    /// The number of rings: `(n - 1)!` directed, `(n - 1)! / 2` undirected.
    #[must_use]
    pub fn n_rings(&self) -> u64 {
        let orders = factorial(self.n - 1);
        match self.kind {
            GraphKind::Directed => orders,
            GraphKind::Undirected => orders / 2,
        }
    }

    /// Returns the number of states. `f64` holds it exactly, because it is a power of two: `2^(n (n - 1))`
    /// directed, `2^(n (n - 1) / 2)` undirected.
    #[must_use]
    pub fn n_states(&self) -> f64 {
        let pairs = self.n * (self.n - 1);
        let edges = if self.kind == GraphKind::Directed { pairs } else { pairs / 2 };
        2f64.powi(edges as i32)
    }

    /// Returns `true` if the graph is a ring of this environment.
    #[must_use]
    pub fn is_ring(&self, graph: &GraphState) -> bool {
        graph.n_nodes() == self.n && graph.kind() == self.kind && is_ring(graph)
    }

    /// Returns the index of a ring in the list of all [`rings`](Self::rings). Returns `None` for a graph that
    /// isn't a ring.
    #[must_use]
    pub fn ring_index(&self, graph: &GraphState) -> Option<usize> {
        if graph.n_nodes() != self.n || graph.kind() != self.kind {
            return None;
        }
        let order = cycle(graph)?;
        let mut rest: Vec<u32> = (1..self.n as u32).collect();
        let mut index = 0u64;
        let first = order[1];
        for (place, &node) in order.iter().enumerate().skip(1) {
            for &smaller in rest.iter().filter(|other| **other < node) {
                let start = if place == 1 { smaller } else { first };
                let left = rest.iter().copied().filter(|other| *other != smaller);
                index += self.completions(start, left);
            }
            rest.retain(|other| *other != node);
        }
        usize::try_from(index).ok()
    }

    /// Returns the number of ways to complete a ring with the nodes `left`, in any order. The earlier nodes
    /// of the ring are already chosen, and `first` is the one that follows node 0.
    fn completions(&self, first: u32, left: impl Iterator<Item = u32>) -> u64 {
        let (n_left, after_first) =
            left.fold((0, 0), |(n, after), node| (n + 1, after + u64::from(node > first)));
        match self.kind {
            GraphKind::Directed => factorial(n_left),
            // An undirected ring can be written in two directions. The list of all rings has the direction in
            // which the second node is smaller than the last.
            GraphKind::Undirected if n_left > 0 => after_first * factorial(n_left - 1),
            GraphKind::Undirected => 1,
        }
    }

    /// Lists all rings, in ascending order of their sequences of nodes, each of which starts with node 0.
    ///
    /// # Errors
    /// [`Error::Config`] for more than 8 nodes.
    pub fn rings(&self) -> Result<GraphStates> {
        if self.n > MAX_NODES_LISTED {
            return Err(Error::config(
                "nodes of listed rings",
                self.n,
                "at most 8 (5,040 directed rings); test single graphs with `is_ring` or `ring_index`",
            ));
        }
        let mut out = Vec::new();
        let mut order = vec![0];
        self.list(&mut order, &mut out)?;
        Ok(out.into())
    }

    fn list(&self, order: &mut Vec<u32>, out: &mut Vec<GraphState>) -> Result<()> {
        if order.len() == self.n {
            if self.kind == GraphKind::Directed || order[1] < order[self.n - 1] {
                let ends = order.iter().zip(order.iter().cycle().skip(1));
                let edges: Vec<_> = ends.map(|(&a, &b)| (a, b, Edge::default())).collect();
                let nodes = vec![gfn::graph::Node::default(); self.n];
                out.push(GraphState::from_parts(self.kind, &nodes, &edges)?);
            }
            return Ok(());
        }
        for node in 1..self.n as u32 {
            if !order.contains(&node) {
                order.push(node);
                self.list(order, out)?;
                order.pop();
            }
        }
        Ok(())
    }
}

fn factorial(n: usize) -> u64 {
    (1..=n as u64).product()
}

/// Returns `true` if a graph is exactly one cycle through all of its nodes.
fn is_ring(graph: &GraphState) -> bool {
    graph.n_edges() == graph.n_nodes() && cycle(graph).is_some()
}

/// Returns the nodes of a ring in their order from node 0 on. An undirected ring continues with the smaller
/// neighbour of node 0. Returns `None` if the graph isn't a ring.
fn cycle(graph: &GraphState) -> Option<Vec<u32>> {
    let n = graph.n_nodes();
    let (least, degree) = if graph.is_directed() { (2, 1) } else { (3, 2) };
    if n < least || graph.n_edges() != n || (0..n).any(|a| graph.adjacency().count(a) != degree) {
        return None;
    }
    let mut order: Vec<u32> = Vec::with_capacity(n);
    let mut before = u32::MAX;
    let mut at = 0;
    for _ in 0..n {
        order.push(at);
        let next = graph
            .adjacency()
            .neighbours(at as usize)
            .map(|b| b as u32)
            .find(|b| *b != before || degree == 1)?;
        (before, at) = (at, next);
        if at == 0 {
            break;
        }
    }
    (at == 0 && order.len() == n).then_some(order)
}

/// A reward with one value for graphs that are one cycle through all of their nodes, and a floor for every
/// other graph.
///
/// The defaults are 100 and 1e-6. The floor also adds to Z. If `m` edges are possible and `n` graphs are
/// rings, Z is `100 n + 1e-6 (2^m - n)`. In directed graphs of 6 or more nodes, the graphs that aren't rings
/// have together more reward than the rings.
///
/// ```
/// use gfn::graph::GraphKind;
/// use gfn_gym::ring::{Ring, RingReward};
/// let reward = RingReward::new(100.0, 1e-9)?;
/// let env = Ring::new(6, GraphKind::Directed)?;
/// let log_z = reward.log_z(&env);
/// assert!((log_z - 9.39275).abs() < 1e-5);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RingReward(Levels);

impl RingReward {
    /// Builds the reward R = `ring` for rings and `floor` for all other graphs.
    ///
    /// # Errors
    /// [`Error::Config`] unless `0 < floor < ring`, both finite.
    pub fn new(ring: f64, floor: f64) -> Result<Self> {
        Levels::new(ring, floor).map(Self)
    }

    /// Returns log Z, the log of the sum of the rewards of all states of `env`.
    #[must_use]
    pub fn log_z(&self, env: &Ring) -> f64 {
        self.0.log_z(env.n_rings() as f64, env.n_states())
    }
}

impl Reward<GraphStates> for RingReward {
    fn log_reward(&self, states: &GraphStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        Threads::try_map(states.graphs(), 256, |graph| Ok(self.0.log_of(is_ring(graph))))
    }
}
