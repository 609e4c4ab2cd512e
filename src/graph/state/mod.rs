//! The graph state: a petgraph graph whose methods keep node labels and the cached adjacency consistent.

mod adjacency;
mod batch;
mod describe;
mod equality;
mod topology;
mod weights;

pub use adjacency::Adjacency;
pub(in crate::graph) use adjacency::MAX_NODES_OF_BIT_ROWS;
pub use batch::GraphStates;
pub(in crate::graph) use batch::MIN_GRAPHS_PER_THREAD;
pub(in crate::graph) use equality::mix;
pub use weights::{Attributes, Edge, GraphKind, MAX_ATTRIBUTES, Node, Weight};

use std::sync::Arc;

use petgraph::graph::{DiGraph, UnGraph};
use smallvec::SmallVec;

use crate::{Error, Result};
use equality::digest_of_node;
use topology::{Storage, Topology};

/// A graph under construction. The state has a petgraph graph with a class and attributes for every edge, the
/// [`Adjacency`] of that graph, and a class and attributes for every node.
///
/// Clones share the memory of their edges until one of them changes an edge or the number of nodes.
///
/// Nodes are labelled `0..n` in the order in which they were added. Removing a node shifts the labels of
/// later nodes down by one. There are no self-loops and no parallel edges. Edges are ordered by their
/// endpoints, independently of the order in which they were added. Two states are equal if they are the same
/// *labelled* graph.
///
/// ```
/// use gfn::graph::{Edge, GraphKind, GraphState, Node};
/// let mut graph = GraphState::new(GraphKind::Undirected);
/// graph.add_node(Node::from_class(1));
/// graph.add_node(Node::from_class(0));
/// graph.add_edge(1, 0, Edge::default())?;
/// assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 1)]);
/// assert_eq!(petgraph::algo::connected_components(graph.as_undirected().unwrap()), 1);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphState {
    /// The wrapping sum of the digests (hashes) of all nodes.
    digest: u64,
    instance: u32,
    nodes: SmallVec<[Node; 8]>,
    topology: Arc<Topology>,
}

impl GraphState {
    /// Creates an empty graph.
    #[must_use]
    pub fn new(kind: GraphKind) -> Self {
        Self::with_nodes(kind, 0)
    }

    /// Creates an undirected graph of `n` nodes of class 0, without edges.
    #[must_use]
    pub fn undirected(n: usize) -> Self {
        Self::with_nodes(GraphKind::Undirected, n)
    }

    /// Creates a directed graph of `n` nodes of class 0, without edges.
    #[must_use]
    pub fn directed(n: usize) -> Self {
        Self::with_nodes(GraphKind::Directed, n)
    }

    /// Creates a graph of `n` nodes of class 0, without edges.
    #[must_use]
    pub fn with_nodes(kind: GraphKind, n: usize) -> Self {
        Self::from_nodes(kind, std::iter::repeat_n(Node::default(), n))
    }

    /// Creates a graph of these nodes, each given by its class and attributes, without edges.
    pub(in crate::graph) fn from_nodes(kind: GraphKind, nodes: impl Iterator<Item = Node>) -> Self {
        let nodes: SmallVec<_> = nodes.collect();
        let topology = Arc::new(Topology::new(kind, nodes.len()));
        let digest =
            (0..).zip(&nodes).fold(0, |sum: u64, (a, &node)| sum.wrapping_add(digest_of_node(a, node)));
        Self { nodes, digest, topology, instance: 0 }
    }

    /// Creates a graph from its nodes and its edges (from, to, class and attributes).
    ///
    /// # Errors
    /// Returns the errors of [`add_edge`](Self::add_edge).
    pub fn from_parts(kind: GraphKind, nodes: &[Node], edges: &[(u32, u32, Edge)]) -> Result<Self> {
        let mut out = Self::from_nodes(kind, nodes.iter().copied());
        for &(a, b, edge) in edges {
            out.add_edge(a, b, edge)?;
        }
        Ok(out)
    }

