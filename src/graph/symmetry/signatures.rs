//! The signatures of nodes, which are hashes of a node and its surroundings. Nodes that an isomorphism maps
//! to each other have equal signatures. If all nodes of a graph have different signatures, no search is
//! needed.

use crate::graph::state::mix;
use crate::graph::{Edge, GraphState};

/// The number of rounds of refinement, each of which mixes the signatures of a node's neighbours into the
/// node's signature. More rounds would hardly distinguish more nodes.
const N_ROUNDS: usize = 3;
/// The bit of an edge's colour (an integer computed from its class and attributes) that distinguishes
/// incoming edges from outgoing ones.
const INCOMING: u64 = 1 << 63;

/// Replaces the contents of `colours` by the distinct combinations of class and attributes of a graph's
/// edges, sorted. The list is empty if no edge has a class other than 0 or an attribute.
pub(super) fn list_colours(graph: &GraphState, colours: &mut Vec<Edge>) {
    colours.clear();
    if graph.has_edge_weights() {
        colours.extend(graph.stored_edges().map(|(_, _, weight)| weight));
        colours.sort_unstable();
        colours.dedup();
    }
}

/// Returns the two nodes of each edge, and the edge's colour: the rank of its class and attributes in
/// `colours`.
pub(super) fn ranked_edges<'a>(
    graph: &'a GraphState,
    colours: &'a [Edge],
) -> impl ExactSizeIterator<Item = (usize, usize, usize)> + 'a {
    let rank = |weight: Edge| colours.partition_point(|other| *other < weight);
    graph.stored_edges().map(move |(a, b, weight)| (a, b, rank(weight)))
}

/// Mixes the signatures of a node's neighbours into the signature of the node, for every node. `edges` holds
/// the two nodes and the colour of each edge, and `around` is a buffer with an entry per node.
pub(super) fn refine_signatures(
    edges: impl Iterator<Item = (usize, usize, u64)>,
    is_directed: bool,
    signatures: &mut [u64],
    around: &mut [u64],
) {
    let incoming = if is_directed { INCOMING } else { 0 };
    around.copy_from_slice(signatures);
    for (a, b, colour) in edges {
        around[a] = around[a].wrapping_add(mix(signatures[b] ^ colour));
        around[b] = around[b].wrapping_add(mix(signatures[a] ^ colour ^ incoming));
    }
    for (signature, around) in signatures.iter_mut().zip(around) {
        *signature = mix(*around);
    }
}

/// Computes a signature for each node. The signature depends on the node's cell, on its outgoing and incoming
/// edges and their colours, and on the nodes at their other ends.
///
/// `cells` holds the cell of each node (a number for its class and attributes), and `colours` holds the
/// distinct combinations of class and attributes of the edges, sorted. Signatures don't depend on labels:
/// nodes that an isomorphism maps to each other have the same signature.
pub(super) fn node_signatures(graph: &GraphState, cells: &[u32], colours: &[Edge]) -> Vec<u64> {
    let mut signatures: Vec<u64> = cells.iter().map(|&cell| mix(cell.into())).collect();
    let mut around = vec![0_u64; signatures.len()];
    for _ in 0..N_ROUNDS {
        let edges = ranked_edges(graph, colours).map(|(a, b, rank)| (a, b, mix(rank as u64)));
        refine_signatures(edges, graph.is_directed(), &mut signatures, &mut around);
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
