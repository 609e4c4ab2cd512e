//! The looks of nodes: where they tell all of them apart, there is nothing to search.

use super::key::raw_edges;
use super::reduce::mix;
use crate::graph::{Edge, GraphState};

/// Rounds after which more of them hardly tell more nodes apart.
const ROUNDS: usize = 3;
/// Makes an edge that arrives another thing than one that leaves.
const ARRIVES: u64 = 1 << 63;

/// A number for each node, by its cell and by the edges that leave it and arrive at it, with what is at their other ends. Labels
/// don't matter: nodes that an isomorphism takes to each other have the same number.
pub(super) fn looks(graph: &GraphState, cells: &[u32], colours: &[Edge]) -> Vec<u64> {
    let mut looks: Vec<u64> = cells.iter().map(|&cell| mix(cell.into())).collect();
    let mut around = vec![0_u64; looks.len()];
    let arrives = if graph.is_directed() { ARRIVES } else { 0 };
    for _ in 0..ROUNDS {
        around.copy_from_slice(&looks);
        for edge in raw_edges(graph) {
            let (a, b) = (edge.source().index(), edge.target().index());
            let colour = mix(colours.partition_point(|other| *other < edge.weight) as u64);
            around[a] = around[a].wrapping_add(mix(looks[b] ^ colour));
            around[b] = around[b].wrapping_add(mix(looks[a] ^ colour ^ arrives));
        }
        looks.iter_mut().zip(&around).for_each(|(look, &around)| *look = mix(around));
    }
    looks
}

/// The number of nodes that look like another one.
pub(super) fn n_alike(mut looks: Vec<u64>) -> usize {
    let n = looks.len();
    looks.sort_unstable();
    looks.dedup();
    n - looks.len()
}
