use petgraph::algo::bridges::bridges;
use petgraph::visit::EdgeRef;

use super::Semantics;
use crate::Result;
use crate::env::Direction;
use crate::graph::{Anchor, Edge, GraphActionType, GraphState, GraphView, Head, Move};

/// What a backward move must keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connectivity {
    /// Any edge can go.
    Any,
    /// Bridges of an undirected graph stay: graphs that grow by attachment are connected at every step.
    Kept,
}

/// Adds an edge of some class between two nodes that none joins yet; the way back (`RemoveEdge`) removes one.
///
/// Backward, an edge can go when it is of one of these classes, has no attributes and, where connectivity is kept, isn't a bridge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddEdge {
    classes: u16,
    max_edges: usize,
    connectivity: Connectivity,
    /// Only between nodes of a candidate.
    among_candidates: bool,
}

impl AddEdge {
    /// Adds edges of so many classes.
    #[must_use]
    pub fn new(classes: u16) -> Self {
        Self { classes, max_edges: usize::MAX, connectivity: Connectivity::Any, among_candidates: false }
    }

    /// No more than `max_edges` edges in all.
    #[must_use]
    pub fn at_most(mut self, max_edges: usize) -> Self {
        self.max_edges = max_edges;
        self
    }

    /// Only between the pairs of nodes that the initial graph [lists](GraphState::with_candidates), the only ones that have logits: for
    /// graphs of thousands of nodes, where all pairs would be too many.
    ///
    /// ```
    /// use gfn::env::StateGraph;
    /// use gfn::graph::*;
    /// let kind = GraphKind::Undirected;
    /// let initial = GraphState::with_nodes(kind, 4).with_candidates([(0, 1), (1, 2), (2, 3)])?;
    /// let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1).among_candidates());
    /// let env = GraphEnv::new(Free, actions, GraphSchema::plain(kind, 4), initial)?;
    /// assert_eq!(StateGraph::build(&env, 100)?.len(), 8);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    #[must_use]
    pub fn among_candidates(self) -> Self {
        Self { among_candidates: true, ..self }
    }

    /// The graph is connected at every step (undirected graphs that grow by attachment).
    #[must_use]
    pub fn keeping_connected(mut self) -> Self {
        self.connectivity = Connectivity::Kept;
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
    let Some(bits) = graph.adjacency().bits() else {
        return graph.adjacency().ones(a).filter(|&b| b >= first).for_each(close);
    };
    // The nodes that are joined to `a` already, word by word: most rows have few.
    for (k, &word) in bits.row(a).iter().enumerate().skip(first / 64) {
        let mut joined = if k == first / 64 { word >> (first % 64) << (first % 64) } else { word };
        while joined != 0 {
            close(k * 64 + joined.trailing_zeros() as usize);
            joined &= joined - 1;
        }
    }
}

impl GraphActionType for AddEdge {
    fn name(&self) -> &str {
        "add_edge"
    }

    fn head(&self, direction: Direction) -> Option<Head> {
        let pairs = if self.among_candidates { Anchor::Candidate } else { Anchor::NodePair };
        Some(match direction {
            Direction::Forward => Head { anchor: pairs, width: usize::from(self.classes) },
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
                if self.among_candidates {
                    let rows = graph.candidates().iter().zip(mask.chunks_exact_mut(width.max(1)));
                    return rows.for_each(|(&(a, b), row)| row.fill(!graph.has_edge(a, b)));
                }
                for (a, row) in mask.chunks_exact_mut((n * width).max(1)).enumerate() {
                    mark_free(&graph, a, width, row);
                }
            }
            Direction::Backward => {
                mask.fill(graph.n_edges() <= self.max_edges);
                if graph.has_edge_weights() {
                    let own = |edge: Edge| edge.class < self.classes && edge.attributes.is_unset();
                    for (legal, (_, _, edge)) in mask.iter_mut().zip(graph.weighted_edges()) {
                        *legal &= own(edge);
                    }
                }
                if self.among_candidates {
                    let listed = |edge: (u32, u32)| graph.candidates().binary_search(&edge).is_ok();
                    mask.iter_mut().zip(graph.edges()).for_each(|(legal, edge)| *legal &= listed(edge));
                }
                if let (Connectivity::Kept, Some(undirected)) = (self.connectivity, graph.as_undirected()) {
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
            Direction::Backward => {
                let edge = before.edge(action.a, action.b).unwrap_or_default();
                u32::from(edge.class)
            }
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
