use gfn::Result;
use gfn::env::Reward;
use gfn::graph::{GraphState, GraphStates};

use super::Triangle;
use crate::levels::Levels;

/// A reward for triangles, a floor for every other graph; by default 100 and 1e-6.
///
/// Directed, a triangle is a directed cycle of three nodes.
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
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TriangleReward(Levels);

impl Default for TriangleReward {
    fn default() -> Self {
        Self(Levels::DEFAULT)
    }
}

impl TriangleReward {
    /// R = `triangle` for triangles, `floor` for all other graphs.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) unless `0 < floor < triangle`, both finite.
    pub fn new(triangle: f64, floor: f64) -> Result<Self> {
        Levels::new(triangle, floor).map(Self)
    }

    /// The true log Z over all states of `env`, each isomorphism class counted once.
    #[must_use]
    pub fn log_z(&self, env: &Triangle) -> f64 {
        self.0.log_z(env.n_triangles(), env.n_states())
    }

    /// `true` if the graph is a triangle.
    #[must_use]
    pub fn is_triangle(graph: &GraphState) -> bool {
        let each = if graph.is_directed() { 1 } else { 2 };
        // A directed 3-cycle is the only one with three edges where each node has one edge out and one in.
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
