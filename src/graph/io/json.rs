//! Graphs as JSON, by serde's traits and as a file format.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::{MAX_EDGE_LIST_NODES, estimate_memory, is_in_proportion};
use crate::graph::{Attributes, GraphKind, GraphState, GraphStates, Weight};
use crate::{Error, Result};

const EXPECTED: &str = "a list of graphs such as `{\"directed\": false, \"nodes\": 3, \"edges\": [[0, 1]]}` \
    (the format is described at `GraphState`'s `Serialize`)";

/// A graph as it is written to JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonGraph {
    directed: bool,
    nodes: usize,
    edges: Vec<(u32, u32)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    node_classes: Vec<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edge_classes: Vec<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    node_attributes: Vec<Vec<u8>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edge_attributes: Vec<Vec<u8>>,
}

impl JsonGraph {
    fn from_graph(graph: &GraphState) -> Self {
        let edges: Vec<(u32, u32)> = graph.edges().collect();
        let nodes: Vec<Weight> = graph.nodes().collect();
        let weights: Vec<Weight> = edges.iter().map(|&(a, b)| graph.edge(a, b).unwrap_or_default()).collect();
        let (node_classes, node_attributes) = split_weights(&nodes);
        let (edge_classes, edge_attributes) = split_weights(&weights);
        Self {
            directed: graph.is_directed(),
            nodes: nodes.len(),
            edges,
            node_classes,
            edge_classes,
            node_attributes,
            edge_attributes,
        }
    }

    /// Builds the graph. Returns the problem as text if there is no such graph.
    fn build(self) -> std::result::Result<GraphState, String> {
        let n = self.nodes;
        if n > MAX_EDGE_LIST_NODES {
            return Err(format!("a graph has {n} nodes, but at most {MAX_EDGE_LIST_NODES} are allowed"));
        }
        let nodes = join_weights("node", n, &self.node_classes, &self.node_attributes)?;
        let edges = join_weights("edge", self.edges.len(), &self.edge_classes, &self.edge_attributes)?;
        let kind = if self.directed { GraphKind::Directed } else { GraphKind::Undirected };
        let edges: Vec<_> = self.edges.iter().zip(edges).map(|(&(a, b), edge)| (a, b, edge)).collect();
        GraphState::from_parts(kind, &nodes, &edges).map_err(|error| error.to_string())
    }
}

/// Returns the classes, or an empty list if all are 0, and the attributes, or an empty list if none is set.
fn split_weights(weights: &[Weight]) -> (Vec<u16>, Vec<Vec<u8>>) {
    let mut classes: Vec<u16> = weights.iter().map(|weight| weight.class).collect();
    let mut attributes: Vec<Vec<u8>> =
        weights.iter().map(|weight| weight.attributes.set_values().to_vec()).collect();
    if classes.iter().all(|&class| class == 0) {
        classes.clear();
    }
    if attributes.iter().all(Vec::is_empty) {
        attributes.clear();
    }
    (classes, attributes)
}

/// Returns the classes and attributes of `n` nodes or edges. An empty list stands for classes of 0, or for
/// attributes that aren't set.
fn join_weights(
    what: &str,
    n: usize,
    classes: &[u16],
    attributes: &[Vec<u8>],
) -> std::result::Result<Vec<Weight>, String> {
    for (name, len) in [("classes", classes.len()), ("attributes", attributes.len())] {
        if len != 0 && len != n {
            return Err(format!(
                "`{what}_{name}` has {len} entries for {n} {what}s: expected one entry per {what}, or no list"
            ));
        }
    }
    let mut weights = vec![Weight::default(); n];
    for (weight, &class) in weights.iter_mut().zip(classes) {
        weight.class = class;
    }
    for (weight, values) in weights.iter_mut().zip(attributes) {
        weight.attributes = Attributes::new(values).map_err(|error| error.to_string())?;
    }
    Ok(weights)
}

/// Writes a graph as `directed`, the number of `nodes`, and a list of `edges` `[a, b]` in ascending order.
/// Nodes are numbered from 0, and each undirected edge occurs once, with `a < b`. The lists `node_classes`
/// and `edge_classes` (in the order of `edges`) are left out if all classes are 0, and the lists
/// `node_attributes` and `edge_attributes` if no attribute is set; the last attributes that aren't set are
/// left out, too. The [instance](GraphState::instance) isn't written, and becomes 0.
///
/// A graph of more than [`MAX_EDGE_LIST_NODES`] nodes is an error. Reading accepts edges in any order, and
/// returns an error for an unknown key, a node that doesn't exist, an edge that occurs twice, a self-loop,
/// and lists of the wrong length.
///
/// ```
/// use gfn::graph::{Edge, GraphKind, GraphState, Node};
/// let nodes = [0, 2, 0].map(Node::from_class);
/// let graph = GraphState::from_parts(GraphKind::Undirected, &nodes, &[(2, 1, Edge::default())])?;
/// let text = serde_json::to_string(&graph)?;
/// assert_eq!(text, r#"{"directed":false,"nodes":3,"edges":[[1,2]],"node_classes":[0,2,0]}"#);
/// assert_eq!(serde_json::from_str::<GraphState>(&text)?, graph);
/// assert!(serde_json::from_str::<GraphState>(r#"{"directed":true,"nodes":2,"edges":[[0,2]]}"#).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Serialize for GraphState {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if self.n_nodes() > MAX_EDGE_LIST_NODES {
            let n = self.n_nodes();
            return Err(ser::Error::custom(format!(
                "a graph of JSON has at most {MAX_EDGE_LIST_NODES} nodes, but this graph has {n}: write it \
                 as graph6"
            )));
        }
        JsonGraph::from_graph(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for GraphState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        JsonGraph::deserialize(deserializer)?.build().map_err(de::Error::custom)
    }
}

