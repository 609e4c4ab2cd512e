//! Canonical forms and |Aut| are compared with a search of all permutations and with petgraph's VF2. Keys
//! and |Aut| are also compared between random relabellings of a graph.

use gfn::Rng;
use gfn::graph::{
    Attributes, Canonizer, Edge, GraphKind, GraphState, Node, canonical_key, labelled_key, log_automorphisms,
};
use petgraph::algo::is_isomorphic_matching;
use proptest::prelude::*;

/// The properties of random graphs.
#[derive(Clone, Copy, Debug)]
struct Shape {
    kind: GraphKind,
    node_weights: usize,
    edge_weights: usize,
    density: f64,
}

fn shapes() -> Vec<Shape> {
    let mut out = Vec::new();
    for kind in [GraphKind::Undirected, GraphKind::Directed] {
        for node_weights in [1, 2, 3] {
            for edge_weights in [1, 2, 3, 4, 7] {
                for density in [0.2, 0.5, 0.8] {
                    out.push(Shape { kind, node_weights, edge_weights, density });
                }
            }
        }
    }
    out
}

/// Returns a node whose class and attribute follow from the number `k`. The numbers `2 i` and `2 i + 1` give
/// the same class `i` and different attributes.
fn node_weight(k: usize) -> Node {
    Node { class: (k / 2) as u16, attributes: Attributes::new(&[0, 0, (k % 2) as u8]).unwrap() }
}

fn edge_weight(k: usize) -> Edge {
    Edge { class: (k % 3) as u16, attributes: Attributes::new(&[(k / 3) as u8 * 5]).unwrap() }
}

fn random_graph(shape: Shape, n: usize, rng: &mut Rng) -> GraphState {
    let nodes: Vec<_> = (0..n).map(|_| node_weight(rng.below(shape.node_weights))).collect();
    let mut graph = GraphState::from_parts(shape.kind, &nodes, &[]).unwrap();
    for a in 0..n as u32 {
        for b in 0..n as u32 {
            if (a < b || (a != b && graph.is_directed())) && rng.uniform() < shape.density {
                let weight = edge_weight(rng.below(shape.edge_weights));
                graph.add_edge(a, b, weight).unwrap();
            }
        }
    }
    graph
}

fn random_permutation(n: usize, rng: &mut Rng) -> Vec<u32> {
    let mut out: Vec<_> = (0..n as u32).collect();
    for k in (1..n).rev() {
        out.swap(k, rng.below(k + 1));
    }
    out
}

/// Draws a relabelled copy of a graph, with at most one small change to a node or an edge. A graph and such a
/// copy are the hardest to distinguish.
fn near_copy(graph: &GraphState, shape: Shape, rng: &mut Rng) -> GraphState {
    let n = graph.n_nodes();
    let mut out = graph.induced(&random_permutation(n, rng));
    if n < 2 {
        return out;
    }
    match rng.below(4) {
        // The copy is only relabelled.
        0 => {}
        1 => {
            let node = node_weight(rng.below(shape.node_weights));
            out.set_node(rng.below(n) as u32, node).unwrap();
        }
        // An edge gets another class and attribute, unless the same ones are drawn again.
        2 => {
            let edges: Vec<_> = out.edges().collect();
            if !edges.is_empty() {
                let (a, b) = edges[rng.below(edges.len())];
                let weight = edge_weight(rng.below(shape.edge_weights));
                out.set_edge(a, b, weight).unwrap();
            }
        }
        // An edge moves to another pair of nodes. This may reverse a directed edge.
        _ => {
            let edges: Vec<_> = out.edges().collect();
            let a = rng.below(n) as u32;
            let b = rng.below(n) as u32;
            if !edges.is_empty() && a != b && !out.has_edge(a, b) {
                let (c, d) = edges[rng.below(edges.len())];
                let weight = out.remove_edge(c, d).unwrap();
                out.add_edge(a, b, weight).unwrap();
            }
        }
    }
    out
}

fn permutations(n: usize) -> Vec<Vec<u32>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let mut out = Vec::new();
    for shorter in permutations(n - 1) {
        for place in 0..n {
            let mut longer = shorter.clone();
            longer.insert(place, n as u32 - 1);
            out.push(longer);
        }
    }
    out
}

