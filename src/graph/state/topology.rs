//! The edges of a graph, which states that differ in nothing but their nodes' weights share.

use petgraph::EdgeType;
use petgraph::graph::{DiGraph, Graph, NodeIndex, UnGraph};

use super::equality::digest_of_edge;
use super::{Adjacency, Edge, GraphKind};

/// Edges in petgraph's form.
#[derive(Debug)]
pub(super) enum Storage {
    Directed(DiGraph<(), Edge>),
    Undirected(UnGraph<(), Edge>),
}

impl Clone for Storage {
    /// With room for one more edge, because a copy is made when one is added: without it each step of a roll-out allocates twice.
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

    /// Gives an edge this weight, adds or removes it; gives the weight that it had. An undirected one is named by its smaller end first.
    pub(super) fn put(&mut self, a: u32, b: u32, edge: Option<Edge>) -> Option<Edge> {
        let (i, j) = (NodeIndex::from(a), NodeIndex::from(b));
        let is_there = self.adjacency.get(a as usize, b as usize);
        let old = on!(&mut self.storage, graph => match (is_there.then(|| graph.find_edge(i, j)).flatten(), edge) {
            (Some(at), Some(edge)) => graph.edge_weight_mut(at).map(|weight| std::mem::replace(weight, edge)),
            (Some(at), None) => graph.remove_edge(at),
            (None, Some(edge)) => {
                graph.add_edge(i, j, edge);
                None
            }
            (None, None) => None,
        });
        if let Some(edge) = edge {
            self.digest = self.digest.wrapping_add(digest_of_edge(a, b, edge));
            self.marked_edges += u32::from(!edge.is_plain());
        }
        if let Some(old) = old {
            self.digest = self.digest.wrapping_sub(digest_of_edge(a, b, old));
            self.marked_edges -= u32::from(!old.is_plain());
        }
        if old.is_some() != edge.is_some() {
            self.adjacency.set(a as usize, b as usize, edge.is_some());
            if matches!(self.storage, Storage::Undirected(_)) {
                self.adjacency.set(b as usize, a as usize, edge.is_some());
            }
        }
        old
    }
}
