use gfn::graph::{GraphKind, GraphState, Semantics};
use gfn::{Error, Result};

/// The rule by which nodes are added to a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Growth {
    /// A new node has no edges; later actions add edges. Every graph within the limits is a state.
    #[default]
    Free,
    /// A new node comes with an edge to an existing node; in directed graphs, the edge starts at the existing
    /// node. Every node stays reachable from the initial graph, or from the first node if the initial graph
    /// is empty: an undirected path, or a directed path that starts there, leads to each node.
    Attached,
}

/// Settings of a [`GraphBuilding`](super::GraphBuilding): the limits of its graphs, and the rules by which
/// they grow.
///
/// ```
/// use gfn::graph::GraphKind;
/// use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig, Growth};
/// let config = GraphBuildingConfig {
///     max_edges: Some(8),
///     node_classes: 3,
///     growth: Growth::Attached,
///     ..GraphBuildingConfig::new(GraphKind::Undirected, 6)
/// };
/// let graphs = GraphBuilding::new(config)?;
/// let nothing = GraphBuildingConfig::new(GraphKind::Undirected, 0);
/// assert!(GraphBuilding::new(nothing).unwrap_err().to_string().starts_with("max_nodes is 0"));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct GraphBuildingConfig {
    /// The choice between directed and undirected graphs.
    pub kind: GraphKind,
    /// The largest number of nodes of a graph. The nodes of the initial graph count, too.
    pub max_nodes: usize,
    /// The largest number of edges of a graph; `None` means no limit. The edges of the initial graph count,
    /// too.
    pub max_edges: Option<usize>,
    /// The number of node classes. An action that adds a node chooses one of them.
    pub node_classes: u16,
    /// The number of edge classes. An action that adds an edge chooses one of them.
    pub edge_classes: u16,
    /// The number of values of each node attribute. An action sets attribute `k` of a node, once, to a value
    /// in `1..=node_attributes[k]`.
    pub node_attributes: Vec<u8>,
    /// The number of values of each edge attribute. An action sets attribute `k` of an edge, once, to a value
    /// in `1..=edge_attributes[k]`.
    pub edge_attributes: Vec<u8>,
    /// The rule by which nodes are added to a graph.
    pub growth: Growth,
    /// The rule that decides if two graphs are the same object: either equal graphs with the same labels of
    /// nodes, or isomorphic graphs.
    pub semantics: Semantics,
    /// The graph that every trajectory starts from; `None` means the empty graph. The nodes and edges of this
    /// graph are never removed.
    pub initial: Option<GraphState>,
    /// The smallest number of nodes of a finished graph.
    pub min_nodes: usize,
    /// `true` if training corrects for symmetry. This setting matters only if isomorphic graphs are the same
    /// object.
    pub corrects_symmetry: bool,
}

impl GraphBuildingConfig {
    /// Returns settings with `Growth::Free` from the empty graph. Isomorphic graphs are the same object.
    /// There is one class of nodes, one class of edges and no attribute, and every graph can be finished.
    #[must_use]
    pub fn new(kind: GraphKind, max_nodes: usize) -> Self {
        Self {
            kind,
            max_nodes,
            max_edges: None,
            node_classes: 1,
            edge_classes: 1,
            node_attributes: Vec::new(),
            edge_attributes: Vec::new(),
            growth: Growth::Free,
            semantics: Semantics::UpToIsomorphism,
            initial: None,
            min_nodes: 0,
            corrects_symmetry: true,
        }
    }

    /// Returns the graph that trajectories start from.
    pub(super) fn start(&self) -> GraphState {
        self.initial.clone().unwrap_or_else(|| GraphState::new(self.kind))
    }

    /// Refuses the first invalid setting. An attribute with an invalid number of values is refused later,
    /// when the action types are built.
    pub(super) fn check(&self) -> Result<()> {
        let start = self.start();
        let refuse = |setting, got: String, expected| Err(Error::config(setting, got, expected));
        if self.max_nodes == 0 || start.n_nodes() > self.max_nodes {
            let got = format!("{} with an initial graph of {} nodes", self.max_nodes, start.n_nodes());
            return refuse(
                "max_nodes",
                got,
                "at least 1, and at least the number of nodes of the initial graph",
            );
        }
        if self.max_edges.is_some_and(|limit| start.n_edges() > limit) {
            let got = format!("{:?} with an initial graph of {} edges", self.max_edges, start.n_edges());
            return refuse("max_edges", got, "no fewer than the initial graph has");
        }
        if self.node_classes == 0 {
            return refuse("node_classes", "0".into(), "at least one class");
        }
        if self.edge_classes == 0 {
            return refuse("edge_classes", "0".into(), "at least one class");
        }
        if start.kind() != self.kind {
            let got = format!("{:?} in a {:?} environment", start.kind(), self.kind);
            return refuse("the initial graph's kind", got, "the kind of the environment");
        }
        if self.min_nodes > self.max_nodes {
            let got = format!("{}, although max_nodes is {}", self.min_nodes, self.max_nodes);
            return refuse("min_nodes", got, "at most max_nodes");
        }
        if self.growth == Growth::Attached
            && self.max_edges.is_some()
            && self.min_nodes > start.n_nodes().max(1)
        {
            let got = format!("{} with growth by attachment and with max_edges", self.min_nodes);
            let expected = "at most 1 or the number of nodes of the initial graph, because max_edges could \
                be reached before min_nodes";
            return refuse("min_nodes", got, expected);
        }
        self.check_weights(&start)
    }

    /// Checks that the initial graph's classes and attributes are among the values that actions can set,
    /// because networks have embeddings for these values only.
    fn check_weights(&self, start: &GraphState) -> Result<()> {
        let within = |values: &[u8], limits: &[u8]| {
            values.iter().enumerate().all(|(k, &value)| value <= limits.get(k).copied().unwrap_or(0))
        };
        let refuse = |what: String| {
            Err(Error::config(
                "the initial graph",
                what,
                "a graph with classes below node_classes and edge_classes, and with attribute values within \
                 their limits",
            ))
        };
        for (a, node) in start.nodes().enumerate() {
            if node.class >= self.node_classes || !within(node.attributes.values(), &self.node_attributes) {
                return refuse(format!(
                    "a graph whose node {a} has class {} and {:?}",
                    node.class, node.attributes
                ));
            }
        }
        for (a, b) in start.edges() {
            let edge = start.edge(a, b).unwrap_or_default();
            if edge.class >= self.edge_classes || !within(edge.attributes.values(), &self.edge_attributes) {
                return refuse(format!(
                    "a graph whose edge ({a}, {b}) has class {} and {:?}",
                    edge.class, edge.attributes
                ));
            }
        }
        Ok(())
    }
}
