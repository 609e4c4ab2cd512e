//! Lists of input graphs of graph problems.

use std::collections::HashSet;
use std::path::Path;

use gfn::graph::{
    CanonicalKey, Edge, GraphFormat, GraphKind, GraphState, NamedGraph, Node, canonical_keys, read_graphs,
};
use gfn::{Error, Result};

/// The largest number of nodes for which all graphs can be listed. There are 12,346 graphs of 8 nodes.
const MAX_NODES_LISTED: usize = 8;

/// Input graphs, the instances of a [`GraphProblem`](super::GraphProblem): undirected, without classes and
/// attributes.
///
/// A policy that sees no labels can't distinguish isomorphic graphs. Therefore [`distinct`](Self::distinct)
/// drops graphs that are isomorphic to earlier graphs. [`without`](Self::without) drops graphs that are
/// isomorphic to those of another list, such as a list of test graphs.
///
/// ```
/// use gfn::Rng;
/// use gfn_gym::graph_problems::{Instances, erdos_renyi};
/// let all = Instances::all(6)?;
/// assert_eq!(all.graphs().len(), 156);
/// let mut rng = Rng::seeded(0);
/// let drawn = (0..50).map(|_| erdos_renyi(6, 0.5, &mut rng)).collect::<gfn::Result<_>>()?;
/// // Each of them is isomorphic to one of all.
/// assert!(Instances::new(drawn)?.without(&all).graphs().is_empty());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Instances {
    graphs: Vec<GraphState>,
}

impl Instances {
    /// Builds a list of these graphs, in this order.
    ///
    /// # Errors
    /// [`Error::Contract`] for a graph that is directed, or has classes or attributes, because the problems
    /// of this module don't use them.
    pub fn new(graphs: Vec<GraphState>) -> Result<Self> {
        for (k, graph) in graphs.iter().enumerate() {
            let wrong = match () {
                () if graph.is_directed() => "directed",
                () if graph.nodes().any(|node| node != Node::default()) => {
                    "a graph with classes or attributes of nodes"
                }
                () if graph.has_edge_weights() => "a graph with classes or attributes of edges",
                () => continue,
            };
            return Err(Error::contract(
                "input graphs are undirected, without classes and attributes (write them as graph6, which \
                 has none)",
                format!("graph {k} is {wrong}"),
            ));
        }
        Ok(Self { graphs })
    }

