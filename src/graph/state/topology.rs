//! The edges of a graph, which states that differ in nothing but their nodes' weights share.

use petgraph::graph::{DiGraph, NodeIndex, UnGraph};

use super::equality::digest_of_edge;
use super::{Adjacency, Edge, GraphKind};

/// Edges in petgraph's form.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    Directed(DiGraph<(), Edge>),
    Undirected(UnGraph<(), Edge>),
}

/// Does the same to either kind of petgraph graph.
macro_rules! on {
    ($storage:expr, $graph:ident => $body:expr) => {
        match $storage {
            Storage::Directed($graph) => $body,
            Storage::Undirected($graph) => $body,
        }
    };
}

/// Nodes without weights, the edges among them, and their adjacency.
#[derive(Clone, Debug)]
pub(super) struct Topology {
    pub(super) storage: Storage,
    pub(super) adjacency: Adjacency,
    /// Edges with a class or an attribute: where there is none, equality and hashing need not look at weights.
    pub(super) marked_edges: u32,
    /// The sum of the digests of all edges.
    pub(super) digest: u64,
}

impl Topology {
    pub(super) fn new(kind: GraphKind, n: usize) -> Self {
        let mut storage = match kind {
            GraphKind::Directed => Storage::Directed(DiGraph::with_capacity(n, 0)),
            GraphKind::Undirected => Storage::Undirected(UnGraph::with_capacity(n, 0)),
        };
        for _ in 0..n {
            on!(&mut storage, graph => graph.add_node(()));
        }
        Self { storage, adjacency: Adjacency::new(n), marked_edges: 0, digest: 0 }
    }

    pub(super) fn n_edges(&self) -> usize {
        on!(&self.storage, graph => graph.edge_count())
    }

    pub(super) fn edge(&self, a: u32, b: u32) -> Option<Edge> {
        let (a, b) = (NodeIndex::from(a), NodeIndex::from(b));
        on!(&self.storage, graph => graph.find_edge(a, b).and_then(|e| graph.edge_weight(e)).copied())
    }

    pub(super) fn add_node(&mut self) {
        self.adjacency.resize(self.adjacency.len() + 1);
        on!(&mut self.storage, graph => graph.add_node(()));
    }

    /// Removes the last node, which has no edge.
    pub(super) fn pop_node(&mut self) {
        let last = self.adjacency.len() - 1;
        on!(&mut self.storage, graph => graph.remove_node(NodeIndex::new(last)));
        self.adjacency.resize(last);
    }

    /// Adds an edge that is known to be a new one between existing nodes, an undirected one in the order of its ends.
    pub(super) fn insert_edge(&mut self, a: u32, b: u32, edge: Edge) {
        self.digest = self.digest.wrapping_add(digest_of_edge(a, b, edge));
        self.marked_edges += u32::from(!edge.is_plain());
        on!(&mut self.storage, graph => graph.add_edge(NodeIndex::from(a), NodeIndex::from(b), edge));
        self.mark(a, b, true);
    }

    /// Removes an edge, an undirected one named by its smaller end first.
    pub(super) fn remove_edge(&mut self, a: u32, b: u32) -> Option<Edge> {
        let (i, j) = (NodeIndex::from(a), NodeIndex::from(b));
        let weight = on!(&mut self.storage, graph => graph.find_edge(i, j).and_then(|e| graph.remove_edge(e)))?;
        self.marked_edges -= u32::from(!weight.is_plain());
        self.digest = self.digest.wrapping_sub(digest_of_edge(a, b, weight));
        self.mark(a, b, false);
        Some(weight)
    }

    /// Replaces the weight of an edge, an undirected one named by its smaller end first, and gives the old one.
    pub(super) fn set_edge(&mut self, a: u32, b: u32, edge: Edge) -> Option<Edge> {
        let (i, j) = (NodeIndex::from(a), NodeIndex::from(b));
        let weight = on!(&mut self.storage, graph => graph.find_edge(i, j).and_then(|e| graph.edge_weight_mut(e)))?;
        let old = std::mem::replace(weight, edge);
        self.marked_edges += u32::from(!edge.is_plain());
        self.marked_edges -= u32::from(!old.is_plain());
        let change = digest_of_edge(a, b, edge).wrapping_sub(digest_of_edge(a, b, old));
        self.digest = self.digest.wrapping_add(change);
        Some(old)
    }

    fn mark(&mut self, a: u32, b: u32, present: bool) {
        self.adjacency.set(a as usize, b as usize, present);
        if matches!(self.storage, Storage::Undirected(_)) {
            self.adjacency.set(b as usize, a as usize, present);
        }
    }
}
