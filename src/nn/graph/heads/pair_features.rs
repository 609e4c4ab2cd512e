//! Features of pairs of nodes.

use crate::graph::GraphArrays;

/// Computes features of every ordered pair of nodes, `[sum of n * n, 1 + walks]`, which message passing can't
/// compute. The first feature is 1 if there is an edge from the second node to the first, otherwise 0. The
/// other features are `log(1 + number of walks)` for walks of the lengths `2..=walks + 1` from the first node
/// to the second.
///
/// For example, message passing gives nodes 0 and 2 equal embeddings in the graph with the edges 0->1 and
/// 2->3. Without pair features, the pair (1, 0), which closes a cycle, gets the same logit as (1, 2).
pub(in crate::nn) fn pair_features(arrays: &GraphArrays, walks: usize) -> Vec<f64> {
    let columns = 1 + walks;
    let neighbours = arrays.neighbours();
    let mut values = vec![0.0; arrays.n_pairs() * columns];
    for (nodes, pairs) in arrays.node_ptr.windows(2).zip(arrays.pair_ptr.windows(2)) {
        let first = nodes[0];
        let n = nodes[1] - nodes[0];
        let successors = |i: usize| {
            let targets = neighbours.outgoing(first + i).unwrap_or_else(|| neighbours.incoming(first + i));
            targets.iter().map(move |&(to, _)| to as usize - first)
        };
        let rows = &mut values[pairs[0] * columns..pairs[1] * columns];
        let mut counts = vec![0.0f64; n * n];
        for i in 0..n {
            for j in successors(i) {
                counts[i * n + j] = 1.0;
                rows[(j * n + i) * columns] = 1.0;
            }
        }
        for length in 1..=walks {
            let mut longer = vec![0.0; n * n];
            for i in 0..n {
                for via in successors(i) {
                    for j in 0..n {
                        longer[i * n + j] += counts[via * n + j];
                    }
                }
            }
            counts = longer;
            for (pair, &count) in counts.iter().enumerate() {
                rows[pair * columns + length] = count.ln_1p();
            }
        }
    }
    values
}
