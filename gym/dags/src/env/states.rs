//! Batches of directed acyclic graphs.

use gfn::env::{Grouping, Rows};
use gfn::graph::{Edge, GraphArrays, GraphKind, GraphState, GraphStates, Node};
use gfn::{Error, Result};

use super::NodeSet;
use super::closure::{Layout, ones};

/// The most nodes of a graph.
pub const MAX_NODES: usize = 200;

/// A batch of directed acyclic graphs on the same `n` labelled nodes: rows of bits for children, parents and ancestors, so that
/// a step, its mask and a parent set cost a few words each.
///
/// ```
/// use gfn::env::Rows;
/// use gfn_dags::DagStates;
/// let dags = DagStates::from_edges(3, [[(0, 1), (1, 2)].as_slice(), &[]])?;
/// assert_eq!(dags.len(), 2);
/// assert!(dags.dag(0).has_path(0, 2) && !dags.dag(0).has_edge(0, 2));
/// assert!(DagStates::from_edges(2, [[(0, 1), (1, 0)].as_slice()]).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DagStates {
    pub(super) layout: Layout,
    pub(super) words: Vec<u64>,
}

impl DagStates {
    /// `count` graphs of `n` nodes without an edge.
    ///
    /// # Errors
    /// [`Error::Config`] unless `n` is from 1 to [`MAX_NODES`].
    pub fn empty(n: usize, count: usize) -> Result<Self> {
        let layout = Layout::new(check_size(n)?);
        Ok(Self { layout, words: layout.empty().repeat(count) })
    }

    /// The graphs with these edges `(source, target)`.
    ///
    /// # Errors
    /// [`Error::Config`] for a number of nodes out of range; [`Error::Contract`] for an edge that names no node or comes twice,
    /// and for a cycle.
    pub fn from_edges<'a>(n: usize, graphs: impl IntoIterator<Item = &'a [(u32, u32)]>) -> Result<Self> {
        let mut out = Self::empty(n, 0)?;
        for (row, edges) in graphs.into_iter().enumerate() {
            let mut words = out.layout.empty();
            for &(source, target) in edges {
                let (a, b) = (source as usize, target as usize);
                if a >= n || b >= n || !out.layout.can_add(&words, a, b) {
                    return Err(Error::contract(
                        "a graph has each edge once, between its nodes, and no directed cycle",
                        format!("edge ({source}, {target}) of graph {row}, which has {n} nodes"),
                    ));
                }
                out.layout.add(&mut words, a, b);
            }
            out.words.append(&mut words);
        }
        Ok(out)
    }

    /// The same graphs, from petgraph graphs; classes and attributes are ignored.
    ///
    /// # Errors
    /// [`Error::Contract`] for undirected graphs, graphs of another size than the first, and cycles.
    pub fn from_graphs(n: usize, graphs: &GraphStates) -> Result<Self> {
        let mut out = Self::empty(n, 0)?;
        for (row, graph) in graphs.graphs().iter().enumerate() {
            if graph.n_nodes() != n || !graph.is_directed() {
                return Err(Error::contract(
                    "graphs of Bayesian networks are directed, and all have the same nodes",
                    format!("graph {row} is {:?} with {} nodes, not {n}", graph.kind(), graph.n_nodes()),
                ));
            }
            let edges: Vec<(u32, u32)> = graph.edges().collect();
            out.append(Self::from_edges(n, [edges.as_slice()])?);
        }
        Ok(out)
    }

    /// Their nodes and edges as networks read them.
    ///
    /// # Errors
    /// None: edges join nodes that are there.
    pub fn to_arrays(&self) -> Result<GraphArrays> {
        let mut arrays = GraphArrays::new(GraphKind::Directed);
        for dag in self.dags() {
            let nodes = std::iter::repeat_n(Node::default(), self.layout.n);
            arrays.push(nodes, dag.edges().map(|(a, b)| (a, b, Edge::default())))?;
        }
        Ok(arrays)
    }

    /// The same graphs as petgraph graphs: what
    /// [`write_graphs`](gfn::graph::write_graphs) writes.
    ///
    /// # Errors
    /// None: every edge of a row can be added.
    pub fn to_graphs(&self) -> Result<GraphStates> {
        let graph = |dag: Dag<'_>| {
            let mut graph = GraphState::with_nodes(GraphKind::Directed, self.layout.n);
            dag.edges().try_for_each(|(a, b)| graph.add_edge(a, b, Edge::default()))?;
            Ok(graph)
        };
        Ok(self.dags().map(graph).collect::<Result<Vec<_>>>()?.into())
    }

    /// The number of nodes of each graph.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.layout.n
    }

    /// One of the graphs.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn dag(&self, row: usize) -> Dag<'_> {
        let size = self.layout.words();
        Dag { layout: self.layout, words: &self.words[row * size..(row + 1) * size] }
    }

    /// The graphs, one after another.
    pub fn dags(&self) -> impl ExactSizeIterator<Item = Dag<'_>> {
        let layout = self.layout;
        self.words.chunks_exact(layout.words()).map(move |words| Dag { layout, words })
    }

    pub(super) fn rows_mut(&mut self) -> std::slice::ChunksExactMut<'_, u64> {
        self.words.chunks_exact_mut(self.layout.words())
    }
}

