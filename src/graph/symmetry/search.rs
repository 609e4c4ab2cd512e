//! The search of `canonaut` (nauty in Rust) on one graph: its input, buffers and results.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use canonaut::consts::ALGORITHM_INFINITY;
use canonaut::refine::GraphContext;
use canonaut::search::canonicalize;
use canonaut::structs::{CanonautOptions, Statistics};
use canonaut::support::KILL_REQUEST;

use super::key::raw_edges;
use crate::graph::{Edge, GraphState, Node};
use crate::{Error, Result};

/// canonaut's status of a search that was asked to end.
const ENDED: u32 = 5;

// Rows of 64 bits are handed over as machine words.
const _: () = assert!(usize::BITS == 64, "a 64-bit target is needed");

/// A node's weight and its label in one number, so that sorting is cheap: a bit for nodes behind a scaffold whose nodes change
/// places, 72 bits of weight, 32 of label.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::graph) struct SortKey(u128);

impl SortKey {
    pub(in crate::graph) fn new(node: Node, label: u32, is_behind: bool) -> Self {
        let values = node.attributes.values().iter();
        let class = u128::from(is_behind) << 16 | u128::from(node.class);
        let weight = values.fold(class, |weight, &value| weight << 8 | u128::from(value));
        Self(weight << 32 | u128::from(label))
    }

    /// Of a node of a directed graph, by its cell and its look in place of its weight.
    pub(in crate::graph) fn of_look(cell: u32, look: u64, label: u32) -> Self {
        Self(u128::from(cell) << 96 | u128::from(look) << 32 | u128::from(label))
    }

    pub(in crate::graph) fn label(self) -> u32 {
        self.0 as u32
    }

    pub(in crate::graph) fn weight(self) -> u128 {
        self.0 >> 32
    }
}

/// |Aut|.
#[derive(Clone, Copy)]
pub(in crate::graph) struct Order {
    /// `None` beyond `u64`.
    pub(in crate::graph) exact: Option<u64>,
    /// In nats, as a sum.
    log: f64,
}

impl Order {
    /// Of a graph without symmetry.
    pub(in crate::graph) const ONE: Self = Self { exact: Some(1), log: 0.0 };

    pub(in crate::graph) fn times(self, other: Self) -> Self {
        let product = |one: u64| other.exact.and_then(|other| one.checked_mul(other));
        Self { exact: self.exact.and_then(product), log: self.log + other.log }
    }

    /// Times the number of orders of `n` things.
    pub(in crate::graph) fn permuting(self, n: usize) -> Self {
        (2..=n as u64).fold(self, |order, k| order.times(Self { exact: Some(k), log: (k as f64).ln() }))
    }

    /// In nats.
    pub(in crate::graph) fn log(self) -> f64 {
        self.exact.map_or(self.log, |order| (order as f64).ln())
    }
}

/// How far a search may go.
#[derive(Clone, Copy)]
pub(in crate::graph) struct Budget {
    /// The work that may still be done, in units of which a node of the search takes the square of the number of vertices: so much at most
    /// does it cost to refine a partition.
    work: u64,
    depth: u32,
    pub(in crate::graph) is_exceeded: bool,
}

impl Budget {
    pub(in crate::graph) const UNLIMITED: Self = Self { work: u64::MAX, depth: u32::MAX, is_exceeded: false };
    /// Some seconds of work, and a depth that the stack of a thread has room for (2 MiB).
    pub(in crate::graph) const LIMITED: Self = Self { work: 1 << 36, depth: 800, is_exceeded: false };

    /// Refuses what a search of this graph found, if it went too far.
    pub(in crate::graph) fn check(self, graph: &GraphState) -> Result<()> {
        if self.is_exceeded {
            return Err(Error::SymmetryLimit { n_nodes: graph.n_nodes(), n_edges: graph.n_edges() });
        }
        Ok(())
    }
}

