//! Logits for pairs of nodes: one bilinear form over all pairs of each graph.

use tch::Tensor;

use crate::graph::{GraphArrays, GraphBatch};
use crate::nn::graph::engine::{Engine, HostRows};
use crate::nn::{Linear, Scope};
use crate::parallel;

/// Graphs whose sizes fall into one step of so many nodes are padded to the largest of them. This keeps
/// padding in proportion.
const SIZE_STEP: usize = 8;

/// Factor on the initial weights of pair features, relative to other layers. Counts of walks are large in
/// dense graphs, so without it their pairs would start with very large logits.
pub(in crate::nn) const FEATURES_SCALE: f64 = 0.05;

/// Number of nodes per unit of width from which query and key are merged. For fewer nodes, multiplying their
/// weights costs more than it saves.
const MERGE_FROM: i64 = 3;

/// Fewest graphs whose pairs a thread scores on the host.
pub(in crate::nn) const GRAPHS_PER_THREAD: usize = 16;

/// The graphs of a batch, grouped by size, so that padding one large graph doesn't widen small ones.
pub(in crate::nn) fn size_groups(arrays: &GraphArrays) -> impl Iterator<Item = Vec<usize>> {
    let mut groups: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
    for (g, n) in arrays.sizes().enumerate() {
        groups.entry(n.div_ceil(SIZE_STEP)).or_default().push(g);
    }
    groups.into_values()
}

/// `q(h_a) . k(h_b)` for each column, symmetric where edges are undirected.
#[derive(Debug)]
pub(crate) struct PairHead {
    query: Linear,
    key: Linear,
    bias: Tensor,
    columns: usize,
    /// Weights of pair features from each end of the pair, `[2 * features * columns]` outputs.
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

    /// Multiplies all logits by a factor; called before training.
    pub(crate) fn scale(&self, factor: f64) {
        self.query.scale(factor);
        if let Some(features) = &self.features {
            features.scale(factor);
        }
    }

    /// The logits of every ordered pair of every graph, `[sum of n * n, columns]`, given pair features of
    /// `[sum of n * n, features]`.
    pub(crate) fn forward<E: Engine>(&self, engine: &E, nodes: &E::Rows, features: Option<&E::Rows>) -> E::Rows {
        let scores = engine.pair_scores(&self.query, &self.key, self.columns, nodes);
        let scores = engine.add(scores, &engine.parameter(&self.bias));
        match (&self.features, features) {
            (Some(layer), Some(features)) => {
                engine.add(scores, &engine.weigh_pairs(&engine.linear(layer, nodes), self.columns, features))
            }
            _ => scores,
        }
    }
}

/// Node rows whose products are the scores of pairs: for first nodes, for second nodes, and a term of the
/// second node alone.
struct Ends {
    first: Tensor,
    second: Tensor,
    extra: Option<Tensor>,
}

impl Ends {
    /// The contribution of each node to a pair, as its first and as its second node.
    ///
    /// With one column, `(Q a + q) . (K b + k) = a . (Q'K b + Q'k) + q . (K b + k)`. So one product of the
    /// two weights and one product with the nodes replace two products with the nodes.
    fn new(query: &Linear, key: &Linear, columns: i64, nodes: &Tensor) -> Self {
        let (rows, width) = (nodes.size()[0], nodes.size()[1]);
        if let (1, Some(q), Some(k), true) = (columns, query.bias(), key.bias(), rows >= MERGE_FROM * width) {
            let (query, key) = (query.weight(), key.weight());
            let transposed = query.tr();
            return Self {
                first: nodes.shallow_clone(),
                second: nodes.linear(&transposed.matmul(key), Some(&transposed.mv(k))),
                extra: Some(nodes.mv(&key.tr().mv(q)) + q.dot(k)),
            };
        }
        Self { first: query.forward(nodes), second: key.forward(nodes), extra: None }
    }

    /// Scores of graphs that all have `n` nodes, `[B * n * n, columns]`.
    fn bilinear(&self, columns: i64, n: i64, directed: bool) -> Tensor {
        let split = |x: &Tensor| x.view([-1, n, columns, x.size()[1] / columns]).transpose(1, 2);
        let products = split(&self.first).matmul(&split(&self.second).transpose(2, 3));
        let scores = match &self.extra {
            Some(extra) => products + extra.view([-1, 1, 1, n]),
            None => products,
        };
        let scores = if directed { scores } else { &scores + scores.transpose(2, 3) };
        match columns {
            1 => scores.reshape([-1, 1]),
            _ => scores.permute([0, 2, 3, 1]).reshape([-1, columns]),
        }
    }

