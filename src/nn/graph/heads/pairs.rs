//! The head that computes logits of pairs of nodes, from the embeddings of both nodes and the features of the
//! pair.

use tch::Tensor;

use crate::graph::{GraphArrays, GraphBatch};
use crate::nn::graph::engine::{HeadEngine, HostRows};
use crate::nn::{Linear, Scope};
use crate::parallel;
use crate::tensor::upload;

/// The number of successive graph sizes (numbers of nodes) that one group of graphs covers. The graphs of a
/// group are padded to the size of the largest one.
const SIZE_STEP: usize = 8;

/// The factor by which initial weights of layers for pair features are scaled. The factor keeps initial
/// logits small in dense graphs, where counts of walks are large.
pub(in crate::nn) const FEATURES_SCALE: f64 = 0.05;

/// The minimum ratio of nodes to embedding width for which `PairFactors` merges the linear layers of query
/// and key into one layer, to save time.
const MIN_NODES_PER_WIDTH_TO_MERGE: i64 = 3;

/// The minimum number of graphs per thread in computations on the host.
pub(in crate::nn) const GRAPHS_PER_THREAD: usize = 16;

/// Groups the graphs of a batch by size, to limit padding. Returns the indices of each group's graphs.
pub(in crate::nn) fn size_groups(arrays: &GraphArrays) -> impl Iterator<Item = Vec<usize>> {
    let mut groups: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
    for (g, n) in arrays.sizes().enumerate() {
        groups.entry(n.div_ceil(SIZE_STEP)).or_default().push(g);
    }
    groups.into_values()
}

/// A head whose logit of nodes `a` and `b` is the score `q(h_a) . k(h_b) / sqrt(depth)`, plus a bias and a
/// weighted sum of pair features. If edges are undirected, the terms of `(a, b)` and of `(b, a)` are added.
#[derive(Debug)]
pub(crate) struct PairHead {
    query: Linear,
    key: Linear,
    bias: Tensor,
    columns: usize,
    /// A layer with `2 * features * columns` outputs. For each node, the layer computes weights of pair
    /// features for pairs in which the node is first, and for pairs in which the node is second. The layer is
    /// `None` without pair features.
    features: Option<Linear>,
}

impl PairHead {
    pub(crate) fn new(scope: &mut Scope<'_>, width: i64, columns: i64, n_features: i64) -> Self {
        let depth = (width / columns).max(16);
        let features = |scope: &mut Scope<'_>| {
            let layer = Linear::new(&mut scope.sub("features"), width, 2 * n_features * columns);
            layer.scale(FEATURES_SCALE);
            layer
        };
        Self {
            query: Linear::new(&mut scope.sub("query"), width, columns * depth),
            key: Linear::new(&mut scope.sub("key"), width, columns * depth),
            bias: scope.constant("bias", &[columns], 0.0),
            columns: columns as usize,
            features: (n_features > 0).then(|| features(scope)),
        }
    }

    /// Multiplies all terms of the initial logits, except the bias, by a factor.
    pub(crate) fn scale(&self, factor: f64) {
        self.query.scale(factor);
        if let Some(features) = &self.features {
            features.scale(factor);
        }
    }

    /// Computes the logits of every ordered pair of nodes of every graph, `[sum of n * n, columns]`.
    /// `features` holds the pair features, `[sum of n * n, features]`.
    pub(crate) fn forward<E: HeadEngine>(
        &self,
        engine: &E,
        nodes: &E::Rows,
        features: Option<&E::Rows>,
    ) -> E::Rows {
        let scores = engine.pair_scores(&self.query, &self.key, self.columns, nodes);
        let scores = engine.add(scores, &engine.parameter(&self.bias));
        match (&self.features, features) {
            (Some(layer), Some(features)) => engine.add(
                scores,
                &engine.weighted_pair_features(&engine.linear(layer, nodes), self.columns, features),
            ),
            _ => scores,
        }
    }
}

