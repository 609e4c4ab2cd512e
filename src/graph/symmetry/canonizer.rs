//! The canonical order, the key and |Aut| of a graph, computed with reusable buffers. The weight of a node or
//! an edge is its class and its attributes. The signature of a node is a hash of its weight and of its
//! surroundings.

use std::collections::BTreeMap;
use std::fmt;

use smallvec::SmallVec;

use super::group_order::GroupOrder;
use super::key::CanonicalKey;
use super::reduce::Reduction;
use super::search::{Budget, Canonaut, SortKey};
use super::signatures::{count_duplicates, list_colours, node_signatures};
use crate::Result;
use crate::graph::{Edge, GraphState};

/// The smallest number of graphs per thread. With fewer graphs, starting a thread costs more than it saves.
pub(in crate::graph) const MIN_SEARCHES_PER_THREAD: usize = 32;
/// The largest number of nodes with which a graph is always searched whole. From larger graphs, pendant trees
/// and interchangeable nodes may be removed before the search. In most small graphs, removing them would cost
/// more than the search.
const MAX_NODES_UNREDUCED: usize = 64;
/// The largest number of duplicate signatures with which a graph of any size is searched whole. A node's
/// signature is a hash of the node and its surroundings. The number of duplicates is the number of nodes
/// minus the number of different signatures; if it is small, few nodes can be interchangeable.
const MAX_DUPLICATES_UNREDUCED: usize = 32;

/// The canonical form of a graph, and the number of its automorphisms.
#[derive(Clone, PartialEq, Debug)]
pub struct Canonical {
    /// The key of the isomorphism class. Isomorphic graphs have equal keys, and other graphs have different
    /// keys.
    pub key: CanonicalKey,
    /// The nodes in canonical order: `graph.induced(&order)` is the same labelled graph for all graphs
    /// isomorphic to `graph`.
    pub order: SmallVec<[u32; 16]>,
    /// The exact group order |Aut|; `None` if it doesn't fit into `u64` (21 interchangeable nodes have 21!
    /// automorphisms).
    pub automorphisms: Option<u64>,
    /// The natural logarithm of |Aut|.
    pub log_automorphisms: f64,
}

impl Canonical {
    fn new(graph: &GraphState, order: &[u32], count: GroupOrder) -> Self {
        Self {
            key: CanonicalKey::encode(graph, |k| order[k]),
            order: SmallVec::from_slice(order),
            automorphisms: count.exact,
            log_automorphisms: count.log(),
        }
    }
}

/// The number of fixed nodes, that is, nodes at the start of a graph that no automorphism may exchange with
/// later nodes.
#[derive(Clone, Copy)]
pub(in crate::graph) enum FixedNodes {
    /// The number of first nodes, none of which an automorphism may move.
    InPlace(usize),
    /// The number of first nodes, which automorphisms may exchange with each other but not with later nodes.
    AsSet(usize),
}

impl FixedNodes {
    /// Returns the number of nodes that no automorphism may move.
    fn n_in_place(self) -> usize {
        match self {
            Self::InPlace(n) => n,
            Self::AsSet(_) => 0,
        }
    }

    /// Returns `true` if node `a` comes after the fixed nodes and these are [`AsSet`](Self::AsSet); always
    /// `false` for [`InPlace`](Self::InPlace).
    fn is_after(self, a: u32) -> bool {
        matches!(self, Self::AsSet(n) if a as usize >= n)
    }
}

