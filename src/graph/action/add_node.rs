use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Semantics;
use crate::Result;
use crate::env::Direction;
use crate::graph::{
    Anchor, Edge, GraphActionType, GraphKind, GraphSchema, GraphState, GraphView, Head, Move, Node,
};

/// An action type that adds a node of some class. Its backward moves, which are the forward moves of
/// `Reverse(AddNode)`, remove a node.
///
/// If the type adds nodes without an edge, a node without edges can be removed. If the type attaches nodes by
/// an edge, a node with a single edge (in directed graphs an incoming edge) can be removed together with that
/// edge. The node and the edge must have no attributes, and classes that this type can add. If nodes are
/// labelled, only the last node can be removed, because labels are the order in which nodes were added. No
/// node can be removed from a graph with more than `max_nodes` nodes.
///
/// In the block of logits, the column of a forward move is `node_class * edge_classes + edge_class`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddNode {
    /// `true` if the type only adds the first node of an empty graph, and has a name of its own.
    is_first: bool,
    classes: u16,
    max_nodes: usize,
    /// The number of classes of the edge from an existing node to the new node; `None` if nodes are added
    /// without an edge.
    edge_classes: Option<u16>,
}

impl AddNode {
    /// The name of an action type from [`free`](Self::free).
    pub const FREE: &'static str = "add_node";
    /// The name of an action type from [`first`](Self::first).
    pub const FIRST: &'static str = "add_first_node";
    /// The name of an action type from [`attached`](Self::attached).
    pub const ATTACHED: &'static str = "add_attached_node";

    /// Creates a type that adds nodes without edges, until the graph has `max_nodes` nodes.
    #[must_use]
    pub fn free(classes: u16, max_nodes: usize) -> Self {
        Self { is_first: false, classes, max_nodes, edge_classes: None }
    }

    /// Creates a type that adds the first node of an empty graph.
    #[must_use]
    pub fn first(classes: u16) -> Self {
        Self { is_first: true, ..Self::free(classes, 1) }
    }

    /// Creates a type that adds nodes with an edge from an existing node, until the graph has `max_nodes`
    /// nodes.
    #[must_use]
    pub fn attached(classes: u16, edge_classes: u16, max_nodes: usize) -> Self {
        Self { edge_classes: Some(edge_classes), ..Self::free(classes, max_nodes) }
    }

    /// Returns the number of classes of the new edge; 1 if nodes are added without an edge.
    fn edge_classes(&self) -> u32 {
        self.edge_classes.map_or(1, u32::from)
    }

    /// Returns `true` if node `a` could be the node that was added last.
    fn is_removable(&self, graph: &GraphState, a: u32) -> bool {
        let is_addable = |node: Node| node.has_class_below(self.classes);
        if graph.n_nodes() > self.max_nodes || !graph.node(a).is_some_and(is_addable) {
            return false;
        }
        let Some(edge_classes) = self.edge_classes else { return graph.degree(a) == 0 };
        let has_one_edge = match graph.kind() {
            GraphKind::Undirected => graph.degree(a) == 1,
            GraphKind::Directed => graph.out_degree(a) == 0 && graph.in_degree(a) == 1,
        };
        has_one_edge && find_edge_into(graph, a).1.has_class_below(edge_classes)
    }
}

/// Returns the source of the only edge into `a`, and the class and the attributes of that edge.
fn find_edge_into(graph: &GraphState, a: u32) -> (u32, Edge) {
    let from = (0..graph.n_nodes() as u32).find(|&b| graph.has_edge(b, a)).unwrap_or(0);
    (from, graph.edge(from, a).unwrap_or_default())
}

impl GraphActionType for AddNode {
    fn name(&self) -> &str {
        match self.edge_classes {
            Some(_) => Self::ATTACHED,
            None if self.is_first => Self::FIRST,
            None => Self::FREE,
        }
    }

    fn settings(&self) -> Value {
        json!({ "AddNode": self })
    }

    fn widen(&self, schema: &mut GraphSchema) {
        schema.max_nodes = schema.max_nodes.max(self.max_nodes);
        schema.node_classes = schema.node_classes.max(self.classes.into());
        schema.edge_classes = schema.edge_classes.max(self.edge_classes() as usize);
    }

    fn head(&self, direction: Direction) -> Option<Head> {
        let classes = usize::from(self.classes);
        Some(match (direction, self.edge_classes) {
            (Direction::Backward, _) => Head { anchor: Anchor::Node, width: 1 },
            (Direction::Forward, Some(n)) => Head { anchor: Anchor::Node, width: classes * usize::from(n) },
            (Direction::Forward, None) => Head { anchor: Anchor::Graph, width: classes },
        })
    }

    fn mask(&self, direction: Direction, semantics: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        match direction {
            Direction::Forward => mask.fill(graph.n_nodes() < self.max_nodes),
            Direction::Backward => {
                let first = if semantics == Semantics::Labelled { mask.len().saturating_sub(1) } else { 0 };
                for (a, legal) in mask.iter_mut().enumerate().skip(first) {
                    *legal = self.is_removable(&graph, a as u32);
                }
            }
        }
    }

    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        if direction == Direction::Backward {
            return graph.remove_node(action.a).map(|_| ());
        }
        let new = graph.add_node(Node::from_class((action.class / self.edge_classes()) as u16));
        if self.edge_classes.is_none() {
            return Ok(());
        }
        graph.add_edge(action.a, new, Edge::from_class((action.class % self.edge_classes()) as u16))
    }

    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        if direction == Direction::Forward {
            return Move { a: before.n_nodes() as u32, ..Move::default() };
        }
        let node_class = u32::from(before.node(action.a).unwrap_or_default().class);
        if self.edge_classes.is_none() {
            return Move { class: node_class, ..Move::default() };
        }
        let (from, edge) = find_edge_into(before, action.a);
        Move { a: from, b: 0, class: node_class * self.edge_classes() + u32::from(edge.class) }
    }

    fn removed_nodes(&self, direction: Direction, _: &GraphState, action: Move) -> Vec<u32> {
        if direction == Direction::Backward { vec![action.a] } else { Vec::new() }
    }
}
