//! The parents and the ancestors of the nodes of an acyclic graph.

use gfn::graph::{Edge, GraphKind, GraphState};
use gfn::{Error, Result};
use smallvec::SmallVec;

use super::{NodeSet, check_size};

/// The largest number of nodes of a graph that this package accepts.
pub const MAX_NODES: usize = 200;

/// A set of nodes for each node of a graph. The sets are stored on the stack if the graph has at most 8
/// nodes.
type Sets = SmallVec<[NodeSet; 8]>;

/// Builds a graph of `n` nodes from edges `(source, target)`.
///
/// ```
/// use gfn_dags::acyclic;
/// assert_eq!(acyclic(3, &[(1, 2), (0, 1)])?.edges().collect::<Vec<_>>(), [(0, 1), (1, 2)]);
/// assert!(acyclic(2, &[(0, 1), (1, 0)]).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] for 0 nodes, and for more than [`MAX_NODES`] nodes; [`Error::Contract`] for an edge
/// with an unknown node, for an edge that occurs twice, and for a directed cycle.
pub fn acyclic(n: usize, edges: &[(u32, u32)]) -> Result<GraphState> {
    let mut graph = GraphState::with_nodes(GraphKind::Directed, check_size(n)?);
    edges.iter().try_for_each(|&(a, b)| graph.add_edge(a, b, Edge::default()))?;
    Ancestry::from_graph(&graph)?;
    Ok(graph)
}

/// Returns the parents of each node of a directed graph, which must have at most 256 nodes.
pub(crate) fn parent_sets(graph: &GraphState) -> Sets {
    let mut out = Sets::from_elem(NodeSet::EMPTY, graph.n_nodes());
    for (a, b) in graph.edges() {
        out[b as usize].insert(a as usize);
    }
    out
}

/// The parents and the ancestors of each node of an acyclic graph.
///
/// ```
/// use gfn_dags::{Ancestry, NodeSet, acyclic};
/// let ancestry = Ancestry::from_graph(&acyclic(3, &[(0, 1), (1, 2)])?)?;
/// assert!(ancestry.has_path(0, 2) && ancestry.parents(2) == NodeSet::EMPTY.with(1));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ancestry {
    parents: Sets,
    /// The ancestors of each node, including the node itself.
    ancestors: Sets,
}

impl Ancestry {
    /// Computes the parents and the ancestors of all nodes of a graph.
    ///
    /// # Errors
    /// [`Error::Config`] for 0 nodes, and for more than [`MAX_NODES`] nodes; [`Error::Contract`] for an
    /// undirected graph, and for a directed cycle.
    pub fn from_graph(graph: &GraphState) -> Result<Self> {
        check_size(graph.n_nodes())?;
        let found = graph.is_directed().then(|| Self::above(parent_sets(graph))).flatten();
        let law = "graphs of Bayesian networks are directed and have no directed cycle";
        found.ok_or_else(|| Error::contract(law, format!("graph {graph}")))
    }

    /// Computes the ancestors of all nodes from the parents of each node. Returns `None` if the edges form
    /// a cycle.
    fn above(parents: Sets) -> Option<Self> {
        let mut out = Self { ancestors: SmallVec::from_elem(NodeSet::EMPTY, parents.len()), parents };
        (0..out.parents.len()).all(|node| out.visit(node, NodeSet::EMPTY)).then_some(out)
    }

    /// Computes the ancestors of a node by recursion, those of its parents first. Returns `false` if it finds
    /// a cycle. `below` holds the nodes whose calls of this function led to this call. They are descendants
    /// of `node`, so there is a cycle if `node` is among them.
    fn visit(&mut self, node: usize, below: NodeSet) -> bool {
        if below.contains(node) || !self.ancestors[node].is_empty() {
            return !below.contains(node);
        }
        let mut ancestors = NodeSet::EMPTY.with(node);
        for parent in self.parents[node].iter() {
            if !self.visit(parent, below.with(node)) {
                return false;
            }
            ancestors = ancestors.union(self.ancestors[parent]);
        }
        self.ancestors[node] = ancestors;
        true
    }

    /// Returns the number of nodes of the graph.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.parents.len()
    }

    /// Returns the parents of a node.
    ///
    /// # Panics
    /// If the node doesn't exist.
    #[must_use]
    pub fn parents(&self, node: usize) -> NodeSet {
        self.parents[node]
    }

    /// Returns `true` if a directed path of at least one edge leads from `source` to `target`.
    ///
    /// # Panics
    /// If the node `target` doesn't exist.
    #[must_use]
    pub fn has_path(&self, source: usize, target: usize) -> bool {
        source != target && self.ancestors[target].contains(source)
    }

    /// Returns the Markov blanket of a node: its parents, its children, and the children's other parents.
    ///
    /// # Panics
    /// If the node doesn't exist.
    #[must_use]
    pub fn markov_blanket(&self, node: usize) -> NodeSet {
        let children = (0..self.n_nodes()).filter(|&child| self.parents[child].contains(node));
        children
            .fold(self.parents[node], |blanket, child| blanket.union(self.parents[child]).with(child))
            .without(node)
    }

    /// Returns the nodes in an order in which parents come before their children.
    #[must_use]
    pub fn topological_order(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> = (0..self.n_nodes()).collect();
        // A node has more ancestors than each of its ancestors, so nodes can be sorted by their number of
        // ancestors.
        nodes.sort_by_key(|&node| self.n_ancestors(node));
        nodes
    }

    /// Returns the number of ancestors of a node, including the node itself.
    pub(crate) fn n_ancestors(&self, node: usize) -> usize {
        self.ancestors[node].len()
    }
}