    /// Returns the graph as a state of instance `instance` of its environment
    /// ([`Env::initial`](crate::env::Env::initial)). States of different instances are never equal.
    #[must_use]
    pub fn with_instance(self, instance: u32) -> Self {
        Self { instance, ..self }
    }

    /// The number of the instance whose initial graph this state was built from. The default is 0.
    #[must_use]
    pub fn instance(&self) -> u32 {
        self.instance
    }

    /// The kind of the graph: directed or undirected.
    #[must_use]
    pub fn kind(&self) -> GraphKind {
        if self.is_directed() { GraphKind::Directed } else { GraphKind::Undirected }
    }

    /// `true` if edges have a direction.
    #[must_use]
    pub fn is_directed(&self) -> bool {
        self.topology.is_directed()
    }

    /// Returns the petgraph graph if it is directed, otherwise `None`. The petgraph graph doesn't store the
    /// classes and attributes of nodes: [`node`](Self::node) returns them.
    #[must_use]
    pub fn as_directed(&self) -> Option<&DiGraph<(), Edge>> {
        match &self.topology.storage {
            Storage::Directed(graph) => Some(graph),
            Storage::Undirected(_) => None,
        }
    }

    /// Returns the petgraph graph if it is undirected, otherwise `None`. The petgraph graph doesn't store the
    /// classes and attributes of nodes: [`node`](Self::node) returns them.
    #[must_use]
    pub fn as_undirected(&self) -> Option<&UnGraph<(), Edge>> {
        match &self.topology.storage {
            Storage::Undirected(graph) => Some(graph),
            Storage::Directed(_) => None,
        }
    }