/// A search for canonical forms and numbers of automorphisms, with buffers that are reused from graph to
/// graph.
///
/// An automorphism is a permutation of the nodes that keeps node classes and attributes, edges and their
/// directions, and edge classes and attributes. The search is done by the crate `canonaut`, nauty in Rust
/// (McKay and Piperno, "Practical graph isomorphism, II", 2014). Classes, attributes and directions of edges
/// are encoded by nauty's layers: edges are numbered by their class and attributes, and the nodes are copied
/// once per bit of these numbers. A directed graph whose nodes all have different surroundings needs no
/// search. The functions of this module use one `Canonizer` per thread, which
/// [`with_canonizer`](super::with_canonizer) lends.
///
/// A graph of 7 nodes takes about 1 microsecond, and a graph of 30 nodes about 6 (20 to 100 with edge
/// classes). Pendant trees and interchangeable nodes are removed first from graphs of more than 64 nodes:
/// 2,000 isolated nodes take 0.4 ms, a tree of 10,000 nodes 20 ms. The search of the remaining graph recurses
/// once for each node that it has to fix. A search is slow if many large parts are interchangeable (50
/// hexagons that are joined to one node: 30 ms). A `Canonizer` stays on its thread (it isn't `Send`).
///
/// ```
/// use gfn::graph::{Canonizer, Edge, GraphKind, GraphState, Node};
/// // A path of three nodes, in two labellings.
/// let nodes = [Node::default(); 3];
/// let (a, b) = ((0, 1, Edge::default()), (1, 2, Edge::default()));
/// let path = GraphState::from_parts(GraphKind::Undirected, &nodes, &[a, b])?;
/// let again = GraphState::from_parts(GraphKind::Undirected, &nodes, &[a, (0, 2, Edge::default())])?;
/// let mut canonizer = Canonizer::default();
/// let (one, other) = (canonizer.canonical(&path, 0), canonizer.canonical(&again, 0));
/// assert_eq!(one.key, other.key);
/// assert_eq!(path.induced(&one.order), again.induced(&other.order));
/// assert_eq!(one.automorphisms, Some(2));
/// // With an end fixed in place, only the identity is left.
/// assert_eq!(canonizer.canonical(&path, 1).automorphisms, Some(1));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Default)]
pub struct Canonizer {
    /// The working memory of searches, by the number of 64-bit words in a row of the adjacency matrix (one
    /// bit per node). Graphs with different numbers of words can't share memory, because canonaut 1.0.0
    /// doesn't clear the later words of its buffers: after a graph of 100 nodes it would treat vertex 64 as a
    /// vertex of a graph of 10 nodes, and panic.
    searches: BTreeMap<usize, Canonaut>,
    /// The nodes, sorted by class and attributes; in directed graphs also by signature, a hash of the node's
    /// surroundings. Fixed nodes come first.
    sorted: Vec<SortKey>,
    /// The distinct combinations of class and attributes of the edges, sorted. The index of an edge's
    /// combination determines the colour of the edge.
    colours: Vec<Edge>,
    /// The canonical order of the last graph, if the graph was searched in several parts or needed no search.
    /// The order that a single search finds stays in the working memory of that search.
    order: Vec<u32>,
}

impl fmt::Debug for Canonizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canonizer").finish_non_exhaustive()
    }
}

impl Canonizer {
    /// Finds the canonical form of a graph whose first `fixed` nodes (a scaffold) keep their places: no
    /// automorphism moves them, and `order` begins with them. Keys are comparable between graphs with the
    /// same `fixed`.
    ///
    /// The search has no limit, and can take hours if many large parts are interchangeable. Use
    /// [`try_canonical`](Self::try_canonical) for a search with a limit.
    pub fn canonical(&mut self, graph: &GraphState, fixed: usize) -> Canonical {
        let mut budget = Budget::UNLIMITED;
        self.find_form(graph, FixedNodes::InPlace(fixed), &mut budget)
    }

    pub(in crate::graph) fn find_form(
        &mut self,
        graph: &GraphState,
        fixed_nodes: FixedNodes,
        budget: &mut Budget,
    ) -> Canonical {
        self.sort_nodes(graph, fixed_nodes);
        let (order, count) = self.search_sorted(graph, fixed_nodes, budget);
        if budget.is_exceeded {
            // If the search exceeds its budget (the limits of work and depth), `order` may lack nodes. Any
            // order can be returned, because callers discard the result of such a search.
            return Canonical::new(graph, &(0..graph.n_nodes() as u32).collect::<Vec<_>>(), count);
        }
        Canonical::new(graph, order, count)
    }

    /// Finds the canonical form as [`canonical`](Self::canonical) does, with the limit of
    /// [`log_automorphisms`](Self::log_automorphisms).
    ///
    /// # Errors
    /// Returns the errors of [`log_automorphisms`](Self::log_automorphisms).
    pub fn try_canonical(&mut self, graph: &GraphState, fixed: usize) -> Result<Canonical> {
        self.try_find_form(graph, FixedNodes::InPlace(fixed))
    }

