//! The description of a graph in one line, for messages and logs.

use std::fmt::{Display, Formatter, Result};

use super::{Attributes, GraphState, Weight};

/// The largest number of nodes that a description names one by one; the limit for edges is the same.
const MAX_NAMED: usize = 64;

/// Writes the number of nodes, the classes and attributes of the nodes, and the edges with their classes and
/// attributes.
///
/// The classes of nodes are left out if all of them are 0. Unset attributes and edge classes of 0 are left
/// out, too. If there are more than 64 nodes or edges, only the first 64 are named.
///
/// ```
/// use gfn::graph::{Edge, GraphKind, GraphState, Node};
/// let nodes = [Node::from_class(0), Node::from_class(1), Node::from_class(0)];
/// let edges = [(0, 1, Edge::from_class(1)), (1, 2, Edge::default())];
/// let graph = GraphState::from_parts(GraphKind::Undirected, &nodes, &edges)?;
/// assert_eq!(graph.to_string(), "3 nodes (classes 0 1 0), edges 0-1 (class 1), 1-2");
/// # Ok::<(), gfn::Error>(())
/// ```
impl Display for GraphState {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let n = self.n_nodes();
        write!(f, "{n} node{}", if n == 1 { "" } else { "s" })?;
        if self.nodes().any(|node| node.class != 0) {
            f.write_str(" (classes")?;
            self.nodes().take(MAX_NAMED).try_for_each(|node| write!(f, " {}", node.class))?;
            f.write_str(if n > MAX_NAMED { " ...)" } else { ")" })?;
        }
        let marked = self.nodes().enumerate().filter(|(_, node)| !node.attributes.is_unset());
        for (a, node) in marked.take(MAX_NAMED) {
            write!(f, ", node {a} has {}", node.attributes)?;
        }
        if self.n_edges() == 0 {
            return f.write_str(", no edges");
        }
        f.write_str(if self.n_edges() == 1 { ", edge " } else { ", edges " })?;
        for (k, (a, b)) in self.edges().take(MAX_NAMED).enumerate() {
            let comma = if k > 0 { ", " } else { "" };
            let arrow = if self.is_directed() { "->" } else { "-" };
            write!(f, "{comma}{a}{arrow}{b}")?;
            let edge = self.edge(a, b).unwrap_or_default();
            if !edge.is_plain() {
                write!(f, " ({edge})")?;
            }
        }
        match self.n_edges().saturating_sub(MAX_NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Writes the class of a node or an edge, if it isn't 0, and its attributes.
impl Display for Weight {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.class > 0 {
            write!(f, "class {}", self.class)?;
            f.write_str(if self.attributes.is_unset() { "" } else { " " })?;
        }
        self.attributes.fmt(f)
    }
}

/// Writes the values of the attributes up to the last one that is set.
impl Display for Attributes {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(if self.is_unset() { "" } else { "attributes" })?;
        self.set_values().iter().try_for_each(|value| write!(f, " {value}"))
    }
}
