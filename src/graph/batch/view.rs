//! A view of one graph of a batch, which uses the batch's list of edges.

use std::ops::Deref;

use crate::graph::{Edge, GraphState, GraphStates};

/// A view of one graph. The view uses the list of edges that the batch caches for masks and networks.
///
/// A view dereferences to its [`GraphState`]. [`weighted_edges`](Self::weighted_edges) returns the edges from
/// [`GraphStates::arrays`], which are cached per batch. A view of a graph without a batch returns the edges
/// of the graph itself.
///
/// ```
/// use gfn::graph::{Edge, GraphKind, GraphState, GraphStates, GraphView};
/// let mut graph = GraphState::with_nodes(GraphKind::Undirected, 3);
/// graph.add_edge(2, 0, Edge::from_class(1))?;
/// let states = GraphStates::from(vec![graph.clone(); 2]);
/// for view in [GraphView::from(&graph), states.view(1)] {
///     assert_eq!(view.n_nodes(), 3);
///     assert_eq!(view.weighted_edges().collect::<Vec<_>>(), [(0, 2, Edge::from_class(1))]);
/// }
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GraphView<'a> {
    graph: &'a GraphState,
    /// The batch of the graph and the graph's index in it; `None` if the graph is in no batch.
    batch: Option<(&'a GraphStates, usize)>,
}

impl<'a> GraphView<'a> {
    /// Returns the edges of the graph (from, to, class and attributes) in the order of [`GraphState::edges`].
    pub fn weighted_edges(&self) -> impl Iterator<Item = (u32, u32, Edge)> + 'a {
        let graph = self.graph;
        let (batch_edges, graph_edges) = match self.batch {
            Some((states, g)) => (Some(states.arrays().edges_of(g)), None),
            None => (None, Some(graph.edges())),
        };
        let batch_edges = batch_edges.into_iter().flatten().map(|(a, b, edge)| (a as u32, b as u32, edge));
        let with_weight = |(a, b)| (a, b, graph.edge(a, b).unwrap_or_default());
        batch_edges.chain(graph_edges.into_iter().flatten().map(with_weight))
    }
}

impl<'a> From<&'a GraphState> for GraphView<'a> {
    /// Creates a view of a graph that isn't in a batch.
    fn from(graph: &'a GraphState) -> Self {
        Self { graph, batch: None }
    }
}

impl Deref for GraphView<'_> {
    type Target = GraphState;

    fn deref(&self) -> &GraphState {
        self.graph
    }
}

impl GraphStates {
    /// Returns a view of the graph with this index in the batch.
    ///
    /// # Panics
    /// If there is no graph with this index.
    #[must_use]
    pub fn view(&self, row: usize) -> GraphView<'_> {
        GraphView { graph: &self.graphs()[row], batch: Some((self, row)) }
    }
}