/// The factors from which the scores of pairs are computed. The score of a pair times `sqrt(depth)` is the
/// scalar product of the first node's row of `first` and the second node's row of `second`. If `extra` is
/// given, the number in `extra` for the second node is added to this product.
struct PairFactors {
    /// The factor of each node as the first node of a pair, `[N, width]`.
    first: Tensor,
    /// The factor of each node as the second node of a pair, `[N, width]`.
    second: Tensor,
    /// A term of a pair's score that depends only on the second node of the pair, one number per node, `[N]`.
    extra: Option<Tensor>,
}

impl PairFactors {
    /// Computes the factors of each node. With one logit per pair and many nodes, the layers of query (weight
    /// `Q`, bias `q`) and key (`K`, `k`) are merged into one layer, which saves a product. `Q'` is the
    /// transpose of `Q` in the equation that allows this:
    /// `(Q a + q) . (K b + k) = a . (Q'K b + Q'k) + q . (K b + k)`.
    fn new(query: &Linear, key: &Linear, columns: i64, nodes: &Tensor) -> Self {
        let rows = nodes.size()[0];
        let width = nodes.size()[1];
        if let (1, Some(q), Some(k), true) =
            (columns, query.bias(), key.bias(), rows >= MIN_NODES_PER_WIDTH_TO_MERGE * width)
        {
            let query = query.weight();
            let key = key.weight();
            let transposed = query.tr();
            return Self {
                first: nodes.shallow_clone(),
                second: nodes.linear(&transposed.matmul(key), Some(&transposed.mv(k))),
                extra: Some(nodes.mv(&key.tr().mv(q)) + q.dot(k)),
            };
        }
        Self { first: query.forward(nodes), second: key.forward(nodes), extra: None }
    }

    /// Computes the scores of pairs in graphs that all have `n` nodes, `[B * n * n, columns]`.
    fn scores_of_equal_sizes(&self, columns: i64, n: i64, is_directed: bool) -> Tensor {
        let split = |x: &Tensor| x.view([-1, n, columns, x.size()[1] / columns]).transpose(1, 2);
        let products = split(&self.first).matmul(&split(&self.second).transpose(2, 3));
        let scores = match &self.extra {
            Some(extra) => products + extra.view([-1, 1, 1, n]),
            None => products,
        };
        let scores = if is_directed { scores } else { &scores + scores.transpose(2, 3) };
        match columns {
            1 => scores.reshape([-1, 1]),
            _ => scores.permute([0, 2, 3, 1]).reshape([-1, columns]),
        }
    }

    /// Computes the scores of pairs in graphs of different sizes, group by group to limit padding.
    fn scores_of_mixed_sizes(&self, batch: &GraphBatch<'_>, columns: i64) -> Tensor {
        let query = &self.first;
        let key = &self.second;
        let arrays = batch.arrays;
        let sizes: Vec<usize> = arrays.sizes().collect();
        let zero = Tensor::zeros([1, query.size()[1]], (query.kind(), query.device()));
        let padding = arrays.nodes.len() as i64;
        let query = Tensor::cat(&[query, &zero], 0);
        let key = Tensor::cat(&[key, &zero], 0);
        let mut parts = Vec::new();
        let mut position = vec![0i64; arrays.n_pairs()];
        let mut base = 0;
        for graphs in size_groups(arrays) {
            let largest = graphs.iter().map(|&g| sizes[g]).max().unwrap_or(0);
            if largest == 0 {
                continue;
            }
            let mut gather = Vec::with_capacity(graphs.len() * largest);
            for (k, &g) in graphs.iter().enumerate() {
                let n = sizes[g];
                let first = arrays.node_ptr[g];
                gather.extend((0..largest).map(|i| if i < n { (first + i) as i64 } else { padding }));
                for i in 0..n {
                    for j in 0..n {
                        position[arrays.pair_ptr[g] + i * n + j] =
                            base + ((k * largest + i) * largest + j) as i64;
                    }
                }
            }
            let gather = upload(&gather, query.device());
            let q = query.index_select(0, &gather);
            let k = key.index_select(0, &gather);
            let factors = Self { first: q, second: k, extra: None };
            parts.push(factors.scores_of_equal_sizes(columns, largest as i64, arrays.is_directed()));
            base += (graphs.len() * largest * largest) as i64;
        }
        if parts.is_empty() {
            return Tensor::zeros([0, columns], (query.kind(), query.device()));
        }
        Tensor::cat(&parts, 0).index_select(0, &upload(&position, query.device()))
    }
}

