//! Graphs up to isomorphism: a canonical order of the nodes, and the number of automorphisms.

use std::cell::RefCell;
use std::fmt;

use smallvec::SmallVec;

use super::canonical_key::{CanonicalKey, raw_edges};
use super::canonical_reduce::{Core, Reduction, n_alike};
use super::canonical_search::{Budget, Order, Search, SortKey};
use super::state::GraphState;
use super::weights::Edge;
use crate::{Error, Result, parallel};

/// Fewer graphs than this stay on one thread: handing work over costs more than they do.
pub(super) const MIN_PER_THREAD: usize = 32;
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

/// Finds canonical forms and counts automorphisms, with buffers that are kept from graph to graph.
///
/// An automorphism is a permutation of the nodes that keeps node classes and attributes, edges and their directions, and
/// edge classes and attributes. The work is done by the crate `canonaut`, nauty in Rust (McKay and Piperno, "Practical graph
/// isomorphism, II", 2014); edge weights go through nauty's layers, one copy of the nodes per bit of an edge's colour.
/// The functions of this module keep one `Canonizer` per thread: [`with_canonizer`] lends it.
///
/// A graph of 7 nodes takes about 1 microsecond, one of 30 about 6 (20 if directed or with edge classes). Of graphs of more than
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
    searches: Vec<Search>,
    /// The nodes sorted by weight, fixed ones first.
    sorted: Vec<SortKey>,
    /// The distinct weights of edges.
    colours: Vec<Edge>,
    /// The canonical order of a graph that was searched part by part.
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
    /// Nothing limits the search, as there is no key without it: see [`log_automorphisms`](Self::log_automorphisms) for what is
    /// refused there.
    pub fn canonical(&mut self, graph: &GraphState, fixed: usize) -> Canonical {
        let mut budget = Budget::UNLIMITED;
        let (order, count) = self.search(graph, fixed, &mut budget);
        Canonical {
            key: CanonicalKey::encode(graph, |k| order[k]),
            order: SmallVec::from_slice(order),
            automorphisms: count.exact,
            log_automorphisms: count.log(),
        }
    }

    /// ln |Aut| of a graph whose first `fixed` nodes stay in place: [`canonical`](Self::canonical) without making the key.
    ///
    /// # Errors
    /// [`Error::SymmetryLimit`] where that would take longer than some seconds, or a deeper search than a thread's stack has
    /// room for. The limit counts steps of the search: it doesn't depend on the machine.
    pub fn log_automorphisms(&mut self, graph: &GraphState, fixed: usize) -> Result<f64> {
        let mut budget = Budget::COUNTING;
        let log = self.search(graph, fixed, &mut budget).1.log();
        match budget.is_exceeded {
            false => Ok(log),
            true => Err(Error::SymmetryLimit { n_nodes: graph.n_nodes(), n_edges: graph.n_edges() }),
        }
    }

    /// The graph's nodes in canonical order, and |Aut|; neither is right where the budget is exceeded.
    fn search(&mut self, graph: &GraphState, fixed: usize, budget: &mut Budget) -> (&[u32], Order) {
        self.sort(graph, fixed);
        if graph.n_nodes() <= MAX_WHOLE {
            return self.search_whole(graph, fixed, budget);
        }
        let cells = self.cells(fixed);
        match n_alike(graph, &cells) <= MAX_ALIKE {
            true => self.search_whole(graph, fixed, budget),
            false => self.search_reduced(graph, cells, fixed, budget),
        }
    }

    /// [`search`](Self::search) in what is left of the graph without pendant trees and twins, part by part.
    pub(super) fn search_reduced(
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
            self.sort(&graph, 0);
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
    pub(super) fn search_whole(&mut self, graph: &GraphState, fixed: usize, budget: &mut Budget) -> (&[u32], Order) {
        let n = graph.n_nodes();
        // Edges of one colour need no layers: the key records which one it is. Colours count from 1, as no edge is 0.
        let layered = self.colours.len() > 1;
        let layers = if layered { self.colours.len().ilog2() as usize + 1 } else { 1 };
        let words = (n * layers).div_ceil(64).max(1);
        let place = self.searches.iter().position(|search| search.words() == words);
        let place = place.unwrap_or_else(|| {
            self.searches.push(Search::new(words));
            self.searches.len() - 1
        });
        let search = &mut self.searches[place];
        if layered {
            search.set_layers(graph, layers, &self.colours);
        } else {
            search.set_graph(graph);
        }
        let order = search.run((&self.sorted, fixed, layers), graph.is_directed(), budget);
        // In a layered graph, the first layer comes first.
        (&search.labelling()[..n], order)
    }

    /// Sorts the weights of nodes and edges, for a search.
    pub(super) fn sort(&mut self, graph: &GraphState, fixed: usize) {
        self.colours.clear();
        if graph.has_edge_weights() {
            self.colours.extend(raw_edges(graph).iter().map(|edge| edge.weight));
            self.colours.sort_unstable();
            self.colours.dedup();
        }
        self.sorted.clear();
        self.sorted.extend(graph.nodes().zip(0..).map(SortKey::new));
        if let Some(free) = self.sorted.get_mut(fixed..) {
            free.sort_unstable();
        }
    }

    /// The number of each node's weight among those that there are; fixed nodes have numbers of their own.
    pub(super) fn cells(&self, fixed: usize) -> Vec<u32> {
        let mut cells = vec![0; self.sorted.len()];
        let mut cell = 0;
        for (k, pair) in self.sorted.windows(2).enumerate() {
            cell += u32::from(k < fixed || pair[0].weight() != pair[1].weight());
            cells[pair[1].label() as usize] = cell;
        }
        cells
    }
}