/// Writes a list of graphs, each as [`GraphState`] is written. Reading also returns an error if the graphs
/// have far more nodes together than their text is long.
impl Serialize for GraphStates {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(self.graphs())
    }
}

impl<'de> Deserialize<'de> for GraphStates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let graphs = Vec::<JsonGraph>::deserialize(deserializer)?;
        // A graph takes at least 24 bytes of text, and an edge 5.
        let length = graphs.iter().map(|graph| 24 + 5 * graph.edges.len()).sum();
        let sizes = graphs.iter().map(|graph| graph.nodes.min(MAX_EDGE_LIST_NODES));
        if !is_in_proportion(sizes.map(estimate_memory).sum(), length) {
            return Err(de::Error::custom(
                "the graphs have more nodes together than a text of this length can describe",
            ));
        }
        let mut states = Vec::with_capacity(graphs.len());
        for (row, graph) in graphs.into_iter().enumerate() {
            let graph =
                graph.build().map_err(|problem| de::Error::custom(format!("graph {row}: {problem}")))?;
            states.push(graph);
        }
        Ok(states.into())
    }
}

/// Writes graphs as a JSON list, with a line per graph.
pub(super) fn write(graphs: &[GraphState]) -> Result<String> {
    let refuse = |error| Error::contract("graphs can be written as JSON", error);
    let memory = graphs.iter().map(|graph| estimate_memory(graph.n_nodes())).sum();
    if !is_in_proportion(memory, graphs.iter().map(|graph| 24 + 5 * graph.n_edges()).sum()) {
        return Err(refuse(format!(
            "{} large graphs with hardly any edges: write several files",
            graphs.len()
        )));
    }
    let mut lines = Vec::with_capacity(graphs.len());
    for graph in graphs {
        lines.push(serde_json::to_string(graph).map_err(|error| refuse(error.to_string()))?);
    }
    Ok(format!("[\n{}\n]\n", lines.join(",\n")))
}

/// Reads a JSON list of graphs.
pub(super) fn read(text: &[u8]) -> Result<Vec<GraphState>> {
    let states: GraphStates =
        serde_json::from_slice(text).map_err(|error| Error::parse(error.line().max(1), error, EXPECTED))?;
    Ok(states.into_graphs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_that_do_not_exist_are_refused_with_the_problem() {
        let cases = [
            (r#"[{"directed":false,"nodes":2,"edges":[[0,2]]}]"#, "edge (0, 2) in a graph of 2 nodes"),
            (r#"[{"directed":false,"nodes":2,"edges":[[1,1]]}]"#, "edge (1, 1)"),
            (r#"[{"directed":false,"nodes":2,"edges":[[0,1],[1,0]]}]"#, "graph 0: "),
            (
                r#"[{"directed":false,"nodes":2,"edges":[],"node_classes":[1]}]"#,
                "`node_classes` has 1 entries",
            ),
            (
                r#"[{"directed":false,"nodes":2,"edges":[[0,1]],"edge_attributes":[[1],[2]]}]"#,
                "2 entries for 1",
            ),
            (
                r#"[{"directed":false,"nodes":1,"edges":[],"node_attributes":[[1,2,3,4,5,6,7,8]]}]"#,
                "at most 7",
            ),
            (r#"[{"directed":false,"nodes":1,"edges":[],"node_classes":[65536]}]"#, "65536"),
            (r#"[{"directed":false,"nodes":16385,"edges":[]}]"#, "16385 nodes"),
            (r#"[{"directed":false,"nodes":-1,"edges":[]}]"#, "-1"),
            (r#"[{"directed":false,"nodes":1,"edges":[],"colour":1}]"#, "colour"),
            (r#"[{"nodes":1,"edges":[]}]"#, "directed"),
            (r#"{"directed":false,"nodes":1,"edges":[]}"#, "invalid type"),
            ("", "EOF"),
        ];
        for (text, part) in cases {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(matches!(error, Error::Parse { line: 1.., .. }), "{error}");
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
        // In a directed graph the two directions are different edges.
        let both = read(br#"[{"directed":true,"nodes":2,"edges":[[1,0],[0,1]]}]"#).unwrap();
        assert_eq!(both[0].n_edges(), 2);
    }

    #[test]
    fn short_texts_of_large_graphs_are_refused_before_memory_is_taken() {
        let graph = r#"{"directed":false,"nodes":16384,"edges":[]}"#;
        let list = |n: usize| format!("[{}]", vec![graph; n].join(","));
        assert_eq!(read(list(1).as_bytes()).unwrap()[0].n_nodes(), 16_384);
        let error = read(list(1_000).as_bytes()).unwrap_err().to_string();
        assert!(error.contains("more nodes together"), "{error}");
        assert!(matches!(write(&vec![GraphState::undirected(16_384); 1_000]), Err(Error::Contract { .. })));
        assert!(matches!(write(&[GraphState::undirected(16_385)]), Err(Error::Contract { .. })));
    }
}
