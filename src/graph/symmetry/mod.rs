//! The symmetry of graphs up to isomorphism: canonical orders of nodes, and numbers of automorphisms.

mod canonizer;
mod group_order;
mod key;
mod moves;
mod reduce;
mod refinement;
mod search;
mod signatures;

pub use canonizer::{Canonical, Canonizer};
pub(in crate::graph) use canonizer::{FixedNodes, MIN_SEARCHES_PER_THREAD};
pub use key::{CanonicalKey, labelled_key};
pub use moves::{MoveSymmetries, SymmetryCount};
pub(in crate::graph) use search::Budget;

use std::cell::RefCell;

use crate::graph::GraphState;
use crate::{Error, Result, parallel};

/// The largest number of symmetries of a graph that may be listed.
const MAX_LISTED_SYMMETRIES: usize = 1_000;
/// The largest number of nodes of a graph whose symmetries may be listed. The limit exists because each pair
/// of nodes takes a search.
const MAX_NODES_OF_LISTED: usize = 256;

thread_local! {
    static CANONIZER: RefCell<Canonizer> = RefCell::default();
}

/// Calls a function with this thread's [`Canonizer`], whose buffers are reused from call to call.
///
/// A call of this function within `body` gets a new `Canonizer`.
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
        // The `Canonizer` of the thread is in use, because this is a call within the `body` of another call.
        Err(_) => body(&mut Canonizer::default()),
    })
}

/// Returns the key of the graph's isomorphism class. Isomorphic graphs have equal keys, and other graphs have
/// different keys.
///
/// The search has no limit; [`Canonizer::canonical`] says which graphs take long.
///
/// ```
/// use gfn::graph::{canonical_key, Edge, GraphKind, GraphState, Node};
/// let (carbon, oxygen) = (Node::from_class(1), Node::from_class(2));
/// let (kind, nodes) = (GraphKind::Undirected, [carbon, oxygen]);
/// let double_bond = GraphState::from_parts(kind, &nodes, &[(0, 1, Edge::from_class(2))])?;
/// let single_bond = GraphState::from_parts(kind, &nodes, &[(0, 1, Edge::from_class(1))])?;
/// let relabelled = double_bond.induced(&[1, 0]);
/// assert_eq!(canonical_key(&double_bond), canonical_key(&relabelled));
/// assert_ne!(canonical_key(&double_bond), canonical_key(&single_bond));
/// # Ok::<(), gfn::Error>(())
/// ```
#[must_use]
pub fn canonical_key(graph: &GraphState) -> CanonicalKey {
    with_canonizer(|canonizer| canonizer.canonical(graph, 0).key)
}

/// Returns the [`canonical_key`] of each graph, computed in parallel.
#[must_use]
pub fn canonical_keys(graphs: &[GraphState]) -> Vec<CanonicalKey> {
    parallel::map(graphs, MIN_SEARCHES_PER_THREAD, canonical_key)
}

/// Returns ln |Aut| of a graph.
///
/// # Errors
/// Returns the errors of [`Canonizer::log_automorphisms`].
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

