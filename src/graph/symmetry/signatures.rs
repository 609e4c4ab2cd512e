//! The signatures of nodes. If all nodes of a graph have different signatures, no search is needed.

use super::key::raw_edges;
use super::reduce::mix;
use crate::graph::{Edge, GraphState};

/// The number of rounds of refinement; more rounds hardly distinguish more nodes.
const N_ROUNDS: usize = 3;
/// The bit that distinguishes incoming edges from outgoing ones.
const INCOMING: u64 = 1 << 63;

/// Computes a signature for each node from its cell and from the outgoing and incoming edges, their colours,
/// and the nodes at their other ends.
///
/// `cells` has the cell of each node, `colours` the distinct weights of edges, sorted. Signatures don't
/// depend on labels: nodes that an isomorphism takes to each other have the same signature.
pub(super) fn node_signatures(graph: &GraphState, cells: &[u32], colours: &[Edge]) -> Vec<u64> {
    let mut signatures: Vec<u64> = cells.iter().map(|&cell| mix(cell.into())).collect();
    let mut around = vec![0_u64; signatures.len()];
    let incoming = if graph.is_directed() { INCOMING } else { 0 };
    for _ in 0..N_ROUNDS {
        around.copy_from_slice(&signatures);
        for edge in raw_edges(graph) {
            let (a, b) = (edge.source().index(), edge.target().index());
            let colour = mix(colours.partition_point(|other| *other < edge.weight) as u64);
            around[a] = around[a].wrapping_add(mix(signatures[b] ^ colour));
            around[b] = around[b].wrapping_add(mix(signatures[a] ^ colour ^ incoming));
        }
        signatures.iter_mut().zip(&around).for_each(|(signature, &around)| *signature = mix(around));
    }
    signatures
}

/// Returns the number of nodes minus the number of different signatures.
pub(super) fn count_duplicates(mut signatures: Vec<u64>) -> usize {
    let n = signatures.len();
    signatures.sort_unstable();
    signatures.dedup();
    n - signatures.len()
}
