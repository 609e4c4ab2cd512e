//! Canonical order, key and |Aut| of one graph, with buffers that outlast it.

use std::fmt;

use smallvec::SmallVec;

use super::key::{CanonicalKey, raw_edges};
use super::looks::{looks, n_alike};
use super::reduce::{Core, Reduction};
use super::search::{Budget, Canonaut, Order, SortKey};
use crate::Result;
use crate::graph::{Edge, GraphState};

/// Fewer graphs than this stay on one thread: handing work over costs more than they do.
pub(in crate::graph) const MIN_PER_THREAD: usize = 32;
/// Graphs of up to so many nodes are searched as they are: taking them apart costs more than most searches.
const MAX_WHOLE: usize = 64;
/// So are larger ones of whose nodes not more than these look alike.
const MAX_ALIKE: usize = 32;

/// A graph up to isomorphism.
#[derive(Clone, PartialEq, Debug)]
pub struct Canonical {
    /// Equal for isomorphic graphs, different for others.
    pub key: CanonicalKey,
    /// The nodes in canonical order: `graph.induced(&order)` is the same labelled graph for all isomorphic `graph`.
    pub order: SmallVec<[u32; 16]>,
    /// |Aut|, exact; `None` beyond `u64` (21 interchangeable nodes have 21! automorphisms).
    pub automorphisms: Option<u64>,
    /// The natural logarithm of |Aut|.
    pub log_automorphisms: f64,
}

impl Canonical {
    fn of(graph: &GraphState, order: &[u32], count: Order) -> Self {
        Self {
            key: CanonicalKey::encode(graph, |k| order[k]),
            order: SmallVec::from_slice(order),
            automorphisms: count.exact,
            log_automorphisms: count.log(),
        }
    }
}

/// The first nodes of a graph, which no automorphism takes to others.
#[derive(Clone, Copy)]
pub(in crate::graph) enum Held {
    /// So many that keep their places.
    Each(usize),
    /// So many that may change places among themselves.
    Together(usize),
}

impl Held {
    /// Nodes that keep their places.
    fn fixed(self) -> usize {
        match self {
            Self::Each(n) => n,
            Self::Together(_) => 0,
        }
    }

    /// `true` if a node comes behind those that change places.
    fn is_behind(self, a: u32) -> bool {
        matches!(self, Self::Together(n) if a as usize >= n)
    }
}

/// Finds canonical forms and counts automorphisms, with buffers that are kept from graph to graph.
///
/// An automorphism is a permutation of the nodes that keeps node classes and attributes, edges and their directions, and
/// edge classes and attributes. The work is done by the crate `canonaut`, nauty in Rust (McKay and Piperno, "Practical graph
/// isomorphism, II", 2014); edge weights and directions go through nauty's layers, one copy of the nodes per bit of an edge's
/// colour. A directed graph whose nodes all look different isn't searched.
/// The functions of this module keep one `Canonizer` per thread: [`with_canonizer`](super::with_canonizer) lends it.
///
/// A graph of 7 nodes takes about 1 microsecond, one of 30 about 6 (20 to 100 with edge classes). Of graphs of more than
/// 64 nodes, pendant trees and nodes that are interchangeable by themselves are taken off first: 2,000 isolated nodes take
/// 0.4 ms, a tree of 10,000 nodes 20 ms. The search of what is left recurses once for each node that it has to hold in place,
/// and takes long where many large parts are interchangeable (50 hexagons that hang on one node: 30 ms).
/// A `Canonizer` stays on its thread (it isn't `Send`).
///
/// ```
/// use gfn::graph::{Canonizer, Edge, GraphKind, GraphState, Node};
/// // A path of three nodes, written twice.
/// let nodes = [Node::default(); 3];
/// let (a, b) = ((0, 1, Edge::default()), (1, 2, Edge::default()));
/// let path = GraphState::from_parts(GraphKind::Undirected, &nodes, &[a, b])?;
/// let again = GraphState::from_parts(GraphKind::Undirected, &nodes, &[a, (0, 2, Edge::default())])?;
/// let mut canonizer = Canonizer::default();
/// let (one, other) = (canonizer.canonical(&path, 0), canonizer.canonical(&again, 0));
/// assert_eq!(one.key, other.key);
/// assert_eq!(path.induced(&one.order), again.induced(&other.order));
/// assert_eq!(one.automorphisms, Some(2));
/// // An end that is held in place leaves the identity only.
/// assert_eq!(canonizer.canonical(&path, 1).automorphisms, Some(1));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Default)]
pub struct Canonizer {
    /// One per number of words in a row: canonaut 1.0.0 doesn't clear the further words of its buffers, so after a graph of
    /// 100 nodes it takes vertex 64 for one of a graph of 10, and panics.
    searches: Vec<Canonaut>,
    /// The nodes sorted by weight (of a directed graph, by look), fixed ones first.
    sorted: Vec<SortKey>,
    /// The distinct weights of edges.
    colours: Vec<Edge>,
    /// The canonical order of a graph that wasn't searched as a whole.
    order: Vec<u32>,
}