/// Checks a number of nodes.
pub(crate) fn check_size(n: usize) -> Result<usize> {
    match n {
        1..=MAX_NODES => Ok(n),
        _ => Err(Error::config("nodes", n, "1 to 200 nodes of a Bayesian network")),
    }
}

impl Rows for DagStates {
    fn len(&self) -> usize {
        self.words.len() / self.layout.words()
    }
    fn select(&self, rows: &[usize]) -> Self {
        let mut words = Vec::with_capacity(rows.len() * self.layout.words());
        for &row in rows {
            words.extend_from_slice(self.dag(row).words);
        }
        Self { layout: self.layout, words }
    }
    fn describe(&self, row: usize) -> Option<String> {
        let one = (row < self.len()).then(|| self.select(&[row]))?;
        one.to_graphs().ok()?.describe(0)
    }
    fn append(&mut self, mut other: Self) {
        debug_assert_eq!(self.layout, other.layout, "graphs of one environment");
        self.words.append(&mut other.words);
    }
    fn group(&self) -> Grouping {
        // The rows of children determine the graph.
        let hashes: Vec<u64> = self.dags().map(|dag| hash(self.layout.children(dag.words))).collect();
        let children = |row| self.layout.children(self.dag(row).words);
        Grouping::by(&hashes, |i, j| children(i) == children(j))
    }
}

fn hash(words: &[u64]) -> u64 {
    let mixed = words.iter().fold(0u64, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed ^ mixed >> 32
}

/// One graph of a [`DagStates`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dag<'a> {
    pub(super) layout: Layout,
    pub(super) words: &'a [u64],
}

impl Dag<'_> {
    /// The number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.layout.n
    }

    /// The number of edges.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.layout.children(self.words).iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is an edge from `source` to `target`.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn has_edge(&self, source: usize, target: usize) -> bool {
        self.layout.get(self.layout.children(self.words), source, target)
    }

    /// Whether there is a directed path of at least one edge from `source` to `target`.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn has_path(&self, source: usize, target: usize) -> bool {
        source != target && self.layout.get(self.layout.ancestors(self.words), target, source)
    }

    /// The parents of a node.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn parents(&self, node: usize) -> NodeSet {
        NodeSet::of_row(self.layout.row(self.layout.parents(self.words), node))
    }

    /// The children of a node.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn children(&self, node: usize) -> NodeSet {
        NodeSet::of_row(self.layout.row(self.layout.children(self.words), node))
    }

    /// The Markov blanket of a node: its parents, its children, and the other parents of these.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn markov_blanket(&self, node: usize) -> NodeSet {
        let children = self.children(node);
        let families =
            [self.parents(node), children].into_iter().chain(children.iter().map(|child| self.parents(child)));
        families.fold(NodeSet::EMPTY, |blanket, set| blanket.union(set)).without(node)
    }

    /// The edges `(source, target)`, ascending.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let children = self.layout.children(self.words);
        (0..self.layout.n).flat_map(move |a| ones(self.layout.row(children, a)).map(move |b| (a as u32, b as u32)))
    }

    /// The nodes so that parents come before their children.
    #[must_use]
    pub fn topological_order(&self) -> Vec<usize> {
        let ancestors = self.layout.ancestors(self.words);
        let n_ancestors = |&i: &usize| self.layout.row(ancestors, i).iter().map(|word| word.count_ones()).sum::<u32>();
        let mut nodes: Vec<usize> = (0..self.layout.n).collect();
        nodes.sort_by_key(n_ancestors);
        nodes
    }
}