    /// Reads the graphs of a file by [`read_graphs`], which recognises graph6, edge lists, DIMACS, METIS and
    /// other formats by their content.
    ///
    /// # Errors
    /// The errors of [`read_graphs`] and [`new`](Self::new).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(read_graphs(path)?)
    }

    /// Reads a file that holds a single graph, with the names of its nodes, by [`NamedGraph::from_edges`]. In
    /// graph6 and in this library's edge lists, the name of a node is its number.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read) and [`NamedGraph::from_edges`]; [`Error::File`] unless the file
    /// holds exactly one graph.
    pub fn read_named(path: impl AsRef<Path>) -> Result<NamedGraph> {
        let path = path.as_ref();
        let text = std::fs::read(path).map_err(|source| Error::io(path, source))?;
        let is_graph6 =
            GraphFormat::from_path(path) == GraphFormat::Graph6 || GraphFormat::Graph6.read(&text).is_ok();
        // Edge lists in this library's format are recognised by the first word of one of their lines.
        let is_ours = text.split(|&byte| byte == b'\n').any(|line| {
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii_start();
            [&b"graph directed"[..], b"graph undirected"].iter().any(|head| line.starts_with(head))
        });
        if !is_graph6 && !is_ours {
            return NamedGraph::from_edges(&text);
        }
        let [graph] = &Self::read(path)?.graphs[..] else {
            return Err(Error::file(
                path,
                "the file doesn't hold exactly one graph",
                "give a file with exactly one graph",
            ));
        };
        let names = (0..graph.n_nodes()).map(|a| a.to_string()).collect();
        Ok(NamedGraph { graph: graph.clone(), names, has_weights: false })
    }

    /// Lists one graph of each isomorphism class of graphs of `n` nodes. For 0 to 8 nodes there are 1, 1, 2,
    /// 4, 11, 34, 156, 1,044 and 12,346 graphs (OEIS A000088).
    ///
    /// # Errors
    /// [`Error::Config`] for more than 8 nodes.
    pub fn all(n: usize) -> Result<Self> {
        if n > MAX_NODES_LISTED {
            return Err(Error::config("nodes of listed graphs", n, "at most 8 (12,346 graphs)"));
        }
        let mut graphs = vec![GraphState::with_nodes(GraphKind::Undirected, 0)];
        // Every graph arises from a graph with one node fewer by adding its last node.
        for last in 0..n as u32 {
            let mut grown = Vec::with_capacity(graphs.len() << last);
            for graph in &graphs {
                for near in 0..1u32 << last {
                    let mut graph = graph.clone();
                    graph.add_node(Node::default());
                    for a in (0..last).filter(|a| near >> a & 1 == 1) {
                        graph.add_edge(a, last, Edge::default())?;
                    }
                    grown.push(graph);
                }
            }
            graphs = Self { graphs: grown }.distinct().graphs;
        }
        Ok(Self { graphs })
    }

    /// Returns the graphs of the list.
    #[must_use]
    pub fn graphs(&self) -> &[GraphState] {
        &self.graphs
    }

    /// Returns the graphs of both lists: first those of this list, then those of the other.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.graphs.extend(other.graphs);
        self
    }

    /// Drops graphs that are isomorphic to an earlier graph of the list.
    #[must_use]
    pub fn distinct(self) -> Self {
        let mut known = HashSet::new();
        self.retain(|key| known.insert(key))
    }

    /// Drops graphs that are isomorphic to a graph of the other list.
    #[must_use]
    pub fn without(self, other: &Self) -> Self {
        let known: HashSet<CanonicalKey> = canonical_keys(&other.graphs).into_iter().collect();
        self.retain(|key| !known.contains(&key))
    }

    /// Returns the complement of each graph, in the same order. The complement has an edge between two nodes
    /// if and only if the graph has no edge between them.
    ///
    /// A clique of a graph is an independent set of its complement.
    ///
    /// ```
    /// use gfn::graph::GraphFormat;
    /// use gfn_gym::graph_problems::{Instances, Problem};
    /// let path = Instances::new(GraphFormat::EdgeList.read(b"graph undirected 3\nedge 0 1\nedge 1 2")?)?;
    /// let complements = path.complements()?;
    /// assert_eq!(complements.graphs()[0].edges().collect::<Vec<_>>(), [(0, 2)]);
    /// assert_eq!(Problem::IndependentSet.check(&complements.graphs()[0], &[0, 1])?, 2);
    /// assert_eq!(Problem::Clique.check(&path.graphs()[0], &[0, 1])?, 2);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`GraphState::add_edge`]. These errors don't occur for the graphs of a list.
    pub fn complements(&self) -> Result<Self> {
        let complement = |graph: &GraphState| {
            let n = graph.n_nodes() as u32;
            let mut other = GraphState::with_nodes(GraphKind::Undirected, graph.n_nodes());
            for (a, b) in
                (0..n).flat_map(|b| (0..b).map(move |a| (a, b))).filter(|&(a, b)| !graph.has_edge(a, b))
            {
                other.add_edge(a, b, Edge::default())?;
            }
            Ok(other)
        };
        Ok(Self { graphs: self.graphs.iter().map(complement).collect::<Result<_>>()? })
    }

    fn retain(mut self, mut keep: impl FnMut(CanonicalKey) -> bool) -> Self {
        let mut keys = canonical_keys(&self.graphs).into_iter();
        self.graphs.retain(|_| keys.next().is_some_and(&mut keep));
        self
    }
}
