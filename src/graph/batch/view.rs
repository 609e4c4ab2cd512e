//! One graph of a batch, with what is listed of it.

use std::ops::Deref;

use crate::graph::{Edge, GraphState, GraphStates};

/// A graph as masks see it: its state, and its edges as the batch lists them for masks and networks alike.
///
/// It is read like the [`GraphState`] that it is of. [`weighted_edges`](Self::weighted_edges) come from
/// [`GraphStates::arrays`], which a policy call makes once; a graph that is in no batch lists its own.
///
/// ```
/// use gfn::graph::{Edge, GraphKind, GraphState, GraphStates, GraphView};
/// let mut graph = GraphState::with_nodes(GraphKind::Undirected, 3);
/// graph.add_edge(2, 0, Edge::of_class(1))?;
/// let states = GraphStates::from(vec![graph.clone(); 2]);
/// for view in [GraphView::from(&graph), states.view(1)] {
///     assert_eq!(view.n_nodes(), 3);
///     assert_eq!(view.weighted_edges().collect::<Vec<_>>(), [(0, 2, Edge::of_class(1))]);
/// }
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GraphView<'a> {
    graph: &'a GraphState,
    /// The batch that it is in, and its place there.
    batch: Option<(&'a GraphStates, usize)>,
}

impl<'a> GraphView<'a> {
    /// The graph itself.
    #[must_use]
    pub fn state(&self) -> &'a GraphState {
        self.graph
    }

    /// The edges in the order of [`GraphState::edges`], with what they carry.
    pub fn weighted_edges(&self) -> impl Iterator<Item = (u32, u32, Edge)> + 'a {
        let graph = self.graph;
        let (listed, own) = match self.batch {
            Some((states, g)) => (Some(states.arrays().edges_of(g)), None),
            None => (None, Some(graph.edges())),
        };
        let listed = listed.into_iter().flatten().map(|(a, b, edge)| (a as u32, b as u32, edge));
        let weight = |(a, b)| (a, b, graph.edge(a, b).unwrap_or_default());
        listed.chain(own.into_iter().flatten().map(weight))
    }
}

impl<'a> From<&'a GraphState> for GraphView<'a> {
    /// A graph that is in no batch.
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
    /// One graph of the batch.
    ///
    /// # Panics
    /// If there is no such graph.
    #[must_use]
    pub fn view(&self, row: usize) -> GraphView<'_> {
        GraphView { graph: &self.graphs()[row], batch: Some((self, row)) }
    }
}
