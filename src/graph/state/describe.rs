//! The description of a graph in one line, for messages.

use std::fmt::{Display, Formatter, Result, Write};

use super::Attributes;
use crate::graph::GraphState;

/// The largest number of nodes, and of edges, that are named one by one.
const MAX_NAMED: usize = 64;

/// Writes the number of nodes, the classes and attributes of nodes, and the edges with their classes and
/// attributes.
///
/// The classes of nodes are left out if all are 0, and so are unset attributes and edge classes of 0. If
/// there are more than 64 nodes or edges, only the first 64 are named.
///
/// ```
/// use gfn::graph::{Edge, GraphKind, GraphState, Node};
/// let nodes = [Node::of_class(0), Node::of_class(1), Node::of_class(0)];
/// let edges = [(0, 1, Edge::of_class(1)), (1, 2, Edge::default())];
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
            write!(f, ", node {a} has ")?;
            write_attributes(f, node.attributes)?;
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
                f.write_str(" (")?;
                if edge.class > 0 {
                    write!(f, "class {}", edge.class)?;
                }
                if !edge.attributes.is_unset() {
                    f.write_str(if edge.class > 0 { ", " } else { "" })?;
                    write_attributes(f, edge.attributes)?;
                }
                f.write_char(')')?;
            }
        }
        match self.n_edges().saturating_sub(MAX_NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Writes the values of attributes up to the last one that is set.
fn write_attributes(f: &mut Formatter<'_>, attributes: Attributes) -> Result {
    f.write_str("attributes")?;
    attributes.set_values().iter().try_for_each(|value| write!(f, " {value}"))
}

#[cfg(test)]
mod tests {
    use super::super::{Edge, Node};
    use super::*;
    use crate::graph::GraphKind;

    #[test]
    fn zero_classes_and_attributes_are_left_out() {
        assert_eq!(GraphState::new(GraphKind::Directed).to_string(), "0 nodes, no edges");
        let mut graph = GraphState::with_nodes(GraphKind::Directed, 2);
        graph.add_edge(1, 0, Edge::default()).unwrap();
        assert_eq!(graph.to_string(), "2 nodes, edge 1->0");
    }

    #[test]
    fn attributes_and_classes_are_named() {
        let mut node = Node::of_class(2);
        node.attributes.set(1, 3);
        let mut edge = Edge::of_class(1);
        edge.attributes.set(0, 2);
        let plain = Edge { class: 0, ..edge };
        let nodes = [Node::default(), node, Node::default()];
        let edges = [(0, 1, edge), (1, 2, plain), (0, 2, Edge::default())];
        let graph = GraphState::from_parts(GraphKind::Undirected, &nodes, &edges).unwrap();
        let expected = "3 nodes (classes 0 2 0), node 1 has attributes 0 3, \
                        edges 0-1 (class 1, attributes 2), 0-2, 1-2 (attributes 2)";
        assert_eq!(graph.to_string(), expected);
    }

    #[test]
    fn large_graphs_are_cut_short() {
        let mut graph = GraphState::with_nodes(GraphKind::Undirected, 100);
        graph.set_node(99, Node::of_class(1)).unwrap();
        for a in 0..99 {
            graph.add_edge(a, a + 1, Edge::default()).unwrap();
        }
        let text = graph.to_string();
        assert!(text.contains("0 0 ...)") && text.ends_with("63-64 and 35 more"), "{text}");
    }
}