    pub(in crate::graph) fn try_find_form(
        &mut self,
        graph: &GraphState,
        fixed_nodes: FixedNodes,
    ) -> Result<Canonical> {
        Budget::limit(graph, |budget| self.find_form(graph, fixed_nodes, budget))
    }

    /// Returns ln |Aut| of a graph whose first `fixed` nodes no automorphism may move, without creating the
    /// key.
    ///
    /// # Errors
    /// [`Error::SymmetryLimit`] if the search would take more than some seconds, or recurse deeper than the
    /// stack of a thread allows. The limit is a number of steps, so it doesn't depend on the machine.
    ///
    /// [`Error::SymmetryLimit`]: crate::Error::SymmetryLimit
    pub fn log_automorphisms(&mut self, graph: &GraphState, fixed: usize) -> Result<f64> {
        self.log_automorphisms_fixing(graph, FixedNodes::InPlace(fixed))
    }

    pub(in crate::graph) fn log_automorphisms_fixing(
        &mut self,
        graph: &GraphState,
        fixed_nodes: FixedNodes,
    ) -> Result<f64> {
        self.sort_nodes(graph, fixed_nodes);
        if self.has_distinct_signatures(graph, fixed_nodes.n_in_place()) {
            return Ok(0.0);
        }
        Budget::limit(graph, |budget| self.search_sorted(graph, fixed_nodes, budget).1.log())
    }

    /// Returns `true` if all nodes have different signatures (hashes of their surroundings). `sort_nodes`
    /// must have been called before.
    fn has_distinct_signatures(&self, graph: &GraphState, fixed: usize) -> bool {
        if graph.is_directed() {
            return self.sorted.windows(2).all(|pair| pair[0].weight() != pair[1].weight());
        }
        count_duplicates(node_signatures(graph, &self.number_cells(fixed), &self.colours)) == 0
    }

    /// Returns the graph's nodes in canonical order, and |Aut|. `sort_nodes` must have been called before.
    /// The order and |Aut| are wrong if the search exceeds `budget` (the limits of work and depth).
    fn search_sorted(
        &mut self,
        graph: &GraphState,
        fixed_nodes: FixedNodes,
        budget: &mut Budget,
    ) -> (&[u32], GroupOrder) {
        let fixed = fixed_nodes.n_in_place();
        if graph.n_nodes() <= MAX_NODES_UNREDUCED {
            return self.search_whole(graph, fixed, budget);
        }
        let cells = self.number_cells(fixed);
        if count_duplicates(node_signatures(graph, &cells, &self.colours)) <= MAX_DUPLICATES_UNREDUCED {
            return self.search_whole(graph, fixed, budget);
        }
        let count = self.search_reduced(graph, cells, fixed, budget).1;
        self.order.sort_by_key(|&a| fixed_nodes.is_after(a));
        (&self.order, count)
    }

    /// Searches as [`search_sorted`](Self::search_sorted) does, but removes pendant trees and twins (nodes
    /// with the same neighbours) first, and searches the connected parts of the remaining graph separately.
    pub(in crate::graph) fn search_reduced(
        &mut self,
        graph: &GraphState,
        cells: Vec<u32>,
        fixed: usize,
        budget: &mut Budget,
    ) -> (&[u32], GroupOrder) {
        let reduction = Reduction::new(graph, cells, &self.colours);
        let mut group_order = reduction.group_order;
        let mut parts = Vec::new();
        for (graph, nodes) in reduction.list_cores(graph, &self.colours) {
            self.sort_nodes(&graph, FixedNodes::InPlace(0));
            let (order, count) = self.search_whole(&graph, 0, budget);
            if budget.is_exceeded {
                break;
            }
            group_order = group_order.times(count);
            let key = CanonicalKey::encode(&graph, |k| order[k]);
            let nodes: Vec<u32> = order.iter().map(|&k| nodes[k as usize]).collect();
            parts.push((key, nodes));
        }
        parts.sort_unstable();
        for equal in parts.chunk_by(|first, second| first.0 == second.0) {
            group_order = group_order.times_factorial(equal.len());
        }
        self.order = reduction.order_from(parts.iter().flat_map(|(_, nodes)| nodes).copied(), fixed);
        (&self.order, group_order)
    }