/// The search in progress: canonaut's callbacks are plain functions.
#[derive(Clone, Copy)]
struct Progress {
    /// |Aut| so far, `None` beyond `u64`: canonaut keeps it as a rounded number.
    order: Option<u64>,
    budget: Budget,
}

thread_local! {
    static PROGRESS: Cell<Progress> = const { Cell::new(Progress { order: Some(1), budget: Budget::UNLIMITED }) };
}

/// Takes back, when a search is over or panics, that it asked canonaut to end: the searches of other threads would begin anew for ever.
struct EndRequest;

impl Drop for EndRequest {
    fn drop(&mut self) {
        if PROGRESS.get().budget.is_exceeded {
            KILL_REQUEST.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// canonaut's callback at each level of the first path, where |Aut| is multiplied by `index`.
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
    PROGRESS.set(Progress { order: progress.order.and_then(|order| order.checked_mul(index.into())), ..progress });
}

/// canonaut's callback at each node of its search: ends the search where its budget is spent.
///
/// canonaut is asked to end by a number that all threads share; a search of another thread that it ends begins anew.
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

/// Says of no partition that its cells are known to be orbits.
///
/// With its own check, canonaut 1.0.0 prunes the first path by automorphisms that it then fails to count: of the graph on 7 nodes
/// whose complement is a triangle and a square, |Aut| = 48, it finds 16, 32 or 48, by the labelling. (nauty leaves the
/// first path alone.) Without the check, every automorphism is met as a leaf.
fn never_cheap(_partition: &[u32], _level: u32, _directed: bool, _n: u32) -> bool {
    false
}

/// canonaut's input, output and working memory. Its own `CanonautManager` allocates for each coloured graph.
pub(in crate::graph) struct Canonaut {
    words: usize,
    /// Rows of `words` words, the most significant bit first.
    adjacency: Vec<usize>,
    canonical: Vec<usize>,
    /// The vertices by cell; after the search, in canonical order.
    labelling: Vec<u32>,
    /// Zero at the last vertex of each cell.
    partition: Vec<u32>,
    orbits: Vec<u32>,
    options: CanonautOptions,
    statistics: Statistics,
    context: GraphContext,
}

impl Canonaut {
    pub(in crate::graph) fn new(words: usize) -> Self {
        let mut options = CanonautOptions {
            default_partition: false,
            // Not for |Aut| alone either: without it, canonaut 1.0.0 finds too few automorphisms (1 of two isolated nodes).
            get_canonical: true,
            user_level_procedure: Some(multiply_order),
            user_node_procedure: Some(spend_budget),
            ..CanonautOptions::default()
        };
        options.dispatch.cheap_automorphism_check = Some(never_cheap);
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

    pub(in crate::graph) fn words(&self) -> usize {
        self.words
    }

    /// The vertices in canonical order, after a run.
    pub(in crate::graph) fn labelling(&self) -> &[u32] {
        &self.labelling
    }

    pub(in crate::graph) fn set_graph(&mut self, graph: &GraphState) {
        self.adjacency.clear();
        self.adjacency.resize(graph.n_nodes() * self.words, 0);
        for a in 0..graph.n_nodes() {
            match graph.adjacency().bits(a) {
                Some(bits) => {
                    let words = self.adjacency[a * self.words..].iter_mut();
                    words.zip(bits).for_each(|(word, bits)| *word = bits.reverse_bits() as usize);
                }
                None => graph.adjacency().ones(a).for_each(|b| self.set(a, b)),
            }
        }
    }

    /// Layer `l` has a copy of each node, at `l n + a`, and the edges whose colour has bit `l`; the copies of a node form
    /// a path. Layers have cells of their own, so an automorphism does the same in each: those of the layers are
    /// those of the graph.
    ///
    /// The edges of a directed graph leave the first layer and arrive at layer `l + 1` where their colour has bit `l`: canonaut
    /// refines by the edges that leave a vertex alone, and of a directed graph as it is it would try all orders of what only
    /// arriving edges tell apart. Colours count from 2, as a node's own path leaves the first layer like an edge of colour 1.
    pub(in crate::graph) fn set_layers(&mut self, graph: &GraphState, layers: usize, colours: &[Edge]) {
        let n = graph.n_nodes();
        self.adjacency.clear();
        self.adjacency.resize(n * layers * self.words, 0);
        let directed = usize::from(graph.is_directed());
        for edge in raw_edges(graph) {
            let (a, b) = (edge.source().index(), edge.target().index());
            let colour = 1 + directed + colours.partition_point(|other| *other < edge.weight);
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

    fn join(&mut self, a: usize, b: usize) {
        self.set(a, b);
        self.set(b, a);
    }

    fn set(&mut self, a: usize, b: usize) {
        self.adjacency[a * self.words + b / 64] |= 1 << (63 - b % 64);
    }

    /// One cell per layer and weight, and per layer and fixed node.
    fn set_cells(&mut self, sorted: &[SortKey], fixed: usize, layers: usize) {
        let n = sorted.len();
        self.labelling.clear();
        self.partition.clear();
        for layer in 0..layers {
            let first = (layer * n) as u32;
            self.labelling.extend(sorted.iter().map(|key| first + key.label()));
        }
        let weight = |k: usize| sorted.get(k).map(|key| key.weight());
        for _ in 0..layers {
            self.partition.extend((0..n).map(|k| {
                let last = k < fixed || weight(k) != weight(k + 1);
                if last { 0 } else { ALGORITHM_INFINITY }
            }));
        }
    }

    /// Searches the graph that was set, of `layers` layers, whose nodes are `sorted` by weight.
    pub(in crate::graph) fn run(
        &mut self,
        sorted: &[SortKey],
        fixed: usize,
        layers: usize,
        budget: &mut Budget,
    ) -> Order {
        let n = sorted.len() * layers;
        if n == 0 {
            return Order::ONE;
        }
        debug_assert_eq!(self.adjacency.len(), n * self.words, "rows of {n} vertices");
        self.orbits.resize(n, 0);
        self.canonical.resize(n * self.words, 0);
        loop {
            self.set_cells(sorted, fixed, layers);
            PROGRESS.set(Progress { order: Some(1), budget: *budget });
            let request = EndRequest;
            self.canonicalize(n);
            drop(request);
            let Progress { order: exact, budget: left } = PROGRESS.get();
            let status = self.statistics.error_status_code;
            if status == ENDED && !left.is_exceeded {
                std::thread::yield_now();
                continue;
            }
            assert!(status == 0 || left.is_exceeded, "canonaut refuses {n} vertices with code {status}");
            *budget = left;
            let (mantissa, exponent) = (self.statistics.group_size1, self.statistics.group_size2);
            return Order { exact, log: mantissa.ln() + f64::from(exponent) * std::f64::consts::LN_10 };
        }
    }

    fn canonicalize(&mut self, n: usize) {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "canonaut refuses 65 vertices with code 1")]
    fn a_refusal_of_canonaut_is_never_taken_for_an_answer() {
        let sorted: Vec<SortKey> = (0..65).map(|label| SortKey::new(Node::default(), label, false)).collect();
        // Rows of 64 bits, one vertex too many.
        let mut search = Canonaut::new(1);
        search.adjacency = vec![0; 65];
        let mut budget = Budget::UNLIMITED;
        search.run(&sorted, 0, 1, &mut budget);
    }

    /// [`spend_budget`], and a bug of canonaut's once the budget is spent.
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
    fn a_search_that_panics_leaves_those_of_other_threads_alone() {
        let search = |panics: bool, mut budget: Budget| {
            let sorted: Vec<SortKey> = (0..8).map(|label| SortKey::new(Node::default(), label, false)).collect();
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
