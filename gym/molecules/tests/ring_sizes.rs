//! Tests of checks that a graph has small rings only, and of smallest sets of rings. The module with these
//! functions is private in gfn-molecules, so this test program compiles the file of the module itself.

#![allow(dead_code, reason = "tests call less of it than gfn-molecules does")]

use gfn::graph::{Edge, GraphKind, GraphState};

use rings::{small_rings_span, smallest_rings};

#[path = "../src/molecule/rings.rs"]
mod rings;

fn graph(n: usize, edges: &[(u32, u32)]) -> GraphState {
    let mut graph = GraphState::with_nodes(GraphKind::Undirected, n);
    for &(a, b) in edges {
        graph.add_edge(a, b, Edge::default()).unwrap();
    }
    graph
}

#[test]
fn fused_rings_are_sums_of_small_ones_and_their_envelope_is_not() {
    // This graph is two four-membered rings that share an edge.
    let fused = graph(6, &[(0, 1), (1, 2), (2, 3), (0, 3), (2, 4), (4, 5), (3, 5)]);
    assert!(small_rings_span(&fused, 4, None) && !small_rings_span(&fused, 3, None));
    // Without the shared edge a six-membered ring remains. Without an edge of only one ring, the other
    // four-membered ring remains.
    assert!(!small_rings_span(&fused, 4, Some((3, 2))) && small_rings_span(&fused, 6, Some((2, 3))));
    assert!(small_rings_span(&fused, 4, Some((0, 1))));
    // This graph is a prism over a pentagon. Every edge lies in a square, but no sum of squares (symmetric
    // difference of their edges) is the pentagon.
    let mut edges = Vec::new();
    for k in 0..5 {
        edges.extend([(k, (k + 1) % 5), (5 + k, 5 + (k + 1) % 5), (k, 5 + k)]);
    }
    let prism = graph(10, &edges);
    assert!(!small_rings_span(&prism, 4, None) && small_rings_span(&prism, 5, None));
    assert!(small_rings_span(&graph(3, &[(0, 1), (1, 2)]), 3, None));
}

fn sizes(n: usize, bonds: &[(usize, usize)]) -> Vec<usize> {
    smallest_rings(n, bonds).iter().map(Vec::len).collect()
}

#[test]
fn small_rings_come_first_and_envelopes_not_at_all() {
    let naphthalene =
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (4, 6), (6, 7), (7, 8), (8, 9), (9, 5)];
    assert_eq!(sizes(10, &naphthalene), [6, 6]);
    let norbornane = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (0, 6), (3, 6)];
    assert_eq!(sizes(7, &norbornane), [5, 5]);
    let cube: Vec<_> =
        (0..8usize).flat_map(|a| [1, 2, 4].map(|bit| (a, a ^ bit))).filter(|(a, b)| a < b).collect();
    assert_eq!(sizes(8, &cube), [4; 5]);
    // This graph is two triangles that share an atom, and a separate triangle.
    let apart = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4), (5, 6), (6, 7), (5, 7)];
    assert_eq!(smallest_rings(8, &apart).len(), 3);
    for ring in smallest_rings(7, &norbornane) {
        let mut bonds = ring.iter().zip(ring.iter().cycle().skip(1)).map(|(&a, &b)| (a.min(b), a.max(b)));
        assert!(bonds.all(|bond| norbornane.contains(&bond)));
    }
}