    /// The number of nodes of the graph.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The number of edges of the graph; an undirected edge counts once.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.topology.stored_edges().len()
    }

    /// The adjacency: row `a` contains node `b` if there is an edge from `a` to `b` (undirected: between
    /// them).
    #[must_use]
    pub fn adjacency(&self) -> &Adjacency {
        &self.topology.adjacency
    }

    /// Returns `true` if both nodes exist and there is an edge from `a` to `b` (undirected: between them).
    #[must_use]
    pub fn has_edge(&self, a: u32, b: u32) -> bool {
        let a = a as usize;
        let b = b as usize;
        a.max(b) < self.n_nodes() && self.topology.adjacency.get(a, b)
    }

    /// Returns the class and the attributes of node `a`; `None` if there is no such node.
    #[must_use]
    pub fn node(&self, a: u32) -> Option<Node> {
        self.nodes.get(a as usize).copied()
    }

    /// Returns the class and the attributes of every node, in the order of their labels.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node> + '_ {
        self.nodes.iter().copied()
    }

    /// Returns the class and attributes of edge `(a, b)` (undirected: in any order); `None` if there is none.
    #[must_use]
    pub fn edge(&self, a: u32, b: u32) -> Option<Edge> {
        if self.topology.n_weighted_edges == 0 {
            return self.has_edge(a, b).then(Edge::default);
        }
        self.topology.edge(a, b)
    }

    /// `true` if at least one edge has a class other than 0, or an attribute that is set.
    #[must_use]
    pub fn has_edge_weights(&self) -> bool {
        self.topology.n_weighted_edges > 0
    }

    /// Returns the endpoints, the class and the attributes of every edge, in petgraph's order.
    pub(in crate::graph) fn stored_edges(
        &self,
    ) -> impl ExactSizeIterator<Item = (usize, usize, Edge)> + Clone + '_ {
        self.topology.stored_edges()
    }

    /// Returns the endpoints `(a, b)` of all edges in ascending order. Each undirected edge occurs once, with
    /// `a < b`.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let directed = self.is_directed();
        (0..self.n_nodes()).flat_map(move |a| {
            let targets = self.adjacency().neighbours(a);
            targets.filter(move |&b| directed || a < b).map(move |b| (a as u32, b as u32))
        })
    }

    /// Returns the index of edge `(a, b)` in [`edges`](Self::edges); the number is meaningless if there is no
    /// such edge. The edges of all nodes up to `a` are counted, so the cost grows with `a`.
    #[must_use]
    pub fn edge_rank(&self, a: u32, b: u32) -> usize {
        let directed = self.is_directed();
        let (a, b) = self.ordered(a, b);
        let a = a as usize;
        let b = b as usize;
        let first_column = |row: usize| if directed { 0 } else { row + 1 };
        let n = self.n_nodes();
        let end_column = |row: usize| if row == a { b } else { n };
        (0..n.min(a + 1))
            .map(|row| self.adjacency().count_between(row, first_column(row), end_column(row)))
            .sum()
    }

    /// The number of edges into node `a` (undirected: its degree).
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn in_degree(&self, a: u32) -> usize {
        let n = self.n_nodes();
        assert!((a as usize) < n, "there is no node {a}: the graph has {n} nodes");
        if !self.is_directed() {
            return self.out_degree(a);
        }
        (0..n).filter(|&i| self.adjacency().get(i, a as usize)).count()
    }

    /// The number of edges out of node `a` (undirected: its degree).
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn out_degree(&self, a: u32) -> usize {
        self.adjacency().count(a as usize)
    }

    /// The number of edges at node `a`, in both directions if the graph is directed.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn degree(&self, a: u32) -> usize {
        self.out_degree(a) + if self.is_directed() { self.in_degree(a) } else { 0 }
    }

    /// Adds a node after the existing ones and returns its label, which is the former number of nodes.
    pub fn add_node(&mut self, node: Node) -> u32 {
        Arc::make_mut(&mut self.topology).add_node();
        let label = self.nodes.len() as u32;
        self.digest = self.digest.wrapping_add(digest_of_node(label, node));
        self.nodes.push(node);
        label
    }

    /// Removes node `a` with its edges and returns its class and attributes. Later labels shift down by one.
    ///
    /// Removing the last node changes the graph in place. Removing another node builds the whole graph anew.
    ///
    /// # Errors
    /// [`Error::Contract`] if there is no such node.
    pub fn remove_node(&mut self, a: u32) -> Result<Node> {
        let Some(weight) = self.node(a) else {
            return Err(no_such("node", &format!("{a} of {}", self.n_nodes())));
        };
        if a as usize + 1 == self.n_nodes() {
            for (from, to) in (0..a).map(|b| (a, b)).chain((0..a).map(|b| (b, a))) {
                if self.has_edge(from, to) {
                    self.remove_edge(from, to)?;
                }
            }
            Arc::make_mut(&mut self.topology).pop_node();
            self.nodes.pop();
            self.digest = self.digest.wrapping_sub(digest_of_node(a, weight));
            return Ok(weight);
        }
        // Removing the node from the petgraph graph would move the last node into the gap, which would change
        // the order of the labels. Therefore the graph is built anew.
        let remaining: Vec<u32> = (0..self.n_nodes() as u32).filter(|&b| b != a).collect();
        *self = self.induced(&remaining);
        Ok(weight)
    }

    /// Returns the subgraph on these nodes, in this order: node `k` of the result is node `nodes[k]`.
    ///
    /// A permutation of all nodes relabels the graph. A label that doesn't exist results in a node of class 0
    /// without edges. If a label occurs several times, only its last occurrence keeps the edges.
    #[must_use]
    pub fn induced(&self, nodes: &[u32]) -> Self {
        let weights = nodes.iter().map(|&a| self.node(a).unwrap_or_default());
        let mut out = Self::from_nodes(self.kind(), weights).with_instance(self.instance);
        let mut names = vec![None; self.n_nodes()];
        for (name, &a) in (0..).zip(nodes) {
            if let Some(place) = names.get_mut(a as usize) {
                *place = Some(name);
            }
        }
        let mut neighbours: SmallVec<[(u32, u32); 16]> = SmallVec::new();
        for (i, &a) in (0..).zip(nodes).filter(|&(i, &a)| names.get(a as usize) == Some(&Some(i))) {
            neighbours.clear();
            neighbours
                .extend(self.adjacency().neighbours(a as usize).filter_map(|b| Some((names[b]?, b as u32))));
            neighbours.sort_unstable();
            for &(j, b) in neighbours.iter().filter(|&&(j, _)| self.is_directed() || i < j) {
                out.insert_edge(i, j, self.edge(a, b).unwrap_or_default());
            }
        }
        out
    }

    /// Adds an edge from `a` to `b` (undirected: between them).
    ///
    /// # Errors
    /// [`Error::Contract`] for a self-loop, an edge that exists already, or a node that doesn't exist.
    pub fn add_edge(&mut self, a: u32, b: u32, edge: Edge) -> Result<()> {
        let n = self.n_nodes();
        if a == b || a.max(b) as usize >= n || self.has_edge(a, b) {
            return Err(Error::contract(
                "an edge joins two different nodes of the graph that no edge joins yet",
                format!("edge ({a}, {b}) in a graph of {n} nodes"),
            ));
        }
        self.insert_edge(a, b, edge);
        Ok(())
    }

    /// Adds an edge without checks. The nodes must exist and differ, and the edge must not exist yet.
    pub(crate) fn insert_edge(&mut self, a: u32, b: u32, edge: Edge) {
        debug_assert!(a != b && !self.has_edge(a, b), "edge ({a}, {b}) can't be added");
        self.replace_edge(a, b, Some(edge));
    }

    /// Sets or adds an edge, or removes it if `edge` is `None`. Returns its former class and attributes.
    fn replace_edge(&mut self, a: u32, b: u32, edge: Option<Edge>) -> Option<Edge> {
        let (a, b) = self.ordered(a, b);
        Arc::make_mut(&mut self.topology).replace_edge(a, b, edge)
    }

    /// Removes an edge and returns its class and attributes.
    ///
    /// # Errors
    /// [`Error::Contract`] if there is no such edge.
    pub fn remove_edge(&mut self, a: u32, b: u32) -> Result<Edge> {
        self.change_edge(a, b, None)
    }

    /// Replaces an existing edge, or removes it if `edge` is `None`. Returns its former class and attributes.
    fn change_edge(&mut self, a: u32, b: u32, edge: Option<Edge>) -> Result<Edge> {
        // The edge is looked up first, because `replace_edge` copies shared edges even if there is nothing to
        // change.
        let old = if self.has_edge(a, b) { self.replace_edge(a, b, edge) } else { None };
        old.ok_or_else(|| no_such("edge", &format!("({a}, {b})")))
    }

    /// Replaces the class and the attributes of a node.
    ///
    /// # Errors
    /// [`Error::Contract`] if there is no such node.
    pub fn set_node(&mut self, a: u32, node: Node) -> Result<()> {
        let weight = self.nodes.get_mut(a as usize).ok_or_else(|| no_such("node", &a.to_string()))?;
        let old = std::mem::replace(weight, node);
        self.digest = self.digest.wrapping_add(digest_of_node(a, node)).wrapping_sub(digest_of_node(a, old));
        Ok(())
    }

    /// Replaces the class and the attributes of an edge.
    ///
    /// # Errors
    /// [`Error::Contract`] if there is no such edge.
    pub fn set_edge(&mut self, a: u32, b: u32, edge: Edge) -> Result<()> {
        self.change_edge(a, b, Some(edge)).map(drop)
    }

    /// Returns the endpoints of an edge; if the graph is undirected, the smaller one is first.
    fn ordered(&self, a: u32, b: u32) -> (u32, u32) {
        if self.is_directed() || a < b { (a, b) } else { (b, a) }
    }
}

fn no_such(what: &'static str, which: &str) -> Error {
    Error::contract("an edit names a node or an edge of the graph", format!("there is no {what} {which}"))
}
