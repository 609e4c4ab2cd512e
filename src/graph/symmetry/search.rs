//! The search for the symmetry of one graph by `canonaut` (nauty in Rust): its input, its buffers and its
//! results.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use canonaut::consts::ALGORITHM_INFINITY;
use canonaut::refine::GraphContext;
use canonaut::search::canonicalize;
use canonaut::structs::{CanonautOptions, Statistics};
use canonaut::support::KILL_REQUEST;

use super::group_order::GroupOrder;
use super::signatures::ranked_edges;
use crate::graph::{Edge, GraphState, Node};
use crate::{Error, Result};

/// The status that canonaut returns for a search that ended because of a kill request.
const STATUS_KILLED: u32 = 5;

// canonaut takes the rows of the adjacency matrix as machine words, and this module assumes words of 64 bits.
const _: () = assert!(usize::BITS == 64, "a 64-bit target is needed");

/// A number by which nodes are sorted cheaply. 1 bit is set for nodes added to an initial graph of
/// interchangeable nodes, 72 bits hold the class and attributes of the node, and 32 bits its label.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::graph) struct SortKey(u128);

impl SortKey {
    /// Creates the key of a node. `is_after_scaffold` is `true` for a node added to an initial graph
    /// (scaffold) of interchangeable nodes.
    pub(in crate::graph) fn new(node: Node, label: u32, is_after_scaffold: bool) -> Self {
        let values = node.attributes.values().iter();
        let class = u128::from(is_after_scaffold) << 16 | u128::from(node.class);
        let weight = values.fold(class, |weight, &value| weight << 8 | u128::from(value));
        Self(weight << 32 | u128::from(label))
    }

    /// Creates the key of a node of a directed graph. Instead of the class and attributes, this key holds the
    /// node's cell (their rank) and its signature (a hash of its surroundings).
    pub(in crate::graph) fn from_signature(cell: u32, signature: u64, label: u32) -> Self {
        Self(u128::from(cell) << 96 | u128::from(signature) << 32 | u128::from(label))
    }

    pub(in crate::graph) fn label(self) -> u32 {
        self.0 as u32
    }

    pub(in crate::graph) fn weight(self) -> u128 {
        self.0 >> 32
    }
}

/// The limits of one search: the remaining work and the largest depth.
#[derive(Clone, Copy)]
pub(in crate::graph) struct Budget {
    /// The remaining work. Each node of the search tree costs the square of the number of vertices, which is
    /// the worst case of one refinement.
    work: u64,
    /// The largest depth of the search tree.
    depth: u32,
    pub(in crate::graph) is_exceeded: bool,
}

impl Budget {
    pub(in crate::graph) const UNLIMITED: Self = Self { work: u64::MAX, depth: u32::MAX, is_exceeded: false };
    /// The limits of a search that must end: work that takes some seconds, and the largest depth for which
    /// the stack of a thread (2 MiB) suffices.
    pub(in crate::graph) const LIMITED: Self = Self { work: 1 << 36, depth: 800, is_exceeded: false };

    /// Searches a graph within [`LIMITED`](Self::LIMITED), and returns the result of `search`. If the search
    /// exceeds the limits, its result is wrong, so an error is returned instead.
    pub(in crate::graph) fn limit<T>(graph: &GraphState, search: impl FnOnce(&mut Self) -> T) -> Result<T> {
        let mut budget = Self::LIMITED;
        let found = search(&mut budget);
        if budget.is_exceeded {
            return Err(Error::SymmetryLimit { n_nodes: graph.n_nodes(), n_edges: graph.n_edges() });
        }
        Ok(found)
    }
}

/// The progress of the search on this thread. A thread-local variable holds it, because canonaut's callbacks
/// are plain functions that can't receive it as an argument.
#[derive(Clone, Copy)]
struct SearchProgress {
    /// The exact |Aut| found so far; `None` if it doesn't fit into `u64`. canonaut's count can't be used,
    /// because it is rounded.
    group_order: Option<u64>,
    budget: Budget,
}

