use petgraph::algo::bridges::bridges;
use petgraph::visit::EdgeRef;

use super::Semantics;
use crate::Result;
use crate::env::Direction;
use crate::graph::{Anchor, Edge, GraphActionType, GraphSchema, GraphState, GraphView, Head, Move};

/// Adds an edge of some class between two nodes that none joins yet; the way back (`Reversed(AddEdge)`) removes one.
///
/// Backward, an edge can go when it is of one of these classes, has no attributes and, where connectivity is kept, isn't a bridge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddEdge {
    classes: u16,
    max_edges: usize,
    /// Bridges of an undirected graph stay on the way back.
    keeps_connected: bool,
}

impl AddEdge {
    /// Adds edges of so many classes.
    #[must_use]
    pub fn new(classes: u16) -> Self {
        Self { classes, max_edges: usize::MAX, keeps_connected: false }
    }

    /// No more than `max_edges` edges in all.
    #[must_use]
    pub fn at_most(mut self, max_edges: usize) -> Self {
        self.max_edges = max_edges;
        self
    }

    /// The graph is connected at every step (undirected graphs that grow by attachment).
    #[must_use]
    pub fn keeping_connected(mut self) -> Self {
        self.keeps_connected = true;
        self
    }
}

/// Marks those nodes that an edge from `a` can lead to, each by `width` entries.
fn mark_free(graph: &GraphState, a: usize, width: usize, row: &mut [bool]) {
    let first = if graph.is_directed() { 0 } else { a + 1 };
    row[first * width..].fill(true);
    let mut close = |b: usize| match width {
        1 => row[b] = false,
        _ => row[b * width..(b + 1) * width].fill(false),
    };
    if graph.is_directed() {
        close(a);
    }
    graph.adjacency().ones(a).filter(|&b| b >= first).for_each(close);
}

impl GraphActionType for AddEdge {
    fn name(&self) -> &str {
        "add_edge"
    }

    fn widen(&self, schema: &mut GraphSchema) {
        schema.edge_classes = schema.edge_classes.max(self.classes.into());
    }

    fn head(&self, direction: Direction) -> Option<Head> {
        Some(match direction {
            Direction::Forward => Head { anchor: Anchor::NodePair, width: usize::from(self.classes) },
            Direction::Backward => Head { anchor: Anchor::Edge, width: 1 },
        })
    }

    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        let n = graph.n_nodes();
        match direction {
            Direction::Forward => {
                if graph.n_edges() >= self.max_edges {
                    return;
                }
                let width = usize::from(self.classes);
                for (a, row) in mask.chunks_exact_mut((n * width).max(1)).enumerate() {
                    mark_free(&graph, a, width, row);
                }
            }
            Direction::Backward => {
                mask.fill(graph.n_edges() <= self.max_edges);
                if graph.has_edge_weights() {
                    for (legal, (_, _, edge)) in mask.iter_mut().zip(graph.weighted_edges()) {
                        *legal &= edge.class < self.classes && edge.attributes.is_unset();
                    }
                }
                if let (true, Some(undirected)) = (self.keeps_connected, graph.as_undirected()) {
                    for bridge in bridges(undirected) {
                        let (a, b) = (bridge.source().index() as u32, bridge.target().index() as u32);
                        mask[graph.edge_rank(a, b)] = false;
                    }
                }
            }
        }
    }

    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        match direction {
            Direction::Forward => graph.add_edge(action.a, action.b, Edge::of_class(action.class as u16)),
            Direction::Backward => graph.remove_edge(action.a, action.b).map(|_| ()),
        }
    }

    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        let class = match direction {
            Direction::Forward => 0,
            Direction::Backward => before.edge(action.a, action.b).map_or(0, |edge| edge.class.into()),
        };
        Move { class, ..action }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphKind;

    /// A graph that had more edges from the start wasn't built by adding one.
    #[test]
    fn beyond_the_limit_nothing_was_added() {
        let mut graph = GraphState::with_nodes(GraphKind::Undirected, 3);
        for (edge, (a, b)) in [(0, 1), (1, 2)].into_iter().enumerate() {
            graph.add_edge(a, b, Edge::default()).unwrap();
            let mut mask = vec![false; edge + 1];
            AddEdge::new(1).at_most(1).mask(Direction::Backward, Semantics::Labelled, (&graph).into(), &mut mask);
            assert_eq!(mask, vec![edge == 0; edge + 1]);
        }
    }
}
