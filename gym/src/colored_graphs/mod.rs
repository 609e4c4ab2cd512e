//! Connected graphs of two-coloured nodes with three rewards: the basic graph task of
//! recursionpharma/gflownet.

mod cliques;

use gfn::env::Reward;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, GraphEnv, GraphRules, GraphState, GraphStates, Semantics,
};
use gfn::runtime::Threads;
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

use self::cliques::{maximal_cliques, neighbours};

/// The numbers of connected graphs of 1, 2, ... nodes of two colours, up to isomorphism, computed with
/// Burnside's lemma and the inverse Euler transform.
const CONNECTED: [u64; 9] = [2, 3, 10, 50, 354, 3_883, 67_994, 2_038_236, 109_141_344];
/// The largest number of nodes of a graph. The sets of nodes of larger graphs wouldn't fit into 64 bits, in
/// which rewards keep them.
const MAX_NODES: usize = 64;

/// Connected undirected graphs of at most `max_nodes` nodes of two colours, up to isomorphism.
///
/// The first action adds a node to the empty graph. Later actions add edges, or nodes attached to existing
/// nodes. Backward actions keep graphs connected, too. Every graph except the empty graph can be finished.
/// Training corrects for symmetry. The environment is that of recursionpharma/gflownet's basic graph task.
///
/// ```
/// use gfn::{env::{Direction, DiscreteEnv, Env}};
/// use gfn_gym::colored_graphs::ColoredGraphs;
/// let colored = ColoredGraphs::new(7)?;
/// assert_eq!(colored.n_states(), Some(72_297));
/// let env = colored.env();
/// // A first node of either colour, and no way out of the empty graph.
/// assert_eq!(env.masks(Direction::Forward, &env.initial(&[0])).n_legal(0), 2);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ColoredGraphs {
    env: GraphEnv,
    max_nodes: usize,
}

/// The rules of the environment: graphs stay connected. `empty_can_exit` is `true` if the empty graph can be
/// finished.
struct Connected {
    empty_can_exit: bool,
}

impl ColoredGraphs {
    /// Builds the environment of graphs of at most `max_nodes` nodes.
    ///
    /// # Errors
    /// [`Error::Config`] for a `max_nodes` of 0 or above 64.
    pub fn new(max_nodes: usize) -> Result<Self> {
        Self::build(max_nodes, false)
    }

    /// Builds the environment in which the empty graph can be finished as well.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_empty(max_nodes: usize) -> Result<Self> {
        Self::build(max_nodes, true)
    }

    fn build(max_nodes: usize, empty_can_exit: bool) -> Result<Self> {
        if !(1..=MAX_NODES).contains(&max_nodes) {
            return Err(Error::config("max_nodes", max_nodes, "1 to 64 nodes"));
        }
        let actions = ActionSet::new(Semantics::UpToIsomorphism)
            .with(AddNode::first(2))
            .with(AddNode::attached(2, 1, max_nodes))
            .with(AddEdge::new(1).keeping_connected());
        let env = GraphEnv::new(Connected { empty_can_exit }, actions, GraphState::undirected(0))?;
        Ok(Self { env: env.with_backward(BackwardRule::ByType), max_nodes })
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

    /// The largest number of nodes of a graph.
    #[must_use]
    pub fn max_nodes(&self) -> usize {
        self.max_nodes
    }

    /// Returns the number of states up to isomorphism, including the empty graph; `None` if graphs may have
    /// more than 9 nodes.
    #[must_use]
    pub fn n_states(&self) -> Option<u64> {
        let connected = CONNECTED.get(..self.max_nodes)?;
        Some(1 + connected.iter().sum::<u64>())
    }
}

impl GraphRules for Connected {
    fn can_exit(&self, graph: &GraphState) -> bool {
        self.empty_can_exit || graph.n_nodes() > 0
    }
    fn is_reachable(&self, graph: &GraphState) -> bool {
        graph.as_undirected().is_some_and(|g| petgraph::algo::connected_components(g) <= 1)
    }
}