    /// Scores of graphs of different sizes. Each group of graphs of similar size is padded to its own
    /// largest, never to the batch's.
    fn by_size(&self, batch: &GraphBatch<'_>, columns: i64) -> Tensor {
        let (query, key) = (&self.first, &self.second);
        let (arrays, sizes) = (batch.arrays, batch.arrays.sizes().collect::<Vec<_>>());
        let zero = Tensor::zeros([1, query.size()[1]], (query.kind(), query.device()));
        let padding = arrays.nodes.len() as i64;
        let padded = |x: &Tensor| Tensor::cat(&[x, &zero], 0);
        let (query, key) = (padded(query), padded(key));
        let mut parts = Vec::new();
        let mut place = vec![0i64; arrays.n_pairs()];
        let mut base = 0;
        for graphs in size_groups(arrays) {
            let largest = graphs.iter().map(|&g| sizes[g]).max().unwrap_or(0);
            if largest == 0 {
                continue;
            }
            let mut gather = Vec::with_capacity(graphs.len() * largest);
            for (k, &g) in graphs.iter().enumerate() {
                let (n, first) = (sizes[g], arrays.node_ptr[g]);
                gather.extend((0..largest).map(|i| if i < n { (first + i) as i64 } else { padding }));
                for i in 0..n {
                    for j in 0..n {
                        let at = base + ((k * largest + i) * largest + j) as i64;
                        place[arrays.pair_ptr[g] + i * n + j] = at;
                    }
                }
            }
            let gather = Tensor::from_slice(&gather).to_device(query.device());
            let (q, k) = (query.index_select(0, &gather), key.index_select(0, &gather));
            let ends = Self { first: q, second: k, extra: None };
            parts.push(ends.bilinear(columns, largest as i64, arrays.is_directed()));
            base += (graphs.len() * largest * largest) as i64;
        }
        if parts.is_empty() {
            return Tensor::zeros([0, columns], (query.kind(), query.device()));
        }
        Tensor::cat(&parts, 0).index_select(0, &Tensor::from_slice(&place).to_device(query.device()))
    }
}

/// [`Engine::pair_scores`] of tensors.
pub(in crate::nn) fn scores_of_pairs(
    batch: &GraphBatch<'_>,
    query: &Linear,
    key: &Linear,
    columns: i64,
    nodes: &Tensor,
) -> Tensor {
    let scores = match batch.arrays.same_size() {
        Some(n) if n > 0 => {
            Ends::new(query, key, columns, nodes).bilinear(columns, n as i64, batch.arrays.is_directed())
        }
        _ => {
            let ends = Ends { first: query.forward(nodes), second: key.forward(nodes), extra: None };
            ends.by_size(batch, columns)
        }
    };
    scores / ((query.weight().size()[0] / columns) as f64).sqrt()
}

/// [`Engine::weigh_pairs`] of tensors.
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

/// [`Engine::pair_scores`] on the host, of rows of queries and keys.
pub(in crate::nn) fn host_scores_of_pairs(
    arrays: &GraphArrays,
    mut query: HostRows,
    key: &HostRows,
    columns: usize,
) -> Vec<f32> {
    let depth = query.width / columns;
    query.values.iter_mut().for_each(|x| *x /= (depth as f32).sqrt());
    let directed = arrays.is_directed();
    of_host_pairs(arrays, columns, |a, b, _, column| {
        let part = column * depth..(column + 1) * depth;
        let product = |a, b| dot(&query.row(a)[part.clone()], &key.row(b)[part.clone()]);
        if directed { product(a, b) } else { product(a, b) + product(b, a) }
    })
}

/// [`Engine::weigh_pairs`] on the host.
pub(in crate::nn) fn host_weighted_features(
    arrays: &GraphArrays,
    weights: &HostRows,
    columns: usize,
    features: &HostRows,
) -> Vec<f32> {
    let (n, directed) = (features.width, arrays.is_directed());
    of_host_pairs(arrays, columns, |a, b, pair, column| {
        // Columns of a feature are adjacent; the weights from second ends come after those from first ends.
        let of = |node: usize, end: usize, k: usize| weights.row(node)[(end * n + k) * columns + column];
        let weight = |k: usize| {
            let along = of(a, 0, k) + of(b, 1, k);
            if directed { along } else { along + of(b, 0, k) + of(a, 1, k) }
        };
        features.row(pair).iter().enumerate().map(|(k, &feature)| weight(k) * feature).sum()
    })
}