thread_local! {
    static CANONIZER: RefCell<Canonizer> = RefCell::default();
}

/// Lends this thread's [`Canonizer`], so that its buffers outlast the call.
///
/// ```
/// use gfn::graph::{with_canonizer, GraphKind, GraphState};
/// let graph = GraphState::with_nodes(GraphKind::Undirected, 4);
/// // The first node is a scaffold; the others are interchangeable.
/// let count = with_canonizer(|canonizer| canonizer.canonical(&graph, 1).automorphisms);
/// assert_eq!(count, Some(6));
/// ```
pub fn with_canonizer<T>(body: impl FnOnce(&mut Canonizer) -> T) -> T {
    CANONIZER.with(|canonizer| match canonizer.try_borrow_mut() {
        Ok(mut canonizer) => body(&mut canonizer),
        // A call from within another one's `body` gets buffers of its own.
        Err(_) => body(&mut Canonizer::default()),
    })
}

/// The key of the graph's isomorphism class: equal for isomorphic graphs, different for others.
///
/// ```
/// use gfn::graph::{canonical_key, Edge, GraphKind, GraphState, Node};
/// let (carbon, oxygen) = (Node::of_class(1), Node::of_class(2));
/// let one = GraphState::from_parts(GraphKind::Undirected, &[carbon, oxygen], &[(0, 1, Edge::of_class(2))])?;
/// let same = one.induced(&[1, 0]);
/// let other = GraphState::from_parts(GraphKind::Undirected, &[carbon, oxygen], &[(0, 1, Edge::of_class(1))])?;
/// assert_eq!(canonical_key(&one), canonical_key(&same));
/// assert_ne!(canonical_key(&one), canonical_key(&other));
/// # Ok::<(), gfn::Error>(())
/// ```
#[must_use]
pub fn canonical_key(graph: &GraphState) -> CanonicalKey {
    with_canonizer(|canonizer| canonizer.canonical(graph, 0).key)
}

/// The keys of many graphs, in parallel: see [`canonical_key`].
#[must_use]
pub fn canonical_keys(graphs: &[GraphState]) -> Vec<CanonicalKey> {
    parallel::map(graphs, MIN_PER_THREAD, canonical_key)
}