/// Returns `true` if the relabelling `order` maps one graph to the other.
fn maps(one: &GraphState, other: &GraphState, order: &[u32]) -> bool {
    let n = order.len() as u32;
    let place = |k: u32| order[k as usize];
    (0..n).all(|k| one.node(place(k)) == other.node(k))
        && (0..n).all(|i| (0..n).all(|j| one.edge(place(i), place(j)) == other.edge(i, j)))
}

#[test]
fn keys_and_automorphisms_agree_with_trying_all_permutations() {
    let all: Vec<_> = (0..=6).map(permutations).collect();
    let mut rng = Rng::seeded(1);
    let mut canonizer = Canonizer::default();
    let mut n_isomorphic = 0;
    let mut n_different = 0;
    let mut n_symmetric = 0;
    for round in 0..24 {
        for shape in shapes() {
            let n = (round % 6 + rng.below(3)).min(6);
            let one = random_graph(shape, n, &mut rng);
            let other = near_copy(&one, shape, &mut rng);
            let fixed = rng.below(3).min(n);

            let found = canonizer.canonical(&one, 0);
            let automorphisms = all[n].iter().filter(|p| maps(&one, &one, p)).count() as u64;
            assert_eq!(found.automorphisms, Some(automorphisms), "{one:?}");
            let held = |p: &[u32]| (0..fixed).all(|k| p[k] == k as u32);
            let fixing = all[n].iter().filter(|p| held(p) && maps(&one, &one, p)).count();
            let scaffold = canonizer.canonical(&one, fixed);
            assert_eq!(scaffold.automorphisms, Some(fixing as u64), "{one:?}");
            assert!(held(&scaffold.order));

            let isomorphic = all[n].iter().any(|p| maps(&one, &other, p));
            assert_eq!(found.key == canonizer.canonical(&other, 0).key, isomorphic, "{one:?} {other:?}");
            let isomorphic_held = all[n].iter().any(|p| held(p) && maps(&one, &other, p));
            assert_eq!(
                scaffold.key == canonizer.canonical(&other, fixed).key,
                isomorphic_held,
                "{fixed} fixed: {one:?} {other:?}"
            );
            n_isomorphic += usize::from(isomorphic);
            n_different += usize::from(!isomorphic);
            n_symmetric += usize::from(automorphisms > 1);
        }
    }
    // The random pairs must often be isomorphic and often be different, and many graphs must have symmetries.
    assert!(
        n_isomorphic > 200 && n_different > 200 && n_symmetric > 200,
        "{n_isomorphic} isomorphic pairs, {n_different} others, {n_symmetric} graphs with a symmetry"
    );
}

#[test]
fn key_equality_agrees_with_vf2() {
    let mut rng = Rng::seeded(2);
    let mut n_isomorphic = 0;
    let mut n_different = 0;
    for _ in 0..6 {
        for shape in shapes() {
            let n = 2 + rng.below(9);
            let one = random_graph(shape, n, &mut rng);
            let other = near_copy(&one, shape, &mut rng);
            // The macro converts a graph into a petgraph graph, whose weights are the classes and attributes
            // of nodes and edges.
            macro_rules! weighted {
                ($state:expr, $graph:expr) => {
                    $graph.map(|i, ()| $state.node(i.index() as u32), |_, edge| *edge)
                };
            }
            let isomorphic = match (
                (one.as_undirected(), other.as_undirected()),
                (one.as_directed(), other.as_directed()),
            ) {
                ((Some(a), Some(b)), _) => {
                    let a = weighted!(one, a);
                    let b = weighted!(other, b);
                    is_isomorphic_matching(&a, &b, |a, b| a == b, |a, b| a == b)
                }
                (_, (Some(a), Some(b))) => {
                    let a = weighted!(one, a);
                    let b = weighted!(other, b);
                    is_isomorphic_matching(&a, &b, |a, b| a == b, |a, b| a == b)
                }
                _ => unreachable!("both graphs are of one kind"),
            };
            assert_eq!(canonical_key(&one) == canonical_key(&other), isomorphic, "{one:?} {other:?}");
            n_isomorphic += usize::from(isomorphic);
            n_different += usize::from(!isomorphic);
        }
    }
    assert!(n_isomorphic > 100 && n_different > 100, "{n_isomorphic} isomorphic pairs, {n_different} others");
}