impl fmt::Debug for Canonizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canonizer").finish_non_exhaustive()
    }
}

impl Canonizer {
    /// The canonical form of a graph, in which the first `fixed` nodes (a scaffold) keep their places: no automorphism moves
    /// them, and `order` begins with them. Keys are comparable between graphs with the same `fixed`.
    ///
    /// Nothing limits the search, which can take hours where many large parts are interchangeable:
    /// [`try_canonical`](Self::try_canonical) gives up in time.
    pub fn canonical(&mut self, graph: &GraphState, fixed: usize) -> Canonical {
        let mut budget = Budget::UNLIMITED;
        self.form(graph, Held::Each(fixed), &mut budget)
    }

    pub(in crate::graph) fn form(&mut self, graph: &GraphState, held: Held, budget: &mut Budget) -> Canonical {
        let (order, count) = self.search(graph, held, budget);
        if budget.is_exceeded {
            // It may lack nodes. Any order will do: whoever sets a budget refuses what comes of it.
            return Canonical::of(graph, &(0..graph.n_nodes() as u32).collect::<Vec<_>>(), count);
        }
        Canonical::of(graph, order, count)
    }

    /// [`canonical`](Self::canonical), within the limit of [`log_automorphisms`](Self::log_automorphisms).
    ///
    /// # Errors
    /// As there.
    pub fn try_canonical(&mut self, graph: &GraphState, fixed: usize) -> Result<Canonical> {
        self.try_form(graph, Held::Each(fixed))
    }

    pub(in crate::graph) fn try_form(&mut self, graph: &GraphState, held: Held) -> Result<Canonical> {
        let mut budget = Budget::LIMITED;
        let found = self.form(graph, held, &mut budget);
        budget.check(graph).map(|()| found)
    }

    /// ln |Aut| of a graph whose first `fixed` nodes stay in place: [`canonical`](Self::canonical) without making the key.
    ///
    /// # Errors
    /// [`Error::SymmetryLimit`] where that would take longer than some seconds, or a deeper search than a thread's stack has
    /// room for. The limit counts steps of the search: it doesn't depend on the machine.
    ///
    /// [`Error::SymmetryLimit`]: crate::Error::SymmetryLimit
    pub fn log_automorphisms(&mut self, graph: &GraphState, fixed: usize) -> Result<f64> {
        self.log_automorphisms_with(graph, Held::Each(fixed))
    }

    pub(in crate::graph) fn log_automorphisms_with(&mut self, graph: &GraphState, held: Held) -> Result<f64> {
        self.sort(graph, held);
        if self.are_told_apart(graph, held.fixed()) {
            return Ok(0.0);
        }
        let mut budget = Budget::LIMITED;
        let log = self.search_sorted(graph, held, &mut budget).1.log();
        budget.check(graph)?;
        Ok(log)
    }

    /// `true` if the looks of sorted nodes tell all of them apart.
    fn are_told_apart(&self, graph: &GraphState, fixed: usize) -> bool {
        if graph.is_directed() {
            return self.sorted.windows(2).all(|pair| pair[0].weight() != pair[1].weight());
        }
        n_alike(looks(graph, &self.cells(fixed), &self.colours)) == 0
    }

    /// The graph's nodes in canonical order, and |Aut|; neither is right where the budget is exceeded.
    fn search(&mut self, graph: &GraphState, held: Held, budget: &mut Budget) -> (&[u32], Order) {
        self.sort(graph, held);
        self.search_sorted(graph, held, budget)
    }

    fn search_sorted(&mut self, graph: &GraphState, held: Held, budget: &mut Budget) -> (&[u32], Order) {
        let fixed = held.fixed();
        if graph.n_nodes() <= MAX_WHOLE {
            return self.search_whole(graph, fixed, budget);
        }
        let cells = self.cells(fixed);
        if n_alike(looks(graph, &cells, &self.colours)) <= MAX_ALIKE {
            return self.search_whole(graph, fixed, budget);
        }
        let count = self.search_reduced(graph, cells, fixed, budget).1;
        self.order.sort_by_key(|&a| held.is_behind(a));
        (&self.order, count)
    }

