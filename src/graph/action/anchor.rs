//! What actions belong to: a graph, its nodes, its edges, pairs of nodes; and the blocks of logits that they have.

use crate::graph::{GraphKind, GraphState};

/// The part of a graph that a row of logits belongs to: the only closed set of graph actions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Anchor {
    /// One row per graph.
    Graph,
    /// One row per node, in label order.
    Node,
    /// One row per edge, in the order of [`GraphState::edges`]; an undirected edge has one row.
    Edge,
    /// One row per ordered pair of nodes, `n * n` of them: row `a * n + b`. Undirected pairs use the rows with `a < b`.
    NodePair,
}

impl Anchor {
    /// The number of rows that a graph has.
    #[must_use]
    pub fn rows(self, graph: &GraphState) -> usize {
        match self {
            Self::Graph => 1,
            Self::Node => graph.n_nodes(),
            Self::Edge => graph.n_edges(),
            Self::NodePair => graph.n_nodes() * graph.n_nodes(),
        }
    }

    /// No graph of this kind and of up to `max_nodes` nodes has more rows.
    pub(super) fn most_rows(self, kind: GraphKind, max_nodes: usize) -> usize {
        let pairs = max_nodes.saturating_mul(max_nodes);
        match self {
            Self::Graph => 1,
            Self::Node => max_nodes,
            Self::Edge if kind == GraphKind::Undirected => pairs / 2,
            Self::Edge | Self::NodePair => pairs,
        }
    }
}

/// The block of logits of one action type in one direction, which a network gives: rows by [`Anchor`], `width` columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Head {
    /// The part that a row belongs to.
    pub anchor: Anchor,
    /// Logits per row.
    pub width: usize,
}

impl Head {
    /// The move that a slot of this block stands for.
    #[must_use]
    pub fn decode(&self, graph: &GraphState, slot: usize) -> Move {
        let (row, class) = (slot / self.width, (slot % self.width) as u32);
        let (a, b) = match self.anchor {
            Anchor::Graph => (0, 0),
            Anchor::Node => (row as u32, 0),
            Anchor::Edge => graph.edges().nth(row).unwrap_or((0, 0)),
            Anchor::NodePair => {
                let n = graph.n_nodes().max(1);
                ((row / n) as u32, (row % n) as u32)
            }
        };
        Move { a, b, class }
    }

    /// The slot of a move in this block.
    #[must_use]
    pub fn encode(&self, graph: &GraphState, action: Move) -> usize {
        let row = match self.anchor {
            Anchor::Graph => 0,
            Anchor::Node => action.a as usize,
            Anchor::Edge => graph.edge_rank(action.a, action.b),
            Anchor::NodePair => action.a as usize * graph.n_nodes() + action.b as usize,
        };
        row * self.width + action.class as usize
    }

    /// The move with its nodes called by other names.
    pub(super) fn rename(&self, action: Move, names: &[u32], directed: bool) -> Move {
        let name = |a: u32| names.get(a as usize).copied().unwrap_or(a);
        match self.anchor {
            Anchor::Graph => action,
            Anchor::Node => Move { a: name(action.a), ..action },
            Anchor::Edge | Anchor::NodePair => {
                let (a, b) = (name(action.a), name(action.b));
                let (a, b) = if directed { (a, b) } else { (a.min(b), a.max(b)) };
                Move { a, b, ..action }
            }
        }
    }
}

/// An action spelt out: nodes by label and a column of its block.
///
/// Which fields mean something depends on the anchor: none of the nodes (graph), `a` (node), both (edge, pairs).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Move {
    /// The node, or the first of two.
    pub a: u32,
    /// The second node.
    pub b: u32,
    /// The column: the class of a new node, the value of an attribute; the action type says which.
    pub class: u32,
}