/// The rewards of recursionpharma/gflownet's basic graph task, on undirected graphs of two colours.
///
/// The rewards don't depend on the labels of nodes: isomorphic graphs have equal rewards.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColoredGraphReward {
    /// The default: log R = -10/4 |n0 + n1/2 - 3|, with n0 and n1 the numbers of nodes of the two colours.
    #[default]
    Count,
    /// The reward log R = 10/7 (e - n) for graphs of n > 3 nodes, and log R = -50/7 for smaller graphs. Here
    /// e is the number of nodes whose number of neighbours of the other colour is even and not zero.
    Even,
    /// The reward log R = max(m - s + n - 1, -10), with n the number of nodes and s the sum of the sizes of
    /// all maximal cliques. Each maximal clique of 4 nodes adds 1 to m if at least 3 of its nodes share a
    /// colour, and otherwise 1/2.
    Clique,
}

impl ColoredGraphReward {
    /// Returns log R of one graph.
    ///
    /// ```
    /// use gfn::graph::{GraphKind, GraphState};
    /// use gfn_gym::colored_graphs::ColoredGraphReward;
    /// let three_nodes = GraphState::with_nodes(GraphKind::Undirected, 3);
    /// assert_eq!(ColoredGraphReward::Count.evaluate(&three_nodes)?, 0.0);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for a graph of more than 64 nodes, or a directed one.
    pub fn evaluate(self, graph: &GraphState) -> Result<f64> {
        let n = graph.n_nodes();
        if n > MAX_NODES || graph.is_directed() {
            return Err(Error::config(
                "a graph for `ColoredGraphReward`",
                format!("{:?} with {n} nodes", graph.kind()),
                "an undirected graph of at most 64 nodes",
            ));
        }
        Ok(match self {
            Self::Count => count(graph),
            Self::Even => even(graph),
            Self::Clique => clique(graph),
        })
    }
}

impl Reward<GraphStates> for ColoredGraphReward {
    fn log_reward(&self, states: &GraphStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        Threads::try_map(states.graphs(), 64, |graph| self.evaluate(graph))
    }
}

/// Returns the nodes of colour 0 as a set of bits.
fn first_colour(graph: &GraphState) -> u64 {
    let nodes = graph.nodes().enumerate();
    nodes.fold(0, |bits, (a, node)| bits | u64::from(node.class == 0) << a)
}

fn count(graph: &GraphState) -> f64 {
    let n0 = f64::from(first_colour(graph).count_ones());
    let n1 = graph.n_nodes() as f64 - n0;
    -10.0 / 4.0 * (n0 + n1 / 2.0 - 3.0).abs()
}

fn even(graph: &GraphState) -> f64 {
    let n = graph.n_nodes();
    if n <= 3 {
        return -50.0 / 7.0;
    }
    let first = first_colour(graph);
    let is_even = |a: &usize| {
        let other = if first >> a & 1 == 1 { !first } else { first };
        let differing = (neighbours(graph, *a) & other).count_ones();
        differing > 0 && differing.is_multiple_of(2)
    };
    let e = (0..n).filter(is_even).count();
    10.0 / 7.0 * (e as f64 - n as f64)
}

fn clique(graph: &GraphState) -> f64 {
    let n = graph.n_nodes();
    let first = first_colour(graph);
    let all = if n == 64 { u64::MAX } else { (1 << n) - 1 };
    let mut matches = 0.0;
    let mut sizes = 0.0;
    maximal_cliques(graph, 0, all, 0, &mut |clique| {
        let size = clique.count_ones();
        sizes += f64::from(size);
        if size == 4 {
            let of_first = (clique & first).count_ones();
            matches += if of_first.max(4 - of_first) >= 3 { 1.0 } else { 0.5 };
        }
    });
    (matches - sizes + n as f64 - 1.0).max(-10.0)
}