/// Implements [`HeadEngine::pair_scores`] for tensors.
pub(in crate::nn) fn scores_of_pairs(
    batch: &GraphBatch<'_>,
    query: &Linear,
    key: &Linear,
    columns: i64,
    nodes: &Tensor,
) -> Tensor {
    let is_directed = batch.arrays.is_directed();
    let scores = match batch.arrays.same_size() {
        Some(n) if n > 0 => {
            PairFactors::new(query, key, columns, nodes).scores_of_equal_sizes(columns, n as i64, is_directed)
        }
        _ => {
            let factors =
                PairFactors { first: query.forward(nodes), second: key.forward(nodes), extra: None };
            factors.scores_of_mixed_sizes(batch, columns)
        }
    };
    scores / ((query.weight().size()[0] / columns) as f64).sqrt()
}

/// Implements [`HeadEngine::weighted_pair_features`] for tensors.
pub(in crate::nn) fn weighted_features(
    batch: &GraphBatch<'_>,
    weights: &Tensor,
    columns: i64,
    features: &Tensor,
) -> Tensor {
    let (first, second) = pair_ends(batch);
    let halves = weights.chunk(2, 1);
    let shape = [features.size()[0], features.size()[1], columns];
    let at_pairs = |rows: &Tensor, ends: &Tensor| rows.index_select(0, ends).view(shape);
    let mut weight = at_pairs(&halves[0], &first) + at_pairs(&halves[1], &second);
    if !batch.arrays.is_directed() {
        weight = weight + at_pairs(&halves[0], &second) + at_pairs(&halves[1], &first);
    }
    (weight * features.unsqueeze(2)).sum_dim_intlist(1, false, weights.kind())
}

/// Implements [`HeadEngine::pair_scores`] on the host, from rows of queries and keys.
pub(in crate::nn) fn host_scores_of_pairs(
    arrays: &GraphArrays,
    mut query: HostRows,
    key: &HostRows,
    columns: usize,
) -> Vec<f32> {
    let depth = query.width / columns;
    for x in &mut query.values {
        *x /= (depth as f32).sqrt();
    }
    let is_directed = arrays.is_directed();
    map_pairs(arrays, columns, |a, b, _, column| {
        let part = column * depth..(column + 1) * depth;
        let product = |a, b| dot(&query.row(a)[part.clone()], &key.row(b)[part.clone()]);
        if is_directed { product(a, b) } else { product(a, b) + product(b, a) }
    })
}

/// Implements [`HeadEngine::weighted_pair_features`] on the host.
pub(in crate::nn) fn host_weighted_features(
    arrays: &GraphArrays,
    weights: &HostRows,
    columns: usize,
    features: &HostRows,
) -> Vec<f32> {
    let n = features.width;
    let is_directed = arrays.is_directed();
    map_pairs(arrays, columns, |a, b, pair, column| {
        // The weights for the first node of a pair come before the weights for the second node. For both
        // nodes, the weights of one feature for all columns of the result are adjacent.
        let node_weight =
            |node: usize, end: usize, k: usize| weights.row(node)[(end * n + k) * columns + column];
        let weight = |k: usize| {
            let along = node_weight(a, 0, k) + node_weight(b, 1, k);
            if is_directed { along } else { along + node_weight(b, 0, k) + node_weight(a, 1, k) }
        };
        features.row(pair).iter().enumerate().map(|(k, &feature)| weight(k) * feature).sum()
    })
}

