//! The limits of the graphs of an environment. Networks have tables with a learned vector for each class and
//! each attribute value, so a graph that exceeds the limits would use vectors of other classes.

use serde::{Deserialize, Serialize};

use crate::graph::{ActionSet, Edge, GraphArrays, GraphKind, GraphState, MAX_ATTRIBUTES, Node, Weight};
use crate::{Error, Result};

/// The limits of the graphs of an environment: their kind, the largest number of nodes, the number of
/// classes, and the largest value of each attribute. Networks have a learned vector for each class and each
/// value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphSchema {
    /// The kind of the graphs: directed or undirected.
    pub kind: GraphKind,
    /// The largest number of nodes of a graph.
    pub max_nodes: usize,
    /// The number of classes of nodes, at most 65,536: classes are `0..node_classes`.
    pub node_classes: usize,
    /// The number of classes of edges, at most 65,536: classes are `0..edge_classes`.
    pub edge_classes: usize,
    /// The largest value of each attribute of nodes. Attribute `k` has values `0..=node_attributes[k]`, and 0
    /// means that the attribute isn't set. There are at most [`MAX_ATTRIBUTES`] attributes.
    pub node_attributes: Vec<u8>,
    /// The largest value of each attribute of edges. Attribute `k` has values `0..=edge_attributes[k]`, and 0
    /// means that the attribute isn't set. There are at most [`MAX_ATTRIBUTES`] attributes.
    pub edge_attributes: Vec<u8>,
}

impl GraphSchema {
    /// Creates a schema with one class of nodes, one class of edges, and no attributes.
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

    /// Checks that a graph satisfies the schema.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract) if the graph is of another kind, or exceeds the limits of
    /// nodes, classes or attributes. The error names the first problem that is found.
    pub fn check_graph(&self, graph: &GraphState) -> Result<()> {
        let too_many =
            || format!("has {} nodes, but at most {} are allowed", graph.n_nodes(), self.max_nodes);
        let misfit =
            self.misfit(&GraphArrays::from_graphs(std::slice::from_ref(graph))).map(|(_, what)| what);
        let Some(what) = misfit.or_else(|| (graph.n_nodes() > self.max_nodes).then(too_many)) else {
            return Ok(());
        };
        Err(Error::contract(
            "graphs stay within the limits of the environment's schema",
            format!("a graph {what}: {graph}; {self:?}"),
        ))
    }

    /// Creates the schema with the smallest limits that these graphs and action types need.
    pub(super) fn from_parts(actions: &ActionSet, initial: &[GraphState]) -> Self {
        let mut out = Self::plain(initial.first().map_or(GraphKind::Undirected, GraphState::kind), 0);
        for (_, action_type) in actions.types() {
            // Each type gets a separate plain schema, so that it can't lower the limits that another type
            // needs.
            let mut needs = Self::plain(out.kind, 0);
            action_type.widen(&mut needs);
            out.max_nodes = out.max_nodes.max(needs.max_nodes);
            out.node_classes = out.node_classes.max(needs.node_classes);
            out.edge_classes = out.edge_classes.max(needs.edge_classes);
            raise(&mut out.node_attributes, &needs.node_attributes);
            raise(&mut out.edge_attributes, &needs.edge_attributes);
        }
        out.widen(initial);
        out
    }

    /// Raises the limits so that these graphs satisfy the schema.
    pub(super) fn widen(&mut self, graphs: &[GraphState]) {
        for graph in graphs {
            self.max_nodes = self.max_nodes.max(graph.n_nodes());
            for node in graph.nodes() {
                self.node_classes = self.node_classes.max(usize::from(node.class) + 1);
                raise(&mut self.node_attributes, node.attributes.set_values());
            }
            for (_, _, edge) in graph.stored_edges().filter(|(_, _, edge)| !edge.is_plain()) {
                self.edge_classes = self.edge_classes.max(usize::from(edge.class) + 1);
                raise(&mut self.edge_attributes, edge.attributes.set_values());
            }
        }
    }

    /// Checks that the schema itself is valid: graphs can represent all its classes and attributes.
    ///
    /// # Errors
    /// [`Error::Config`] for more than [`MAX_ATTRIBUTES`] attributes of nodes or of edges, and for more than
    /// 65536 classes.
    pub fn check(&self) -> Result<()> {
        let n_attributes = self.node_attributes.len().max(self.edge_attributes.len());
        if n_attributes > MAX_ATTRIBUTES {
            let expected = "at most 7, because a node or an edge has room for 7 attributes";
            return Err(Error::config("the number of attributes in a schema", n_attributes, expected));
        }
        let n_classes = self.node_classes.max(self.edge_classes);
        if n_classes > 65_536 {
            let expected = "at most 65536, because a class has 16 bits";
            return Err(Error::config("the number of classes in a schema", n_classes, expected));
        }
        Ok(())
    }

    /// `true` if edges can have different classes or attributes.
    pub(crate) fn tells_edges_apart(&self) -> bool {
        self.edge_classes > 1 || self.edge_attributes.iter().any(|&values| values > 0)
    }

    /// Checks that graphs have the schema's kind, and that their classes and attributes are within its
    /// limits. The schema's limit on the number of nodes isn't checked, because only some networks need it.
    pub(crate) fn check_graphs(&self, graphs: &GraphArrays) -> Result<()> {
        match self.misfit(graphs) {
            None => Ok(()),
            Some((row, problem)) => Err(misfit(format!("graph {row} {problem}"))),
        }
    }

