use gfn::graph::{ActionSet, AddEdge, AddNode, BackwardRule, GraphEnv, GraphRules, GraphState, Semantics};
use gfn::{Error, Result};

/// Connected graphs with so many two-coloured nodes, up to isomorphism (Burnside and inverse Euler transform).
const CONNECTED: [u64; 9] = [2, 3, 10, 50, 354, 3_883, 67_994, 2_038_236, 109_141_344];
/// More nodes than that don't fit the reward's bit sets.
pub(super) const MAX_NODES: usize = 64;

/// Connected undirected graphs of at most `max_nodes` nodes of two colours, up to isomorphism.
///
/// Growth starts from the empty graph with a first node, goes on with nodes attached to one that is there and with edges, and
/// stays connected both ways. Any graph but the empty one can be finished; training corrects for symmetry. The environment
/// is that of recursionpharma/gflownet's basic graph task.
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

/// The rules: graphs are connected, and the empty graph may be a finished object or not.
struct Connected {
    empty_can_exit: bool,
}

impl ColoredGraphs {
    /// Graphs of at most `max_nodes` nodes.
    ///
    /// # Errors
    /// [`Error::Config`] for no node, or more than 64.
    pub fn new(max_nodes: usize) -> Result<Self> {
        Self::of(max_nodes, false)
    }

    /// The same, where the empty graph may be a finished object, too.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn with_empty(max_nodes: usize) -> Result<Self> {
        Self::of(max_nodes, true)
    }

    fn of(max_nodes: usize, empty_can_exit: bool) -> Result<Self> {
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

    /// Returns the environment, as trainers and samplers take it.
    #[must_use]
    pub fn env(&self) -> &GraphEnv {
        &self.env
    }

    /// Returns the environment by value.
    #[must_use]
    pub fn into_env(self) -> GraphEnv {
        self.env
    }

    /// The most nodes.
    #[must_use]
    pub fn max_nodes(&self) -> usize {
        self.max_nodes
    }

    /// The number of states up to isomorphism, the empty graph among them; `None` beyond 9 nodes.
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
