//! The edges of a graph. States that differ only in the classes and attributes of their nodes share the
//! edges.

use petgraph::EdgeType;
use petgraph::graph::{DiGraph, Graph, NodeIndex, UnGraph};

use super::equality::digest;
use super::{Adjacency, Edge, GraphKind};

/// The edges of a graph, stored as a petgraph graph.
#[derive(Debug)]
pub(super) enum Storage {
    Directed(DiGraph<(), Edge>),
    Undirected(UnGraph<(), Edge>),
}

impl Clone for Storage {
    /// Clones the edges with memory for one more edge. A topology is usually cloned to add an edge, so
    /// without that memory each step of a roll-out would allocate twice.
    fn clone(&self) -> Self {
        match self {
            Self::Directed(graph) => Self::Directed(with_room(graph)),
            Self::Undirected(graph) => Self::Undirected(with_room(graph)),
        }
    }
}

fn with_room<Ty: EdgeType>(graph: &Graph<(), Edge, Ty>) -> Graph<(), Edge, Ty> {
    let mut copy = Graph::with_capacity(graph.node_count(), graph.edge_count() + 1);
    copy.clone_from(graph);
    copy
}

/// Evaluates an expression for the petgraph graph, whether directed or undirected. The expression refers to
/// the graph by the name `$graph`.
macro_rules! with_graph {
    ($storage:expr, $graph:ident => $body:expr) => {
        match $storage {
            Storage::Directed($graph) => $body,
            Storage::Undirected($graph) => $body,
        }
    };
}

/// The nodes of a graph without their classes and attributes, the edges between them, and their adjacency.
#[derive(Clone, Debug)]
pub(super) struct Topology {
    pub(super) storage: Storage,
    pub(super) adjacency: Adjacency,
    /// The number of edges with a class other than 0 or an attribute. If this number is 0, comparisons and
    /// lookups skip the classes and attributes of edges.
    pub(super) n_weighted_edges: u32,
    /// The wrapping sum of the digests (hashes) of all edges.
    pub(super) digest: u64,
}

impl Topology {
    pub(super) fn new(kind: GraphKind, n: usize) -> Self {
        let mut storage = match kind {
            GraphKind::Directed => Storage::Directed(DiGraph::with_capacity(n, 0)),
            GraphKind::Undirected => Storage::Undirected(UnGraph::with_capacity(n, 0)),
        };
        for _ in 0..n {
            with_graph!(&mut storage, graph => graph.add_node(()));
        }
        Self { storage, adjacency: Adjacency::new(n), n_weighted_edges: 0, digest: 0 }
    }

    pub(super) fn is_directed(&self) -> bool {
        matches!(self.storage, Storage::Directed(_))
    }

    /// Returns the endpoints, the class and the attributes of every edge, in petgraph's order.
    pub(super) fn stored_edges(&self) -> impl ExactSizeIterator<Item = (usize, usize, Edge)> + Clone + '_ {
        let edges = with_graph!(&self.storage, graph => graph.raw_edges());
        edges.iter().map(|edge| (edge.source().index(), edge.target().index(), edge.weight))
    }

    pub(super) fn edge(&self, a: u32, b: u32) -> Option<Edge> {
        let a = NodeIndex::from(a);
        let b = NodeIndex::from(b);
        with_graph!(&self.storage, graph => graph.find_edge(a, b).and_then(|e| graph.edge_weight(e)).copied())
    }

    pub(super) fn add_node(&mut self) {
        self.adjacency.resize(self.adjacency.len() + 1);
        with_graph!(&mut self.storage, graph => graph.add_node(()));
    }

    /// Removes the last node, which must have no edge.
    pub(super) fn pop_node(&mut self) {
        let last = self.adjacency.len() - 1;
        with_graph!(&mut self.storage, graph => graph.remove_node(NodeIndex::new(last)));
        self.adjacency.resize(last);
    }

    /// Sets or adds an edge, or removes it if `edge` is `None`, and returns its former class and attributes.
    /// `a` must be the smaller node of an undirected edge.
    pub(super) fn replace_edge(&mut self, a: u32, b: u32, edge: Option<Edge>) -> Option<Edge> {
        let i = NodeIndex::from(a);
        let j = NodeIndex::from(b);
        let is_there = self.adjacency.get(a as usize, b as usize);
        let old = with_graph!(&mut self.storage, graph => match (is_there.then(|| graph.find_edge(i,
            j)).flatten(), edge) {
            (Some(at), Some(edge)) => graph.edge_weight_mut(at).map(|weight| std::mem::replace(weight, edge)),
            (Some(at), None) => graph.remove_edge(at),
            (None, Some(edge)) => {
                graph.add_edge(i, j, edge);
                None
            }
            (None, None) => None,
        });
        let place = u64::from(a) << 32 | u64::from(b);
        if let Some(edge) = edge {
            self.digest = self.digest.wrapping_add(digest(place, edge));
            self.n_weighted_edges += u32::from(!edge.is_plain());
        }
        if let Some(old) = old {
            self.digest = self.digest.wrapping_sub(digest(place, old));
            self.n_weighted_edges -= u32::from(!old.is_plain());
        }
        if old.is_some() != edge.is_some() {
            self.adjacency.set(a as usize, b as usize, edge.is_some());
            if !self.is_directed() {
                self.adjacency.set(b as usize, a as usize, edge.is_some());
            }
        }
        old
    }
}

impl PartialEq for Topology {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
            && self.is_directed() == other.is_directed()
            && self.n_weighted_edges == other.n_weighted_edges
            && self.adjacency == other.adjacency
            && (self.n_weighted_edges == 0
                || self.stored_edges().all(|(a, b, edge)| other.edge(a as u32, b as u32) == Some(edge)))
    }
}

impl Eq for Topology {}