thread_local! {
    static PROGRESS: Cell<SearchProgress> = const { Cell::new(SearchProgress { group_order: Some(1),
        budget: Budget::UNLIMITED }) };
}

/// A guard that withdraws this search's kill request when the search ends or panics. If the request stayed,
/// the searches of other threads would end and start anew forever.
struct KillRequestGuard;

impl Drop for KillRequestGuard {
    fn drop(&mut self) {
        if PROGRESS.get().budget.is_exceeded {
            KILL_REQUEST.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Multiplies the group order |Aut| by `index`, a factor of it. canonaut calls this function at each level of
/// the first path of the search tree.
#[allow(clippy::too_many_arguments, reason = "the callback's type is canonaut's")]
fn multiply_order(
    _labelling: &mut [u32],
    _partition: &mut [u32],
    _level: u32,
    _orbits: &mut [u32],
    _statistics: &mut Statistics,
    _vertex: u32,
    index: u32,
    _cell_size: u32,
    _n_cells: u32,
    _n_children: u32,
    _n: u32,
) {
    let progress = PROGRESS.get();
    let group_order = progress.group_order.and_then(|order| order.checked_mul(index.into()));
    PROGRESS.set(SearchProgress { group_order, ..progress });
}

/// Requests that the search ends if its budget is spent. canonaut calls this function at each node of the
/// search tree.
///
/// canonaut reads these kill requests from a counter that all threads share. If a request of this thread ends
/// the search of another thread, that search starts anew.
#[allow(clippy::too_many_arguments, reason = "the callback's type is canonaut's")]
fn spend_budget(
    _graph: &[usize],
    _labelling: &mut [u32],
    _partition: &mut [u32],
    level: u32,
    _n_cells: u32,
    _target_cell: i32,
    _code: u32,
    _words: u32,
    n: u32,
) {
    let mut progress = PROGRESS.get();
    let budget = &mut progress.budget;
    budget.work = budget.work.saturating_sub(u64::from(n) * u64::from(n));
    if !budget.is_exceeded && (budget.work == 0 || level > budget.depth) {
        budget.is_exceeded = true;
        KILL_REQUEST.fetch_add(1, Ordering::Relaxed);
    }
    PROGRESS.set(progress);
}

/// Returns `false`, so that canonaut never assumes that all vertices of a cell (a group of vertices of one
/// colour) are interchangeable.
///
/// canonaut 1.0.0 would otherwise use its own check, which prunes the first path of the search tree by
/// automorphisms that are then not counted. An example is the graph of 7 nodes whose complement is a triangle
/// and a square: |Aut| is 48, but canonaut's check gives 16, 32 or 48, depending on the labelling.
fn skip_cheap_check(_partition: &[u32], _level: u32, _directed: bool, _n: u32) -> bool {
    false
}

/// The input, the output and the working memory of canonaut searches, reused from graph to graph. canonaut's
/// `CanonautManager` isn't used, because it would allocate memory for each coloured graph.
pub(in crate::graph) struct Canonaut {
    /// The number of words per row of the adjacency matrix.
    words: usize,
    /// The rows of the adjacency matrix, of `words` words each, with the most significant bit first.
    adjacency: Vec<usize>,
    canonical: Vec<usize>,
    /// The vertices, sorted by cell (a group of vertices of one colour) before the search, and in canonical
    /// order after it.
    labelling: Vec<u32>,
    /// The division of `labelling` into cells. An entry is 0 if the vertex at the same index of `labelling`
    /// is the last vertex of its cell, and above 0 for any other vertex.
    partition: Vec<u32>,
    orbits: Vec<u32>,
    options: CanonautOptions,
    statistics: Statistics,
    context: GraphContext,
}

impl Canonaut {
    /// Creates the memory for searches of graphs whose adjacency matrix has `words` words per row.
    pub(in crate::graph) fn new(words: usize) -> Self {
        let mut options = CanonautOptions {
            default_partition: false,
            // The canonical form is requested even if only |Aut| is needed: otherwise canonaut 1.0.0 finds
            // too few automorphisms (1 for two isolated nodes).
            get_canonical: true,
            user_level_procedure: Some(multiply_order),
            user_node_procedure: Some(spend_budget),
            ..CanonautOptions::default()
        };
        options.dispatch.cheap_automorphism_check = Some(skip_cheap_check);
        Self {
            words,
            adjacency: Vec::new(),
            canonical: Vec::new(),
            labelling: Vec::new(),
            partition: Vec::new(),
            orbits: Vec::new(),
            options,
            statistics: Statistics::new(),
            context: GraphContext::new(words * 64),
        }
    }

    /// Returns the vertices in the canonical order that the last run found.
    pub(in crate::graph) fn labelling(&self) -> &[u32] {
        &self.labelling
    }

    /// Sets the graph of the next run: an undirected graph whose edges have equal classes and attributes.
    pub(in crate::graph) fn set_graph(&mut self, graph: &GraphState) {
        self.adjacency.clear();
        self.adjacency.resize(graph.n_nodes() * self.words, 0);
        for a in 0..graph.n_nodes() {
            match graph.adjacency().bits(a) {
                Some(bits) => {
                    let words = self.adjacency[a * self.words..].iter_mut();
                    for (word, bits) in words.zip(bits) {
                        *word = bits.reverse_bits() as usize;
                    }
                }
                None => graph.adjacency().neighbours(a).for_each(|b| self.set_bit(a, b)),
            }
        }
    }

    /// Sets the graph of the next run. The graph is encoded as an undirected graph of several layers, which
    /// represent the directions, classes and attributes of its edges.
    ///
    /// Layer `l` has a copy of each node `a`, which is vertex `l n + a`. In an undirected graph, layer `l`
    /// also has the edges whose colour has bit `l`. The copies of a node are joined to a path. Vertices of
    /// different layers are in different cells, so an automorphism permutes the nodes of all layers in the
    /// same way. Therefore the layered graph has the same automorphisms as the graph.
    ///
    /// Edges of a directed graph lead from the first layer to layer `l + 1` if their colour has bit `l`. The
    /// reason is that canonaut refines by outgoing edges only: in the directed graph itself, it would try all
    /// orders of nodes that differ only in incoming edges. Colours of directed graphs count from 2, because
    /// the path of a node leaves the first layer like an edge of colour 1.
    pub(in crate::graph) fn set_layers(&mut self, graph: &GraphState, layers: usize, colours: &[Edge]) {
        let n = graph.n_nodes();
        self.adjacency.clear();
        self.adjacency.resize(n * layers * self.words, 0);
        let directed = usize::from(graph.is_directed());
        for (a, b, rank) in ranked_edges(graph, colours) {
            let colour = 1 + directed + rank;
            for layer in (0..layers - directed).filter(|layer| colour >> layer & 1 == 1) {
                if graph.is_directed() {
                    self.join(a, (layer + 1) * n + b);
                } else {
                    self.join(layer * n + a, layer * n + b);
                }
            }
        }
        for a in 0..n * (layers - 1) {
            self.join(a, a + n);
        }
    }

    /// Adds an undirected edge between two vertices.
    fn join(&mut self, a: usize, b: usize) {
        self.set_bit(a, b);
        self.set_bit(b, a);
    }

    fn set_bit(&mut self, a: usize, b: usize) {
        self.adjacency[a * self.words + b / 64] |= 1 << (63 - b % 64);
    }

    /// Creates the cells of the partition. Each layer (copy of the nodes) has one cell per fixed node, and
    /// one per group of other nodes that are equal in `sorted` apart from their labels.
    fn set_cells(&mut self, sorted: &[SortKey], fixed: usize, layers: usize) {
        let n = sorted.len();
        self.labelling.clear();
        self.partition.clear();
        let weight = |k: usize| sorted.get(k).map(|key| key.weight());
        for layer in 0..layers {
            let first = (layer * n) as u32;
            self.labelling.extend(sorted.iter().map(|key| first + key.label()));
            self.partition.extend((0..n).map(|k| {
                let last = k < fixed || weight(k) != weight(k + 1);
                if last { 0 } else { ALGORITHM_INFINITY }
            }));
        }
    }

    /// Searches the graph that was set, and returns |Aut|. `layers` is the number of layers (copies of the
    /// nodes) of the graph, `sorted` holds the nodes of the graph, sorted by class and attributes, and no
    /// automorphism may move the first `fixed` nodes.
    ///
    /// # Panics
    /// If canonaut refuses the graph.
    pub(in crate::graph) fn run(
        &mut self,
        sorted: &[SortKey],
        fixed: usize,
        layers: usize,
        budget: &mut Budget,
    ) -> GroupOrder {
        let n = sorted.len() * layers;
        if n == 0 {
            return GroupOrder::ONE;
        }
        debug_assert_eq!(self.adjacency.len(), n * self.words, "rows of {n} vertices");
        self.orbits.resize(n, 0);
        self.canonical.resize(n * self.words, 0);
        loop {
            self.set_cells(sorted, fixed, layers);
            PROGRESS.set(SearchProgress { group_order: Some(1), budget: *budget });
            let guard = KillRequestGuard;
            canonicalize(
                &self.adjacency,
                &mut self.labelling,
                &mut self.partition,
                None,
                &mut self.orbits,
                &mut self.options,
                &mut self.statistics,
                &mut [],
                self.words as u32,
                n as u32,
                Some(&mut self.canonical),
                &mut self.context,
            );
            drop(guard);
            let SearchProgress { group_order: exact, budget: remaining } = PROGRESS.get();
            let status = self.statistics.error_status_code;
            if status == STATUS_KILLED && !remaining.is_exceeded {
                std::thread::yield_now();
                continue;
            }
            assert!(status == 0 || remaining.is_exceeded, "canonaut refuses {n} vertices with code {status}");
            *budget = remaining;
            let mantissa = self.statistics.group_size1;
            let exponent = self.statistics.group_size2;
            return GroupOrder { exact, log: mantissa.ln() + f64::from(exponent) * std::f64::consts::LN_10 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "canonaut refuses 65 vertices with code 1")]
    fn a_refusal_of_canonaut_panics() {
        let sorted: Vec<SortKey> = (0..65).map(|label| SortKey::new(Node::default(), label, false)).collect();
        // A row of one word has bits for 64 vertices only, so canonaut refuses a graph of 65 vertices.
        let mut search = Canonaut::new(1);
        search.adjacency = vec![0; 65];
        let mut budget = Budget::UNLIMITED;
        search.run(&sorted, 0, 1, &mut budget);
    }

    /// Calls [`spend_budget`], and panics once the budget is spent, to simulate a bug of canonaut.
    #[allow(clippy::too_many_arguments, reason = "the callback's type is canonaut's")]
    fn spend_and_panic(
        graph: &[usize],
        labelling: &mut [u32],
        partition: &mut [u32],
        level: u32,
        n_cells: u32,
        target_cell: i32,
        code: u32,
        words: u32,
        n: u32,
    ) {
        spend_budget(graph, labelling, partition, level, n_cells, target_cell, code, words, n);
        assert!(!PROGRESS.get().budget.is_exceeded, "out of bounds");
    }

    #[test]
    fn a_search_that_panics_does_not_affect_other_threads() {
        let search = |panics: bool, mut budget: Budget| {
            let sorted: Vec<SortKey> =
                (0..8).map(|label| SortKey::new(Node::default(), label, false)).collect();
            let mut search = Canonaut::new(1);
            search.adjacency = vec![0; 8];
            search.options.user_node_procedure = Some(if panics { spend_and_panic } else { spend_budget });
            search.run(&sorted, 0, 1, &mut budget).exact
        };
        let spent = Budget { work: 1, ..Budget::LIMITED };
        std::thread::spawn(move || search(true, spent)).join().unwrap_err();
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(search(false, Budget::UNLIMITED)));
        assert_eq!(receive.recv_timeout(std::time::Duration::from_secs(20)).unwrap(), Some(40_320));
    }
}
