//! Which graphs have small rings only: a private part of gfn-molecules, compiled into this program.

#![allow(dead_code, reason = "tests call less of it than gfn-molecules does")]

use gfn::graph::{Edge, GraphKind, GraphState};

use small_rings::small_rings_span;

#[path = "../src/building/small_rings.rs"]
mod small_rings;

fn graph(n: usize, edges: &[(u32, u32)]) -> GraphState {
    let mut graph = GraphState::with_nodes(GraphKind::Undirected, n);
    edges.iter().for_each(|&(a, b)| graph.add_edge(a, b, Edge::default()).unwrap());
    graph
}

#[test]
fn fused_rings_are_sums_of_small_ones_and_their_envelope_is_not() {
    // Two rings of four that share an edge.
    let fused = graph(6, &[(0, 1), (1, 2), (2, 3), (0, 3), (2, 4), (4, 5), (3, 5)]);
    assert!(small_rings_span(&fused, 4, None) && !small_rings_span(&fused, 3, None));
    // Without the shared edge a ring of six is left; without another one, one of four.
    assert!(!small_rings_span(&fused, 4, Some((3, 2))) && small_rings_span(&fused, 6, Some((2, 3))));
    assert!(small_rings_span(&fused, 4, Some((0, 1))));
    // A prism over a pentagon: each edge is in a square, but squares alone don't make the pentagon.
    let mut edges = Vec::new();
    for k in 0..5 {
        edges.extend([(k, (k + 1) % 5), (5 + k, 5 + (k + 1) % 5), (k, 5 + k)]);
    }
    let prism = graph(10, &edges);
    assert!(!small_rings_span(&prism, 4, None) && small_rings_span(&prism, 5, None));
    assert!(small_rings_span(&graph(3, &[(0, 1), (1, 2)]), 3, None));
}