    /// [`search`](Self::search) in what is left of the graph without pendant trees and twins, part by part.
    pub(in crate::graph) fn search_reduced(
        &mut self,
        graph: &GraphState,
        cells: Vec<u32>,
        fixed: usize,
        budget: &mut Budget,
    ) -> (&[u32], Order) {
        let reduction = Reduction::of(graph, cells, &self.colours);
        let mut order = reduction.order;
        let mut parts = Vec::new();
        for Core { graph, nodes } in reduction.cores(graph, &self.colours) {
            self.sort(&graph, Held::Each(0));
            let (found, count) = self.search_whole(&graph, 0, budget);
            if budget.is_exceeded {
                break;
            }
            order = order.times(count);
            let key = CanonicalKey::encode(&graph, |k| found[k]);
            let nodes: Vec<u32> = found.iter().map(|&k| nodes[k as usize]).collect();
            parts.push((key, nodes));
        }
        parts.sort_unstable();
        for same in parts.chunk_by(|one, other| one.0 == other.0) {
            order = order.permuting(same.len());
        }
        self.order = reduction.order_from(parts.iter().flat_map(|(_, nodes)| nodes).copied(), fixed);
        (&self.order, order)
    }

    /// [`search`](Self::search) in the graph as it is, sorted.
    pub(in crate::graph) fn search_whole(
        &mut self,
        graph: &GraphState,
        fixed: usize,
        budget: &mut Budget,
    ) -> (&[u32], Order) {
        let n = graph.n_nodes();
        if graph.is_directed() && self.are_told_apart(graph, fixed) {
            self.order.clear();
            self.order.extend(self.sorted.iter().map(|key| key.label()));
            return (&self.order, Order::ONE);
        }
        let layers = n_layers(graph, self.colours.len());
        let words = (n * layers).div_ceil(64).max(1);
        let place = self.searches.iter().position(|search| search.words() == words);
        let place = place.unwrap_or_else(|| {
            self.searches.push(Canonaut::new(words));
            self.searches.len() - 1
        });
        let search = &mut self.searches[place];
        if layers > 1 {
            search.set_layers(graph, layers, &self.colours);
        } else {
            search.set_graph(graph);
        }
        let order = search.run(&self.sorted, fixed, layers, budget);
        // In a layered graph, the first layer comes first.
        (&search.labelling()[..n], order)
    }

    /// Sorts the weights of edges, and the nodes by weight, of a directed graph by look, too.
    pub(in crate::graph) fn sort(&mut self, graph: &GraphState, held: Held) {
        let fixed = held.fixed();
        self.colours.clear();
        if graph.has_edge_weights() {
            self.colours.extend(raw_edges(graph).iter().map(|edge| edge.weight));
            self.colours.sort_unstable();
            self.colours.dedup();
        }
        self.sorted.clear();
        self.sorted.extend(graph.nodes().zip(0..).map(|(node, a)| SortKey::new(node, a, held.is_behind(a))));
        if let Some(free) = self.sorted.get_mut(fixed..) {
            free.sort_unstable();
        }
        if graph.is_directed() {
            let cells = self.cells(fixed);
            let looks = looks(graph, &cells, &self.colours);
            self.sorted.clear();
            self.sorted
                .extend(cells.into_iter().zip(looks).zip(0..).map(|((cell, look), a)| SortKey::of_look(cell, look, a)));
            self.sorted.sort_unstable();
        }
    }

    /// The number of each node's weight among those that there are; fixed nodes have numbers of their own.
    pub(in crate::graph) fn cells(&self, fixed: usize) -> Vec<u32> {
        let mut cells = vec![0; self.sorted.len()];
        let mut cell = 0;
        for (k, pair) in self.sorted.windows(2).enumerate() {
            cell += u32::from(k < fixed || pair[0].weight() != pair[1].weight());
            cells[pair[1].label() as usize] = cell;
        }
        cells
    }
}

/// The number of copies of the nodes that the search of a graph takes whose edges have so many colours.
fn n_layers(graph: &GraphState, n_colours: usize) -> usize {
    let bits = |largest: usize| largest.ilog2() as usize + 1;
    match (graph.is_directed(), n_colours) {
        // A layer that edges leave, and those that they arrive at: colours count from 2 there.
        (true, _) => 1 + bits(1 + n_colours.max(1)),
        // Edges of one colour need no layers: the key records which one it is.
        (false, 0 | 1) => 1,
        // Colours count from 1, as no edge is 0.
        (false, _) => bits(n_colours),
    }
}
