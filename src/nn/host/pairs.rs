//! Logits for pairs of nodes, on the host.

use super::{HostLinear, floats};
use crate::graph::GraphArrays;
use crate::nn::graph::PairHead;
use crate::parallel;

/// Fewest graphs that a thread scores.
const GRAPHS_PER_THREAD: usize = 16;

/// A copy of a [`PairHead`] on the host.
#[derive(Debug)]
pub(crate) struct HostPairHead {
    query: HostLinear,
    key: HostLinear,
    bias: Vec<f32>,
    depth: usize,
    features: Option<HostLinear>,
}

impl PairHead {
    /// A copy of the head on the host.
    pub(crate) fn on_host(&self) -> HostPairHead {
        HostPairHead {
            query: HostLinear::of(&self.query),
            key: HostLinear::of(&self.key),
            bias: floats(&self.bias),
            depth: self.shape.1 as usize,
            features: self.features.as_ref().map(HostLinear::of),
        }
    }
}

/// Queries and keys of nodes, and weights of pair features, from which pairs are scored.
struct PairRows<'a> {
    query: Vec<f32>,
    key: Vec<f32>,
    depth: usize,
    columns: usize,
    /// Weights from nodes, features of pairs, and the number of features per pair.
    features: Option<(Vec<f32>, &'a [f64], usize)>,
}

impl HostPairHead {
    /// Same as [`PairHead::all_pairs`].
    pub(in crate::nn) fn all_pairs(&self, arrays: &GraphArrays, nodes: &[f32], features: Option<&[f64]>) -> Vec<f32> {
        let rows = self.rows(nodes, arrays.nodes.len(), features);
        let directed = arrays.is_directed();
        let graphs: Vec<usize> = (0..arrays.len()).collect();
        let logits = parallel::map(&graphs, GRAPHS_PER_THREAD, |&g| {
            let (first, first_pair) = (arrays.node_ptr[g], arrays.pair_ptr[g]);
            let n = arrays.node_ptr[g + 1] - first;
            let mut out = Vec::with_capacity(n * n * self.bias.len());
            for pair in 0..n * n {
                let (a, b) = (first + pair / n, first + pair % n);
                for (column, bias) in self.bias.iter().enumerate() {
                    let score = rows.score((a, b), column, directed);
                    out.push(score + bias + rows.weigh((a, b), first_pair + pair, column, directed));
                }
            }
            out
        });
        logits.concat()
    }

    fn rows<'a>(&self, nodes: &[f32], n: usize, features: Option<&'a [f64]>) -> PairRows<'a> {
        let columns = self.bias.len();
        let mut query = self.query.rows(nodes, n);
        query.iter_mut().for_each(|x| *x /= (self.depth as f32).sqrt());
        let features = self.features.as_ref().zip(features).map(|(layer, features)| {
            let weights = layer.rows(nodes, n);
            let per_pair = weights.len() / n.max(1) / (2 * columns);
            (weights, features, per_pair)
        });
        PairRows { query, key: self.key.rows(nodes, n), depth: self.depth, columns, features }
    }
}

impl PairRows<'_> {
    fn score(&self, (a, b): (usize, usize), column: usize, directed: bool) -> f32 {
        let start = |node: usize| (node * self.columns + column) * self.depth;
        let product =
            |a: usize, b: usize| dot(&self.query[start(a)..][..self.depth], &self.key[start(b)..][..self.depth]);
        if directed { product(a, b) } else { product(a, b) + product(b, a) }
    }

    /// The sum of a pair's features, weighted by both ends; 0 without features.
    fn weigh(&self, (a, b): (usize, usize), pair: usize, column: usize, directed: bool) -> f32 {
        let Some((weights, features, n)) = &self.features else { return 0.0 };
        // Columns of a feature are adjacent; the weights from second ends come after those from first ends.
        let of = |node: usize, end: usize, k: usize| weights[((node * 2 + end) * n + k) * self.columns + column];
        let weight = |k: usize| match directed {
            true => of(a, 0, k) + of(b, 1, k),
            false => of(a, 0, k) + of(b, 1, k) + of(b, 0, k) + of(a, 1, k),
        };
        features[pair * n..][..*n].iter().enumerate().map(|(k, &feature)| weight(k) * feature as f32).sum()
    }
}

/// The dot product in eight parallel sums, which fit one register.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, rest_a) = a.as_chunks::<8>();
    let (b, rest_b) = b.as_chunks::<8>();
    let mut sums = [0.0f32; 8];
    for (a, b) in a.iter().zip(b) {
        for k in 0..8 {
            sums[k] += a[k] * b[k];
        }
    }
    sums.iter().sum::<f32>() + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f32>()
}