    /// Checks that all graphs that satisfy another schema also satisfy this one, except for their number of
    /// nodes.
    pub(crate) fn check_covers(&self, other: &Self) -> Result<()> {
        let covers = |most: &[u8], values: &[u8]| {
            most.len() == values.len() && most.iter().zip(values).all(|(most, value)| value <= most)
        };
        let fits = self.kind == other.kind
            && other.node_classes <= self.node_classes
            && other.edge_classes <= self.edge_classes
            && covers(&self.node_attributes, &other.node_attributes)
            && covers(&self.edge_attributes, &other.edge_attributes);
        if fits {
            Ok(())
        } else {
            Err(misfit(format!("the environment has {other:?}, but the network was built for {self:?}")))
        }
    }

    /// Returns the index of the first graph whose kind, class or attribute isn't allowed by the schema, with
    /// a description of the problem; `None` if all graphs are allowed.
    pub(in crate::graph) fn misfit(&self, graphs: &GraphArrays) -> Option<(usize, String)> {
        let wrong_kind =
            if graphs.is_empty() || graphs.kind == self.kind { graphs.first_of_other_kind } else { Some(0) };
        if let Some(row) = wrong_kind {
            let other =
                if self.kind == GraphKind::Directed { GraphKind::Undirected } else { GraphKind::Directed };
            return Some((row, format!("is {other:?}, but must be {:?}", self.kind)));
        }
        // Returns the index of the graph that contains a node or an edge, given by its index `at` in the
        // batch.
        let row = |ptr: &[usize], at: usize| ptr.partition_point(|&first| first <= at) - 1;
        let node_excess = |node: &Node| describe_excess(*node, self.node_classes, &self.node_attributes);
        let node = graphs.nodes.iter().enumerate().find_map(|(at, node)| Some((at, node_excess(node)?)));
        if let Some((at, excess)) = node {
            return Some((
                row(&graphs.node_ptr, at),
                format!("has node {} with {excess}", graphs.labels[at]),
            ));
        }
        let edge_excess = |edge: &Edge| describe_excess(*edge, self.edge_classes, &self.edge_attributes);
        let mut marked = graphs.weights.iter().enumerate().filter(|(_, edge)| !edge.is_plain());
        let (at, excess) = marked.find_map(|(at, edge)| Some((at, edge_excess(edge)?)))?;
        Some((row(&graphs.edge_ptr, at), format!("has an edge with {excess}")))
    }
}

/// Raises the limit of each attribute to at least the attribute's value in `values`.
pub(in crate::graph) fn raise(limits: &mut Vec<u8>, values: &[u8]) {
    limits.resize(limits.len().max(values.len()), 0);
    for (limit, &value) in limits.iter_mut().zip(values) {
        *limit = value.max(*limit);
    }
}

/// Describes the first problem of a node or edge: its class exceeds the limit, or the value of an attribute
/// does. Returns `None` if no limit is exceeded.
fn describe_excess(weight: Weight, classes: usize, limits: &[u8]) -> Option<String> {
    if usize::from(weight.class) >= classes {
        return Some(format!("class {}, but the classes go from 0 to below {classes}", weight.class));
    }
    for (k, &value) in weight.attributes.set_values().iter().enumerate() {
        let limit = limits.get(k).copied().unwrap_or(0);
        if value > limit {
            return Some(format!("value {value} of attribute {k}, whose largest value is {limit}"));
        }
    }
    None
}

/// Returns the error for graphs that don't satisfy a schema, or that a network wasn't built for.
pub(crate) fn misfit(detail: String) -> Error {
    Error::contract(
        "graphs must stay within the limits of the schema of the network or file, and a network must be used \
         with the environment that it was built for (correct the schema, or build the network for this \
         environment)",
        detail,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Attributes;

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
    fn errors_name_the_exceeded_limit() {
        let graph = |node: Node, edge: Edge| {
            GraphState::from_parts(GraphKind::Directed, &[Node::default(), node], &[(0, 1, edge)]).unwrap()
        };
        let fits = graph(
            Node { class: 1, attributes: attributes(&[1]) },
            Edge { class: 1, attributes: attributes(&[2]) },
        );
        let two = [fits.clone(), GraphState::with_nodes(GraphKind::Directed, 9)];
        schema().check_graphs(&GraphArrays::from_graphs(&two)).unwrap();
        let cases = [
            (GraphState::new(GraphKind::Undirected), "is Undirected, but must be Directed"),
            (graph(Node::from_class(2), Edge::default()), "class 2, but the classes go from 0 to below 2"),
            (
                graph(Node { class: 0, attributes: attributes(&[2]) }, Edge::default()),
                "value 2 of attribute 0",
            ),
            (
                graph(Node { class: 0, attributes: attributes(&[0, 1]) }, Edge::default()),
                "value 1 of attribute 1",
            ),
            (graph(Node::default(), Edge::from_class(2)), "an edge with class 2"),
            (
                graph(Node::default(), Edge { class: 0, attributes: attributes(&[3]) }),
                "value 3 of attribute 0",
            ),
        ];
        for (graph, words) in cases {
            let message = schema()
                .check_graphs(&GraphArrays::from_graphs(&[fits.clone(), graph]))
                .unwrap_err()
                .to_string();
            assert!(message.contains("graph 1") && message.contains(words), "{message}");
        }
    }

    #[test]
    fn a_schema_covers_schemas_of_smaller_limits() {
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