/// Tests circulant graphs. All of their nodes are equivalent, so colour refinement without a search can't
/// distinguish the nodes.
#[test]
fn relabelling_changes_no_key_where_refinement_says_nothing() {
    let mut rng = Rng::seeded(3);
    let mut canonizer = Canonizer::default();
    for n in [8, 12, 15, 16, 24, 40, 72] {
        for kind in [GraphKind::Undirected, GraphKind::Directed] {
            for weights in [1, 3] {
                let mut steps = Vec::new();
                for step in 1..=n / 2 {
                    if rng.uniform() < 0.4 {
                        steps.push((step, edge_weight(rng.below(weights))));
                    }
                }
                let mut graph = GraphState::with_nodes(kind, n);
                for (a, (step, weight)) in (0..n).flat_map(|a| steps.iter().map(move |s| (a, s))) {
                    let b = (a + step) % n;
                    if !graph.has_edge(a as u32, b as u32) {
                        graph.add_edge(a as u32, b as u32, *weight).unwrap();
                    }
                }
                let one = canonizer.canonical(&graph, 0);
                // Rotations are automorphisms, so |Aut| must be divisible by n. The check is skipped if
                // |Aut| doesn't fit in u64.
                assert_eq!(one.automorphisms.map_or(0, |count| count % n as u64), 0);
                for _ in 0..5 {
                    let order = random_permutation(n, &mut rng);
                    let other = canonizer.canonical(&graph.induced(&order), 0);
                    assert_eq!(one.key, other.key, "{n} nodes, {kind:?}, {steps:?}");
                    assert_eq!(one.automorphisms, other.automorphisms);
                }
            }
        }
    }
}

/// Draws a graph with up to 12 nodes, and a permutation of its nodes.
fn graph_and_order() -> impl Strategy<Value = (GraphState, Vec<u32>)> {
    let size_and_kind = (0..=12_usize, any::<bool>(), 1..4_usize, 1..6_usize);
    size_and_kind.prop_flat_map(|(n, directed, node_weights, edge_weights)| {
        let nodes = prop::collection::vec(0..node_weights, n);
        let edges = prop::collection::vec(prop::option::of(0..edge_weights), n * n);
        let order = Just((0..n as u32).collect::<Vec<_>>()).prop_shuffle();
        (nodes, edges, order).prop_map(move |(nodes, edges, order)| {
            let kind = if directed { GraphKind::Directed } else { GraphKind::Undirected };
            let nodes: Vec<_> = nodes.into_iter().map(node_weight).collect();
            let n = nodes.len();
            let mut graph = GraphState::from_parts(kind, &nodes, &[]).unwrap();
            for (k, weight) in edges.into_iter().enumerate() {
                let a = k / n;
                let b = k % n;
                if let Some(weight) = weight.filter(|_| a < b || (a > b && directed)) {
                    let weight = edge_weight(weight);
                    graph.add_edge(a as u32, b as u32, weight).unwrap();
                }
            }
            (graph, order)
        })
    })
}

proptest! {
    #[test]
    fn relabelling_changes_neither_key_nor_automorphisms((graph, order) in graph_and_order()) {
        let relabelled = graph.induced(&order);
        let mut canonizer = Canonizer::default();
        let one = canonizer.canonical(&graph, 0);
        let other = canonizer.canonical(&relabelled, 0);
        prop_assert_eq!(&one.key, &other.key);
        prop_assert_eq!(one.automorphisms, other.automorphisms);
        let representative = graph.induced(&one.order);
        prop_assert_eq!(&representative, &relabelled.induced(&other.order));
        prop_assert_eq!(labelled_key(&representative), one.key);
        prop_assert_eq!(labelled_key(&graph) == labelled_key(&relabelled), graph == relabelled);
        prop_assert_eq!(log_automorphisms(&graph).unwrap(), one.log_automorphisms);
        // |Aut| must divide n!, because the automorphisms are a subgroup of all permutations.
        let factorial: u64 = (1..=graph.n_nodes() as u64).product();
        prop_assert_eq!(one.automorphisms.map(|count| factorial % count), Some(0));
    }
}