/// Lists the symmetries of a graph in ascending order. Each is a permutation of the nodes, `order`, for which
/// `graph.induced(order)` equals the graph.
pub(in crate::graph) fn list_symmetries(graph: &GraphState) -> Result<Vec<Vec<u32>>> {
    let n = graph.n_nodes();
    let refuse = |got: String| {
        let expected = "at most 1,000 symmetries if its nodes are interchangeable, because each costs a \
            canonical form per state: keep the nodes distinct (`Scaffold::ToldApart`), or give them \
            different classes";
        Err(Error::config("the number of symmetries of the initial graph", got, expected))
    };
    if n > MAX_NODES_OF_LISTED {
        return refuse(format!(
            "unknown, because {n} nodes are too many to list all symmetries (at most 256)"
        ));
    }
    let identity: Vec<u32> = (0..n as u32).collect();
    let mut all = vec![identity.clone()];
    for a in (0..n).rev() {
        // At this point `all` holds the symmetries that fix the nodes `0..=a`. The loop finds, for each `b`,
        // one symmetry that fixes `0..a` and maps `a` to `b`. Composed with each symmetry in `all`, it gives
        // all symmetries that fix `0..a` and map `a` to `b`.
        let form = |graph: &GraphState| with_canonizer(|canonizer| canonizer.try_canonical(graph, a + 1));
        let reference = form(graph)?;
        let n_fixing_a = all.len();
        for b in a + 1..n {
            let mut swapped = identity.clone();
            swapped.swap(a, b);
            let candidate = form(&graph.induced(&swapped))?;
            if candidate.key != reference.key {
                continue;
            }
            let mut image = vec![0; n];
            for (&c, &d) in reference.order.iter().zip(&candidate.order) {
                image[c as usize] = swapped[d as usize];
            }
            for k in 0..n_fixing_a {
                all.push(all[k].iter().map(|&c| image[c as usize]).collect());
            }
            if all.len() > MAX_LISTED_SYMMETRIES {
                return refuse(format!("more than {MAX_LISTED_SYMMETRIES}"));
            }
        }
    }
    all.sort_unstable();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Edge, GraphKind};

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

    /// Builds the undirected graph with an edge for each pair `a < b` that satisfies a condition.
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
        // The cube of four dimensions has 2^4 4! automorphisms.
        let cube = undirected(16, |a, b| (a ^ b).is_power_of_two());
        assert_eq!(automorphisms(&cube), Some(384));
        // The Paley graph of order 13 has 13 * 12 / 2 automorphisms.
        let paley = undirected(13, |a, b| [1, 3, 4, 9, 10, 12].contains(&(b - a)));
        assert_eq!(automorphisms(&paley), Some(78));
    }

    #[test]
    fn joins_of_symmetric_graphs_have_their_symmetry_in_any_labelling() {
        // The complement of a triangle and a square has 3! * 8 automorphisms. Without `skip_cheap_check`,
        // which replaces a check of canonaut 1.0.0, the count would be 16 or 32 for four labellings in ten.
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
    fn graphs_that_refinement_can_not_distinguish_have_different_keys() {
        // The two graphs are strongly regular with the same parameters (16, 6, 2, 2), but not isomorphic.
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
                let form = shared.canonical(&graph, 0);
                assert_eq!(form.automorphisms, Some(per_rotation * n.max(3) as u64));
                assert_eq!(form, Canonizer::default().canonical(&graph, 0));
                // The edge 0-1 gets another class than the other edges. With two classes of edges, the search
                // copies the nodes into two layers, as nauty does. The cycle keeps at most one symmetry, a
                // reflection.
                graph.set_edge(0, 1, Edge::from_class(1)).unwrap();
                let form = shared.canonical(&graph, 0);
                assert_eq!(form.automorphisms, Some(per_rotation));
                assert_eq!(form, Canonizer::default().canonical(&graph, 0));
            }
        }
    }

    #[test]
    fn fixed_nodes_stay_and_may_be_all_of_the_graph_or_more() {
        let graph = GraphState::with_nodes(GraphKind::Undirected, 4);
        for (fixed, count) in [(0, 24), (1, 6), (2, 2), (3, 1), (4, 1), (9, 1)] {
            let form = Canonizer::default().canonical(&graph, fixed);
            assert_eq!(form.automorphisms, Some(count));
            assert!(form.order.iter().zip(0..).take(fixed).all(|(&a, k)| a == k));
        }
    }

    #[test]
    fn a_batch_gives_what_single_calls_give() {
        let graphs: Vec<_> = (3..200).map(|n| cycle(GraphKind::Undirected, 3 + n % 40)).collect();
        let keys: Vec<_> = graphs.iter().map(canonical_key).collect();
        assert_eq!(canonical_keys(&graphs), keys);
    }

    #[test]
    fn a_call_within_a_call_works() {
        let graph = cycle(GraphKind::Undirected, 5);
        let inner = with_canonizer(|_| canonical_key(&graph));
        assert_eq!(inner, canonical_key(&graph));
    }
}
