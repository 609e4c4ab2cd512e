//! The parts that the graphs of an environment are made of. A graph that is encoded and looked up in tables
//! must keep to them, or it would read what belongs to others.

use crate::graph::{ActionSet, Attributes, Edge, GraphArrays, GraphKind, GraphState, MAX_ATTRIBUTES, Node};
use crate::{Error, Result};

/// The parts that the graphs of an environment are made of, by which an estimator sizes its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSchema {
    /// Directed or undirected.
    pub kind: GraphKind,
    /// No graph has more nodes.
    pub max_nodes: usize,
    /// Node classes are `0..node_classes`.
    pub node_classes: usize,
    /// Edge classes are `0..edge_classes`.
    pub edge_classes: usize,
    /// Node attribute `k` has values `0..=node_attributes[k]`, 0 for unset.
    pub node_attributes: Vec<u8>,
    /// Edge attribute `k` has values `0..=edge_attributes[k]`, 0 for unset.
    pub edge_attributes: Vec<u8>,
}

impl GraphSchema {
    /// One class of nodes, one of edges, no attributes.
    #[must_use]
    pub fn plain(kind: GraphKind, max_nodes: usize) -> Self {
        Self {
            kind,
            max_nodes,
            node_classes: 1,
            edge_classes: 1,
            node_attributes: Vec::new(),
            edge_attributes: Vec::new(),
        }
    }

    /// Refuses a graph that doesn't keep to it: more nodes, classes or attributes, edges of another kind.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract), which says what of the graph doesn't fit.
    pub fn check_graph(&self, graph: &GraphState) -> Result<()> {
        super::check_fits(self, graph)
    }

    /// The least that these graphs and what action types add to them need.
    pub(super) fn of(actions: &ActionSet, initial: &[GraphState]) -> Self {
        let mut out = Self::plain(initial.first().map_or(GraphKind::Undirected, GraphState::kind), 0);
        for (_, action_type) in actions.types() {
            // Each has a schema of its own, so that none takes back what another one needs.
            let mut own = Self::plain(out.kind, 0);
            action_type.widen(&mut own);
            out.max_nodes = out.max_nodes.max(own.max_nodes);
            out.node_classes = out.node_classes.max(own.node_classes);
            out.edge_classes = out.edge_classes.max(own.edge_classes);
            raise(&mut out.node_attributes, &own.node_attributes);
            raise(&mut out.edge_attributes, &own.edge_attributes);
        }
        out.widen(initial);
        out
    }

    /// Makes room for these graphs.
    pub(super) fn widen(&mut self, graphs: &[GraphState]) {
        for graph in graphs {
            self.max_nodes = self.max_nodes.max(graph.n_nodes());
            for node in graph.nodes() {
                self.node_classes = self.node_classes.max(usize::from(node.class) + 1);
                raise(&mut self.node_attributes, node.attributes.set_values());
            }
            let edges = graph.edges().filter(|_| graph.has_edge_weights()).filter_map(|(a, b)| graph.edge(a, b));
            for edge in edges {
                self.edge_classes = self.edge_classes.max(usize::from(edge.class) + 1);
                raise(&mut self.edge_attributes, edge.attributes.set_values());
            }
        }
    }

    /// Checks that graphs can hold what this says.
    ///
    /// # Errors
    /// [`Error::Config`] for more than [`MAX_ATTRIBUTES`] attributes of nodes or of edges, and for more than
    /// 65536 classes.
    pub fn check(&self) -> Result<()> {
        let most = self.node_attributes.len().max(self.edge_attributes.len());
        if most > MAX_ATTRIBUTES {
            let expected = "at most 7, as many as a node or an edge holds";
            return Err(Error::config("the number of attributes in a schema", most, expected));
        }
        match self.node_classes.max(self.edge_classes) {
            0..=65536 => Ok(()),
            most => {
                let expected = "at most 65536, as a class has 16 bits";
                Err(Error::config("the number of classes in a schema", most, expected))
            }
        }
    }

    /// `true` if an edge can be of more than one kind.
    pub(crate) fn tells_edges_apart(&self) -> bool {
        self.edge_classes > 1 || self.edge_attributes.iter().any(|&values| values > 0)
    }

    /// Checks that graphs are of the schema's kind, and of classes and attributes that it has. Their number
    /// of nodes is not looked at: only some networks care.
    pub(crate) fn check_graphs(&self, graphs: &GraphArrays) -> Result<()> {
        match self.misfit(graphs) {
            None => Ok(()),
            Some((row, what)) => Err(misfit(format!("graph {row} {what}"))),
        }
    }

    /// Checks that whatever fits another schema fits this one.
    pub(crate) fn check_covers(&self, other: &Self) -> Result<()> {
        let covers = |most: &[u8], values: &[u8]| {
            most.len() == values.len() && most.iter().zip(values).all(|(most, value)| value <= most)
        };
        let fits = self.kind == other.kind
            && other.node_classes <= self.node_classes
            && other.edge_classes <= self.edge_classes
            && covers(&self.node_attributes, &other.node_attributes)
            && covers(&self.edge_attributes, &other.edge_attributes);
        if fits { Ok(()) } else { Err(misfit(format!("{other:?} of the environment, {self:?} of the network"))) }
    }

