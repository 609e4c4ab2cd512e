use petgraph::algo::bridges::bridges;
use petgraph::visit::EdgeRef;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Semantics;
use crate::Result;
use crate::env::Direction;
use crate::graph::{Anchor, Edge, GraphActionType, GraphSchema, GraphState, GraphView, Head, Move};

/// An action type that adds an edge of some class between two nodes without an edge. Its backward moves,
/// which are the forward moves of `Reverse(AddEdge)`, remove an edge.
///
/// An edge can be removed if it has one of this type's classes and no attributes, and if the graph doesn't
/// exceed the limit of [`at_most`](Self::at_most). With [`keeping_connected`](Self::keeping_connected) the
/// edge must not be a bridge, either.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddEdge {
    classes: u16,
    max_edges: usize,
    /// `true` if bridges of undirected graphs can't be removed by backward moves.
    keeps_connected: bool,
}

impl AddEdge {
    /// The name of this action type.
    pub const NAME: &'static str = "add_edge";

    /// Creates a type that adds edges of the classes `0..classes`. By default the number of edges isn't
    /// limited, and any edge of these classes without attributes can be removed.
    #[must_use]
    pub fn new(classes: u16) -> Self {
        Self { classes, max_edges: usize::MAX, keeps_connected: false }
    }

    /// Limits the number of edges: edges are added only while the graph has fewer than `max_edges` edges.
    #[must_use]
    pub fn at_most(mut self, max_edges: usize) -> Self {
        self.max_edges = max_edges;
        self
    }

    /// Keeps undirected graphs connected: bridges can't be removed by backward moves. Use this setting if
    /// every new node is attached to the graph by an edge. Directed graphs aren't affected.
    #[must_use]
    pub fn keeping_connected(mut self) -> Self {
        self.keeps_connected = true;
        self
    }
}

/// Marks in `row` the moves that add an edge from `a`; in undirected graphs only edges to nodes after `a`.
/// `row` is the part of the mask that belongs to `a`. It has, for each node to which the edge may lead,
/// `width` entries: one for each edge class.
fn mark_free(graph: &GraphState, a: usize, width: usize, row: &mut [bool]) {
    let first = if graph.is_directed() { 0 } else { a + 1 };
    row[first * width..].fill(true);
    let mut forbid = |b: usize| match width {
        1 => row[b] = false,
        _ => row[b * width..(b + 1) * width].fill(false),
    };
    if graph.is_directed() {
        forbid(a);
    }
    graph.adjacency().neighbours(a).filter(|&b| b >= first).for_each(forbid);
}

impl GraphActionType for AddEdge {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn widen(&self, schema: &mut GraphSchema) {
        schema.edge_classes = schema.edge_classes.max(self.classes.into());
    }

    fn settings(&self) -> Value {
        json!({ "AddEdge": self })
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
                        *legal &= edge.has_class_below(self.classes);
                    }
                }
                if let (true, Some(undirected)) = (self.keeps_connected, graph.as_undirected()) {
                    for bridge in bridges(undirected) {
                        let a = bridge.source().index() as u32;
                        let b = bridge.target().index() as u32;
                        mask[graph.edge_rank(a, b)] = false;
                    }
                }
            }
        }
    }

    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        match direction {
            Direction::Forward => graph.add_edge(action.a, action.b, Edge::from_class(action.class as u16)),
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

    /// Checks that no edge can be removed from a graph with more than `max_edges` edges, because none of its
    /// edges can have been added last.
    #[test]
    fn no_edge_can_be_removed_beyond_the_limit() {
        let mut graph = GraphState::with_nodes(GraphKind::Undirected, 3);
        for (edge, (a, b)) in [(0, 1), (1, 2)].into_iter().enumerate() {
            graph.add_edge(a, b, Edge::default()).unwrap();
            let mut mask = vec![false; edge + 1];
            AddEdge::new(1).at_most(1).mask(
                Direction::Backward,
                Semantics::Labelled,
                (&graph).into(),
                &mut mask,
            );
            assert_eq!(mask, vec![edge == 0; edge + 1]);
        }
    }
}
