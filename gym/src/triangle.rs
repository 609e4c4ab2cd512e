//! Triangles: graphs of at most three coloured nodes, with a reward for triangles.

use gfn::env::Reward;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, GraphEnv, GraphKind, GraphState, GraphStates, Semantics,
};
use gfn::{Error, Result};

use crate::levels::Levels;

/// The largest number of node classes. The numbers of states and of triangles are still exact in f64 with
/// this many classes.
const MAX_CLASSES: u16 = 1000;

/// Graphs of at most three nodes, each of which has one of several classes. Actions add a node or an edge to
/// the graph, starting from the empty graph. Any graph can be finished.
///
/// The task is that of torchgfn's `train_graph_triangle.py` (undirected, 5 classes). States are graphs up to
/// isomorphism, because nodes of the same class can't be distinguished. Training corrects for symmetry.
/// Backward actions can remove any isolated node. A *triangle* has three nodes and exactly three edges: all
/// three undirected edges, or a directed cycle.
///
/// ```
/// use gfn::graph::GraphKind;
/// use gfn_gym::triangle::Triangle;
/// let env = Triangle::new(GraphKind::Undirected, 5)?;
/// assert_eq!((env.n_triangles(), env.n_states()), (35.0, 256.0));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Triangle {
    env: GraphEnv,
    kind: GraphKind,
    classes: u16,
}

impl Triangle {
    /// Builds the environment of graphs whose nodes have one of `classes` classes.
    ///
    /// # Errors
    /// [`Error::Config`] unless there are 1 to 1,000 classes.
    pub fn new(kind: GraphKind, classes: u16) -> Result<Self> {
        if !(1..=MAX_CLASSES).contains(&classes) {
            return Err(Error::config("node classes", classes, "1 to 1,000 classes"));
        }
        let set = ActionSet::new(Semantics::UpToIsomorphism);
        let actions = set.with(AddNode::free(classes, 3)).with(AddEdge::new(1));
        let env = GraphEnv::free(actions, GraphState::new(kind))?.with_backward(BackwardRule::ByType);
        Ok(Self { env, kind, classes })
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

    /// Returns the number of states up to isomorphism, including the empty graph. The formula follows from
    /// Burnside's lemma.
    #[must_use]
    pub fn n_states(&self) -> f64 {
        let c = f64::from(self.classes);
        // Each permutation of the nodes contributes the number of graphs that it leaves unchanged. In such a
        // graph all nodes in one cycle of the permutation have the same class. The permutation moves pairs of
        // nodes in cycles, too, and all pairs in one cycle have equal edges.
        match self.kind {
            GraphKind::Undirected => {
                1.0 + c
                    + (2.0 * c * c + 2.0 * c) / 2.0
                    + (8.0 * c.powi(3) + 3.0 * 4.0 * c * c + 2.0 * 2.0 * c) / 6.0
            }
            GraphKind::Directed => {
                1.0 + c
                    + (4.0 * c * c + 2.0 * c) / 2.0
                    + (64.0 * c.powi(3) + 3.0 * 8.0 * c * c + 2.0 * 4.0 * c) / 6.0
            }
        }
    }

    /// Returns the number of triangles up to isomorphism, which is the number of colourings of an undirected
    /// or a directed cycle of three nodes.
    #[must_use]
    pub fn n_triangles(&self) -> f64 {
        let c = f64::from(self.classes);
        match self.kind {
            GraphKind::Undirected => c * (c + 1.0) * (c + 2.0) / 6.0,
            GraphKind::Directed => (c.powi(3) + 2.0 * c) / 3.0,
        }
    }
}

/// A reward with one value for triangles, 100 by default, and a floor for every other graph, 1e-6 by default.
///
/// A directed triangle is a directed cycle of three nodes.
///
/// ```
/// use gfn::{env::Reward, graph::{Edge, GraphKind, GraphState, GraphStates}};
/// use gfn_gym::triangle::TriangleReward;
/// let mut graph = GraphState::with_nodes(GraphKind::Undirected, 3);
/// for (a, b) in [(0, 1), (1, 2), (0, 2)] {
///     graph.add_edge(a, b, Edge::default())?;
/// }
/// let log_reward = TriangleReward::default().log_reward(&GraphStates::from(vec![graph]), None)?;
/// assert_eq!(log_reward, [100f64.ln()]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TriangleReward(Levels);

impl TriangleReward {
    /// Builds the reward R = `triangle` for triangles and `floor` for all other graphs.
    ///
    /// # Errors
    /// [`Error::Config`] unless `0 < floor < triangle`, both finite.
    pub fn new(triangle: f64, floor: f64) -> Result<Self> {
        Levels::new(triangle, floor).map(Self)
    }

    /// Returns log Z, the log of the sum of the rewards of all states of `env`. Each isomorphism class counts
    /// as one state.
    #[must_use]
    pub fn log_z(&self, env: &Triangle) -> f64 {
        self.0.log_z(env.n_triangles(), env.n_states())
    }

    /// Returns `true` if the graph is a triangle.
    #[must_use]
    pub fn is_triangle(graph: &GraphState) -> bool {
        let each = if graph.is_directed() { 1 } else { 2 };
        // A directed 3-cycle is the only graph with three edges in which each node has one outgoing and one
        // incoming edge.
        graph.n_nodes() == 3
            && graph.n_edges() == 3
            && (0..3).all(|a| graph.out_degree(a) == each && graph.in_degree(a) == each)
    }
}

impl Reward<GraphStates> for TriangleReward {
    fn log_reward(&self, states: &GraphStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        let graphs = states.graphs().iter();
        Ok(graphs.map(|graph| self.0.log_of(Self::is_triangle(graph))).collect())
    }
}