/// ln |Aut| of a graph, in nats.
///
/// # Errors
/// Those of [`Canonizer::log_automorphisms`].
///
/// ```
/// use gfn::graph::{log_automorphisms, GraphKind, GraphState};
/// // Four isolated nodes: 4! automorphisms.
/// let graph = GraphState::with_nodes(GraphKind::Undirected, 4);
/// assert!((log_automorphisms(&graph)? - 24_f64.ln()).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
pub fn log_automorphisms(graph: &GraphState) -> Result<f64> {
    with_canonizer(|canonizer| canonizer.log_automorphisms(graph, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphKind;

    fn graph(kind: GraphKind, n: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> GraphState {
        let mut out = GraphState::with_nodes(kind, n);
        for (a, b) in edges {
            out.add_edge(a as u32, b as u32, Edge::default()).unwrap();
        }
        out
    }

    fn cycle(kind: GraphKind, n: usize) -> GraphState {
        graph(kind, n, (0..n).map(|a| (a, (a + 1) % n)))
    }

    /// The graph of all pairs that satisfy a symmetric condition.
    fn undirected(n: usize, joined: impl Fn(usize, usize) -> bool) -> GraphState {
        let pairs = (0..n).flat_map(|b| (0..b).map(move |a| (a, b)));
        graph(GraphKind::Undirected, n, pairs.filter(|&(a, b)| joined(a, b)))
    }

    fn automorphisms(graph: &GraphState) -> Option<u64> {
        with_canonizer(|canonizer| canonizer.canonical(graph, 0).automorphisms)
    }

    #[test]
    fn graphs_of_known_symmetry_have_it() {
        for kind in [GraphKind::Directed, GraphKind::Undirected] {
            for n in [0, 1] {
                let graph = GraphState::with_nodes(kind, n);
                assert_eq!((automorphisms(&graph), log_automorphisms(&graph).unwrap()), (Some(1), 0.0));
            }
            assert_ne!(
                canonical_key(&GraphState::with_nodes(kind, 0)),
                canonical_key(&GraphState::with_nodes(kind, 1))
            );
        }
        assert_eq!(automorphisms(&cycle(GraphKind::Undirected, 9)), Some(18));
        assert_eq!(automorphisms(&cycle(GraphKind::Directed, 9)), Some(9));
        // A cube of four dimensions: 2^4 4!.
        let cube = undirected(16, |a, b| (a ^ b).is_power_of_two());
        assert_eq!(automorphisms(&cube), Some(384));
        // Paley's graph of order 13: 13 * 12 / 2.
        let paley = undirected(13, |a, b| [1, 3, 4, 9, 10, 12].contains(&(b - a)));
        assert_eq!(automorphisms(&paley), Some(78));
    }

    #[test]
    fn joins_of_symmetric_graphs_have_their_symmetry_in_any_labelling() {
        // The complement of a triangle and a square: 3! * 8. A pruning that canonaut doesn't count gives 16 or 32 for four labellings in ten.
        let parts = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (5, 6), (3, 6)];
        let join = undirected(7, |a, b| !parts.contains(&(a, b)));
        let mut order: Vec<u32> = (0..7).collect();
        for step in 0..200 {
            order.swap(step % 7, step * step % 7);
            order.rotate_left(1 + step % 3);
            assert_eq!(automorphisms(&join.induced(&order)), Some(48), "{order:?}");
        }
    }

    #[test]
    fn refinement_alone_would_not_tell_these_apart() {
        // Both are strongly regular with the same parameters (16, 6, 2, 2).
        let rook = undirected(16, |a, b| (a / 4 == b / 4) != (a % 4 == b % 4));
        let shrikhande = undirected(16, |a, b| {
            let step = ((4 + b / 4 - a / 4) % 4, (4 + b % 4 - a % 4) % 4);
            [(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)].contains(&step)
        });
        assert!((0..16).all(|a| rook.degree(a) == 6 && shrikhande.degree(a) == 6));
        assert_ne!(canonical_key(&rook), canonical_key(&shrikhande));
        assert_eq!((automorphisms(&rook), automorphisms(&shrikhande)), (Some(1152), Some(192)));
    }

    #[test]
    fn the_count_is_exact_as_far_as_it_fits_and_its_logarithm_beyond() {
        let factorial: u64 = (1..=20).product();
        let twenty = GraphState::with_nodes(GraphKind::Undirected, 20);
        assert_eq!(automorphisms(&twenty), Some(factorial));
        let more = GraphState::with_nodes(GraphKind::Undirected, 100);
        assert_eq!(automorphisms(&more), None);
        let log: f64 = (1..=100).map(|k| f64::from(k).ln()).sum();
        assert!((log_automorphisms(&more).unwrap() - log).abs() < 1e-9);
    }

    #[test]
    fn buffers_serve_graphs_of_any_size_and_kind_in_turn() {
        let mut shared = Canonizer::default();
        for n in [150, 3, 70, 64, 65, 2, 0, 130, 9, 5] {
            for kind in [GraphKind::Undirected, GraphKind::Directed] {
                let mut graph = cycle(kind, n.max(3));
                let per_rotation = if kind == GraphKind::Directed { 1 } else { 2 };
                let found = shared.canonical(&graph, 0);
                assert_eq!(found.automorphisms, Some(per_rotation * n.max(3) as u64));
                assert_eq!(found, Canonizer::default().canonical(&graph, 0));
                // Two classes of edges: two layers, and one reflection at most.
                graph.set_edge(0, 1, Edge::of_class(1)).unwrap();
                let found = shared.canonical(&graph, 0);
                assert_eq!(found.automorphisms, Some(per_rotation));
                assert_eq!(found, Canonizer::default().canonical(&graph, 0));
            }
        }
    }

    #[test]
    fn a_scaffold_is_held_and_may_be_all_of_the_graph_or_more() {
        let graph = GraphState::with_nodes(GraphKind::Undirected, 4);
        for (fixed, count) in [(0, 24), (1, 6), (2, 2), (3, 1), (4, 1), (9, 1)] {
            let found = Canonizer::default().canonical(&graph, fixed);
            assert_eq!(found.automorphisms, Some(count));
            assert!(found.order.iter().zip(0..).take(fixed).all(|(&a, k)| a == k));
        }
    }

    #[test]
    fn a_batch_gives_what_single_calls_give() {
        let graphs: Vec<_> = (3..200).map(|n| cycle(GraphKind::Undirected, 3 + n % 40)).collect();
        let keys: Vec<_> = graphs.iter().map(canonical_key).collect();
        assert_eq!(canonical_keys(&graphs), keys);
    }

    #[test]
    fn a_call_within_a_call_has_buffers_of_its_own() {
        let graph = cycle(GraphKind::Undirected, 5);
        let inner = with_canonizer(|_| canonical_key(&graph));
        assert_eq!(inner, canonical_key(&graph));
    }
}