/// Computes `number(first node, second node, pair, column)` for each ordered pair of nodes, and for each
/// column of the result, `[sum of n * n, columns]`.
fn map_pairs(
    arrays: &GraphArrays,
    columns: usize,
    number: impl Fn(usize, usize, usize, usize) -> f32 + Sync + Send,
) -> Vec<f32> {
    let graphs: Vec<usize> = (0..arrays.len()).collect();
    let numbers = parallel::map(&graphs, GRAPHS_PER_THREAD, |&g| {
        let first = arrays.node_ptr[g];
        let first_pair = arrays.pair_ptr[g];
        let n = arrays.node_ptr[g + 1] - first;
        let mut out = Vec::with_capacity(n * n * columns);
        for pair in 0..n * n {
            let a = first + pair / n;
            let b = first + pair % n;
            out.extend((0..columns).map(|column| number(a, b, first_pair + pair, column)));
        }
        out
    });
    numbers.concat()
}

/// Computes the dot product as eight parallel sums, because eight numbers fit into a vector register.
pub(in crate::nn) fn dot(a: &[f32], b: &[f32]) -> f32 {
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

/// Returns the index of each edge among the ordered pairs of nodes of all graphs, `[E]`.
pub(in crate::nn) fn edge_pairs(batch: &GraphBatch<'_>) -> Tensor {
    batch.tensor(batch.arrays.edge_pairs().map(|pair| pair as i64))
}

/// Returns the indices of the first and of the second node of every ordered pair, `[sum of n * n]` each.
fn pair_ends(batch: &GraphBatch<'_>) -> (Tensor, Tensor) {
    let mut first = Vec::new();
    let mut second = Vec::new();
    for ends in batch.arrays.node_ptr.windows(2) {
        for node in ends[0]..ends[1] {
            first.extend(std::iter::repeat_n(node as i64, ends[1] - ends[0]));
            second.extend((ends[0]..ends[1]).map(|other| other as i64));
        }
    }
    let ends = batch.tensor(first.into_iter().chain(second)).view([2, -1]);
    (ends.get(0), ends.get(1))
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::graph::{Edge, GraphKind, GraphSchema, GraphState, GraphStates};
    use crate::nn::Parameters;
    use crate::nn::graph::engine::TensorGraphs;

    /// Checks that merging the layers of query and key into one layer, as in large batches, changes neither
    /// scores nor gradients.
    #[test]
    fn merged_query_and_key_give_the_same_scores_and_gradients() {
        for kind in [GraphKind::Directed, GraphKind::Undirected] {
            let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
            let head = PairHead::new(&mut parameters.scope(&mut Rng::seeded(1)), 16, 1, 0);
            let mut graph = GraphState::with_nodes(kind, 3);
            graph.add_edge(0, 2, Edge::default()).unwrap();
            let values: Vec<f64> = (0..48).map(|k| (f64::from(k) * 0.7).sin()).collect();
            let rows = Tensor::from_slice(&values).view([3, 16]);
            let mut outcomes = Vec::new();
            for copies in [1, 16] {
                let states = GraphStates::from(vec![graph.clone(); copies]);
                let schema = GraphSchema::plain(kind, 3);
                let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
                let nodes = rows.repeat([copies as i64, 1]);
                assert_eq!(PairFactors::new(&head.query, &head.key, 1, &nodes).extra.is_some(), copies > 1);
                let pairs = head.forward(&TensorGraphs::new(&batch, Kind::Double), &nodes, None);
                pairs.square().sum(Kind::Double).backward();
                let gradients = parameters.iter().map(|p| {
                    let mut gradient = p.tensor.grad();
                    let mean = &gradient / copies as f64;
                    let _ = gradient.zero_();
                    mean
                });
                let gradients: Vec<Tensor> = gradients.collect();
                let scores = [pairs.narrow(0, 0, 9)];
                let flat: Vec<Tensor> = scores.iter().chain(&gradients).map(|t| t.reshape([-1])).collect();
                outcomes.push(Tensor::cat(&flat, 0).detach());
            }
            let largest = (&outcomes[0] - &outcomes[1]).abs().max().double_value(&[]);
            assert!(largest < 1e-12, "{kind:?}: {largest}");
        }
    }
}