    /// Searches the whole graph at once, without removing any nodes first. Returns the same as
    /// [`search_sorted`](Self::search_sorted).
    pub(in crate::graph) fn search_whole(
        &mut self,
        graph: &GraphState,
        fixed: usize,
        budget: &mut Budget,
    ) -> (&[u32], GroupOrder) {
        let n = graph.n_nodes();
        if graph.is_directed() && self.has_distinct_signatures(graph, fixed) {
            self.order.clear();
            self.order.extend(self.sorted.iter().map(|key| key.label()));
            return (&self.order, GroupOrder::ONE);
        }
        let layers = count_layers(graph, self.colours.len());
        let words = (n * layers).div_ceil(64).max(1);
        let search = self.searches.entry(words).or_insert_with(|| Canonaut::new(words));
        if layers > 1 {
            search.set_layers(graph, layers, &self.colours);
        } else {
            search.set_graph(graph);
        }
        let order = search.run(&self.sorted, fixed, layers, budget);
        // A layered graph has several copies (layers) of the nodes. The vertices of the first layer, which
        // are the nodes themselves, come first in its canonical order.
        (&search.labelling()[..n], order)
    }

    /// Sorts the edges' distinct combinations of class and attributes. Also sorts the nodes by class and
    /// attributes; in directed graphs by these and the signature, a hash of the node's surroundings.
    pub(in crate::graph) fn sort_nodes(&mut self, graph: &GraphState, fixed_nodes: FixedNodes) {
        let fixed = fixed_nodes.n_in_place();
        list_colours(graph, &mut self.colours);
        self.sorted.clear();
        self.sorted
            .extend(graph.nodes().zip(0..).map(|(node, a)| SortKey::new(node, a, fixed_nodes.is_after(a))));
        if let Some(free) = self.sorted.get_mut(fixed..) {
            free.sort_unstable();
        }
        if graph.is_directed() {
            let cells = self.number_cells(fixed);
            let signatures = node_signatures(graph, &cells, &self.colours);
            self.sorted.clear();
            for (a, (cell, signature)) in (0..).zip(cells.into_iter().zip(signatures)) {
                self.sorted.push(SortKey::from_signature(cell, signature, a));
            }
            self.sorted.sort_unstable();
        }
    }

    /// Returns the cell of each node. Nodes have the same cell if they have the same class and attributes
    /// (and the same signature, if `sorted` holds signatures). Cells ascend in the order of `sorted`. Each
    /// fixed node has a separate cell.
    pub(in crate::graph) fn number_cells(&self, fixed: usize) -> Vec<u32> {
        let mut cells = vec![0; self.sorted.len()];
        let mut cell = 0;
        for (k, pair) in self.sorted.windows(2).enumerate() {
            cell += u32::from(k < fixed || pair[0].weight() != pair[1].weight());
            cells[pair[1].label() as usize] = cell;
        }
        cells
    }
}

/// Returns the number of layers (copies of the nodes) for the search of a graph whose edges have `n_colours`
/// colours.
fn count_layers(graph: &GraphState, n_colours: usize) -> usize {
    let bits = |largest: usize| largest.ilog2() as usize + 1;
    match (graph.is_directed(), n_colours) {
        // In directed graphs, edges lead from the first layer (copy of the nodes) to the other layers, which
        // encode the edges' colours in binary. Colours count from 2, because the edges that join the copies
        // of a node look like edges of colour 1.
        (true, _) => 1 + bits(1 + n_colours.max(1)),
        // Edges of one colour need no further layers (copies of the nodes), because their class and
        // attributes are in the key.
        (false, 0 | 1) => 1,
        // Each bit of a colour needs a layer (a copy of the nodes). Colours count from 1, because colour 0
        // means that there is no edge.
        (false, _) => bits(n_colours),
    }
}