/// A number for each ordered pair of nodes of each graph and each column, from both nodes, the pair's own
/// number and the column's.
fn of_host_pairs(
    arrays: &GraphArrays,
    columns: usize,
    number: impl Fn(usize, usize, usize, usize) -> f32 + Sync + Send,
) -> Vec<f32> {
    let graphs: Vec<usize> = (0..arrays.len()).collect();
    let numbers = parallel::map(&graphs, GRAPHS_PER_THREAD, |&g| {
        let (first, first_pair) = (arrays.node_ptr[g], arrays.pair_ptr[g]);
        let n = arrays.node_ptr[g + 1] - first;
        let mut out = Vec::with_capacity(n * n * columns);
        for pair in 0..n * n {
            let (a, b) = (first + pair / n, first + pair % n);
            out.extend((0..columns).map(|column| number(a, b, first_pair + pair, column)));
        }
        out
    });
    numbers.concat()
}

/// The dot product in eight parallel sums, which fit one register.
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

/// The row of each edge among all ordered pairs of all graphs, `[E]`.
pub(in crate::nn) fn edge_pairs(batch: &GraphBatch<'_>) -> Tensor {
    batch.tensor(batch.arrays.edge_pairs().map(|pair| pair as i64))
}

/// The node rows of both ends of every ordered pair, `[sum of n * n]` each.
fn pair_ends(batch: &GraphBatch<'_>) -> (Tensor, Tensor) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for ends in batch.arrays.node_ptr.windows(2) {
        for node in ends[0]..ends[1] {
            first.extend(std::iter::repeat_n(node as i64, ends[1] - ends[0]));
            second.extend((ends[0]..ends[1]).map(|other| other as i64));
        }
    }
    (batch.tensor(first.into_iter()), batch.tensor(second.into_iter()))
}

/// Features of every ordered pair that message passing can't see, `[sum of n * n, 1 + walks]`: whether there
/// is an edge back, and `log(1 + number of walks)` of lengths `2..=walks + 1` from the first node to the
/// second.
///
/// Plain message passing gives automorphic nodes equal features, so pairs that aren't equivalent can tie: in
/// 0->1, 2->3 it can't tell (1, 0), which closes a 2-cycle, from (1, 2).
pub(in crate::nn) fn pair_features(arrays: &GraphArrays, walks: usize) -> Vec<f64> {
    let (columns, neighbours) = (1 + walks, arrays.neighbours());
    let mut values = vec![0.0; arrays.n_pairs() * columns];
    for (nodes, pairs) in arrays.node_ptr.windows(2).zip(arrays.pair_ptr.windows(2)) {
        let (first, n) = (nodes[0], nodes[1] - nodes[0]);
        let ones = |i: usize| {
            let targets = neighbours.outgoing(first + i).unwrap_or_else(|| neighbours.incoming(first + i));
            targets.iter().map(move |&(to, _)| to as usize - first)
        };
        let rows = &mut values[pairs[0] * columns..pairs[1] * columns];
        let mut counts = vec![0.0f64; n * n];
        for i in 0..n {
            for j in ones(i) {
                counts[i * n + j] = 1.0;
                rows[(j * n + i) * columns] = 1.0;
            }
        }
        for length in 1..=walks {
            let mut longer = vec![0.0; n * n];
            for i in 0..n {
                for via in ones(i) {
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

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::graph::{Edge, GraphKind, GraphSchema, GraphState, GraphStates};
    use crate::nn::Parameters;
    use crate::nn::graph::engine::TensorGraphs;

    /// The same graphs in a batch small enough for two products, and in one so large that query and key are
    /// merged.
    #[test]
    fn merged_query_and_key_give_the_same_scores_and_gradients() {
        for kind in [GraphKind::Directed, GraphKind::Undirected] {
            let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
            let head = PairHead::new(&mut parameters.scope(&mut Rng::seeded(1)), 16, 1, 0);
            let mut graph = GraphState::with_nodes(kind, 3);
            graph.add_edge(0, 2, Edge::default()).unwrap();
            let values: Vec<f64> = (0..48).map(|k| (f64::from(k) * 0.7).sin()).collect();
            let one = Tensor::from_slice(&values).view([3, 16]);
            let mut outcomes = Vec::new();
            for copies in [1, 16] {
                let states = GraphStates::from(vec![graph.clone(); copies]);
                let schema = GraphSchema::plain(kind, 3);
                let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
                let nodes = one.repeat([copies as i64, 1]);
                assert_eq!(Ends::new(&head.query, &head.key, 1, &nodes).extra.is_some(), copies > 1);
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
