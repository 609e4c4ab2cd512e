//! The parts of a graph that actions belong to (the graph, nodes, edges, pairs of nodes), and the blocks of
//! logits of action types. A block is a table of logits with a row for each of these parts.

use crate::graph::{GraphKind, GraphState};

/// The part of a graph to which a row of logits belongs. Custom action types choose one of these anchors,
/// too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Anchor {
    /// The whole graph, which has a single row.
    Graph,
    /// The nodes, with one row per node in label order.
    Node,
    /// The edges, with one row per edge in the order of [`GraphState::edges`]; an undirected edge has one
    /// row.
    Edge,
    /// The ordered pairs of nodes, with `n * n` rows: row `a * n + b` belongs to the pair `(a, b)`.
    /// Undirected pairs use only the rows with `a < b`.
    NodePair,
}

impl Anchor {
    /// Returns the number of rows that a block of logits with this anchor has for a graph.
    #[must_use]
    pub fn rows(self, graph: &GraphState) -> usize {
        match self {
            Self::Graph => 1,
            Self::Node => graph.n_nodes(),
            Self::Edge => graph.n_edges(),
            Self::NodePair => graph.n_nodes() * graph.n_nodes(),
        }
    }

    /// Returns an upper bound of the number of rows of logits with this anchor, for graphs of this kind with
    /// up to `max_nodes` nodes.
    pub(super) fn max_rows(self, kind: GraphKind, max_nodes: usize) -> usize {
        let pairs = max_nodes.saturating_mul(max_nodes);
        match self {
            Self::Graph => 1,
            Self::Node => max_nodes,
            Self::Edge if kind == GraphKind::Undirected => pairs / 2,
            Self::Edge | Self::NodePair => pairs,
        }
    }
}

/// The shape of the block of logits that a network returns for one action type in one direction. The
/// [`Anchor`] determines the rows, and `width` is the number of columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Head {
    /// The part of a graph to which a row of the block of logits belongs.
    pub anchor: Anchor,
    /// The number of logits in each row.
    pub width: usize,
}

impl Head {
    /// Returns the move that a slot of this block of logits represents. `slot` counts from the start of the
    /// block.
    ///
    /// # Panics
    /// If the width of the block is 0.
    #[must_use]
    pub fn decode(&self, graph: &GraphState, slot: usize) -> Move {
        let row = slot / self.width;
        let class = (slot % self.width) as u32;
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

    /// Returns the slot of a move, counted from the start of this block of logits. The result is meaningless
    /// if the graph doesn't have the move.
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

    /// Returns the move with node `a` renamed to `names[a]`. The smaller node of an undirected pair or edge
    /// comes first.
    pub(super) fn rename(&self, action: Move, names: &[u32], directed: bool) -> Move {
        let renamed = self.map_nodes(action, |a| names.get(a as usize).copied().unwrap_or(a));
        self.order_nodes(renamed, directed)
    }

    /// Returns the move with a function applied to the labels of the nodes that the anchor uses.
    pub(super) fn map_nodes(&self, action: Move, name: impl Fn(u32) -> u32) -> Move {
        match self.anchor {
            Anchor::Graph => action,
            Anchor::Node => Move { a: name(action.a), ..action },
            Anchor::Edge | Anchor::NodePair => Move { a: name(action.a), b: name(action.b), ..action },
        }
    }

    /// Returns the move with the smaller node of an undirected pair or edge first.
    pub(in crate::graph) fn order_nodes(&self, action: Move, directed: bool) -> Move {
        let is_pair = matches!(self.anchor, Anchor::Edge | Anchor::NodePair);
        if is_pair && !directed && action.b < action.a {
            return Move { a: action.b, b: action.a, ..action };
        }
        action
    }
}

/// The meaning of a slot: the labels of the nodes of an action, and its column in the block of logits.
///
/// The anchor determines which nodes are used: none ([`Anchor::Graph`]), `a` ([`Anchor::Node`]), or both
/// ([`Anchor::Edge`], [`Anchor::NodePair`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Move {
    /// The label of the node, or of the first of the two nodes.
    pub a: u32,
    /// The label of the second node.
    pub b: u32,
    /// The column of the action in its type's block of logits. The action type defines the meaning of the
    /// column, such as the class of a new node or the value of an attribute.
    pub class: u32,
}