    /// The first graph with something that the schema doesn't have, and what that is.
    pub(in crate::graph) fn misfit(&self, graphs: &GraphArrays) -> Option<(usize, String)> {
        let other = if graphs.is_empty() || graphs.kind == self.kind { graphs.first_of_other_kind } else { Some(0) };
        if let Some(row) = other {
            let other = if self.kind == GraphKind::Directed { GraphKind::Undirected } else { GraphKind::Directed };
            return Some((row, format!("is {other:?}, not {:?}", self.kind)));
        }
        // The graph that item `at` of all graphs' items belongs to.
        let row = |ptr: &[usize], at: usize| ptr.partition_point(|&first| first <= at) - 1;
        let of_node = |node: &Node| beyond(node.class, node.attributes, self.node_classes, &self.node_attributes);
        let wrong = graphs.nodes.iter().enumerate().find_map(|(at, node)| Some((at, of_node(node)?)));
        if let Some((at, what)) = wrong {
            return Some((row(&graphs.node_ptr, at), format!("has a node, {}, with {what}", graphs.labels[at])));
        }
        let of_edge = |edge: &Edge| beyond(edge.class, edge.attributes, self.edge_classes, &self.edge_attributes);
        let marked = graphs.weights.iter().enumerate().filter(|(_, edge)| !edge.is_plain());
        let (at, what) = marked.into_iter().find_map(|(at, edge)| Some((at, of_edge(edge)?)))?;
        Some((row(&graphs.edge_ptr, at), format!("has an edge with {what}")))
    }
}

/// Raises the last value of each attribute to at least these.
pub(in crate::graph) fn raise(most: &mut Vec<u8>, values: &[u8]) {
    most.resize(most.len().max(values.len()), 0);
    most.iter_mut().zip(values).for_each(|(most, &value)| *most = value.max(*most));
}

/// A class or a value beyond what there is.
fn beyond(class: u16, attributes: Attributes, classes: usize, most: &[u8]) -> Option<String> {
    if usize::from(class) >= classes {
        return Some(format!("class {class} of {classes}"));
    }
    if attributes.is_unset() {
        return None;
    }
    let limit = |k: usize| most.get(k).copied().unwrap_or(0);
    let (k, value) = attributes.values().iter().enumerate().find(|&(k, &value)| value > limit(k))?;
    Some(format!("value {value} of attribute {k}, whose last is {}", limit(k)))
}

/// Graphs that aren't what they should be.
pub(crate) fn misfit(detail: String) -> Error {
    Error::contract(
        "graphs fit the schema that they are encoded by, and the network the environment that it was built for \
                (correct the schema, or build the network for this environment)",
        detail,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphState;

    fn schema() -> GraphSchema {
        GraphSchema {
            node_classes: 2,
            edge_classes: 2,
            node_attributes: vec![1],
            edge_attributes: vec![2],
            ..GraphSchema::plain(GraphKind::Directed, 2)
        }
    }

    fn attributes(values: &[u8]) -> Attributes {
        Attributes::new(values).unwrap()
    }

    #[test]
    fn what_a_schema_does_not_have_is_named() {
        let graph = |node: Node, edge: Edge| {
            GraphState::from_parts(GraphKind::Directed, &[Node::default(), node], &[(0, 1, edge)]).unwrap()
        };
        let fits =
            graph(Node { class: 1, attributes: attributes(&[1]) }, Edge { class: 1, attributes: attributes(&[2]) });
        let two = [fits.clone(), GraphState::with_nodes(GraphKind::Directed, 9)];
        schema().check_graphs(&GraphArrays::of(&two)).unwrap();
        let cases = [
            (GraphState::new(GraphKind::Undirected), "is Undirected, not Directed"),
            (graph(Node::of_class(2), Edge::default()), "class 2 of 2"),
            (graph(Node { class: 0, attributes: attributes(&[2]) }, Edge::default()), "value 2 of attribute 0"),
            (graph(Node { class: 0, attributes: attributes(&[0, 1]) }, Edge::default()), "value 1 of attribute 1"),
            (graph(Node::default(), Edge::of_class(2)), "an edge with class 2"),
            (graph(Node::default(), Edge { class: 0, attributes: attributes(&[3]) }), "value 3 of attribute 0"),
        ];
        for (graph, words) in cases {
            let message = schema().check_graphs(&GraphArrays::of(&[fits.clone(), graph])).unwrap_err().to_string();
            assert!(message.contains("graph 1") && message.contains(words), "{message}");
        }
    }

    #[test]
    fn a_schema_covers_what_has_no_more_than_it() {
        let small = GraphSchema { node_classes: 1, max_nodes: 9, ..schema() };
        schema().check_covers(&small).unwrap();
        for other in [
            GraphSchema { kind: GraphKind::Undirected, ..schema() },
            GraphSchema { node_classes: 3, ..schema() },
            GraphSchema { edge_classes: 3, ..schema() },
            GraphSchema { node_attributes: vec![2], ..schema() },
            GraphSchema { edge_attributes: Vec::new(), ..schema() },
        ] {
            assert!(schema().check_covers(&other).is_err(), "{other:?}");
        }
    }
}
