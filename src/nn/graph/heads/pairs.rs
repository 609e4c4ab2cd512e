//! Logits for pairs of nodes: one bilinear form over all pairs of each graph.

use tch::{Kind, Tensor};

use crate::graph::{GraphArrays, GraphBatch};
use crate::nn::{Linear, Scope};

/// Largest ratio of a graph's size to the average before it goes to a padded group of its own. This keeps padding in
/// proportion.
pub(in crate::nn) const SIZE_STEP: usize = 8;

/// Factor on the initial weights of pair features, relative to other layers. Counts of walks are large in dense graphs,
/// so without it their pairs would start with very large logits.
pub(in crate::nn) const FEATURES_SCALE: f64 = 0.05;

/// Number of nodes per unit of width from which query and key are merged. For fewer nodes, multiplying their weights
/// costs more than it saves.
const MERGE_FROM: i64 = 3;

/// `q(h_a) . k(h_b)` for each column, symmetric where edges are undirected.
#[derive(Debug)]
pub(crate) struct PairHead {
    pub(in crate::nn) query: Linear,
    pub(in crate::nn) key: Linear,
    pub(in crate::nn) bias: Tensor,
    /// Columns, and features per column.
    pub(in crate::nn) shape: (i64, i64),
    /// Weights of pair features from each end of the pair, `[2 * features * columns]` outputs.
    pub(in crate::nn) features: Option<Linear>,
}

/// Node rows whose products are the scores of pairs: for first nodes, for second nodes, and a term of the second node
/// alone.
struct Ends {
    first: Tensor,
    second: Tensor,
    extra: Option<Tensor>,
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
            shape: (columns, depth),
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

    /// The logits of every ordered pair of every graph, `[sum of n * n, columns]`, given pair features of `[sum of n *
    /// n, features]`.
    pub(crate) fn all_pairs(&self, batch: &GraphBatch<'_>, nodes: &Tensor, features: Option<&Tensor>) -> Tensor {
        let scores = match batch.arrays.same_size() {
            Some(n) if n > 0 => self.bilinear(&self.ends(nodes), n as i64, batch.arrays.is_directed()),
            _ => self.by_size(batch, &self.query.forward(nodes), &self.key.forward(nodes)),
        };
        let scores = scores / (self.shape.1 as f64).sqrt() + &self.bias;
        match (&self.features, features) {
            (Some(layer), Some(features)) => scores + self.weigh(batch, &layer.forward(nodes), features),
            _ => scores,
        }
    }

    /// The contribution of each node to a pair, as its first and as its second node.
    ///
    /// With one column, `(Q a + q) . (K b + k) = a . (Q'K b + Q'k) + q . (K b + k)`. So one product of the two weights
    /// and one product with the nodes replace two products with the nodes.
    fn ends(&self, nodes: &Tensor) -> Ends {
        let (rows, width) = (nodes.size()[0], nodes.size()[1]);
        if let (1, Some(q), Some(k), true) =
            (self.shape.0, self.query.bias(), self.key.bias(), rows >= MERGE_FROM * width)
        {
            let (query, key) = (self.query.weight(), self.key.weight());
            let transposed = query.tr();
            return Ends {
                first: nodes.shallow_clone(),
                second: nodes.linear(&transposed.matmul(key), Some(&transposed.mv(k))),
                extra: Some(nodes.mv(&key.tr().mv(q)) + q.dot(k)),
            };
        }
        Ends { first: self.query.forward(nodes), second: self.key.forward(nodes), extra: None }
    }

    /// Scores of graphs that all have `n` nodes, `[B * n * n, columns]`.
    fn bilinear(&self, ends: &Ends, n: i64, directed: bool) -> Tensor {
        let columns = self.shape.0;
        let split = |x: &Tensor| x.view([-1, n, columns, x.size()[1] / columns]).transpose(1, 2);
        let products = split(&ends.first).matmul(&split(&ends.second).transpose(2, 3));
        let scores = match &ends.extra {
            Some(extra) => products + extra.view([-1, 1, 1, n]),
            None => products,
        };
        let scores = if directed { scores } else { &scores + scores.transpose(2, 3) };
        match columns {
            1 => scores.reshape([-1, 1]),
            _ => scores.permute([0, 2, 3, 1]).reshape([-1, columns]),
        }
    }

    /// Scores of graphs of different sizes. Each group of graphs of similar size is padded to its own largest, never to
    /// the batch's.
    fn by_size(&self, batch: &GraphBatch<'_>, query: &Tensor, key: &Tensor) -> Tensor {
        let (arrays, sizes) = (batch.arrays, batch.arrays.sizes().collect::<Vec<_>>());
        let mut groups: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
        for (g, &n) in sizes.iter().enumerate().filter(|(_, n)| **n > 0) {
            groups.entry(n.div_ceil(SIZE_STEP)).or_default().push(g);
        }
        let zero = Tensor::zeros([1, query.size()[1]], (query.kind(), query.device()));
        let padding = arrays.nodes.len() as i64;
        let padded = |x: &Tensor| Tensor::cat(&[x, &zero], 0);
        let (query, key) = (padded(query), padded(key));
        let mut parts = Vec::new();
        let mut place = vec![0i64; arrays.n_pairs()];
        let mut base = 0;
        for graphs in groups.values() {
            let largest = graphs.iter().map(|&g| sizes[g]).max().unwrap_or(0);
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
            parts.push(self.bilinear(&Ends { first: q, second: k, extra: None }, largest as i64, arrays.is_directed()));
            base += (graphs.len() * largest * largest) as i64;
        }
        if parts.is_empty() {
            return Tensor::zeros([0, self.shape.0], (query.kind(), query.device()));
        }
        Tensor::cat(&parts, 0).index_select(0, &Tensor::from_slice(&place).to_device(query.device()))
    }

    /// The sum of pair features, weighted by both ends, `[sum of n * n, columns]`.
    fn weigh(&self, batch: &GraphBatch<'_>, weights: &Tensor, features: &Tensor) -> Tensor {
        let columns = self.shape.0;
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

/// Features of every ordered pair that message passing can't see, `[sum of n * n, 1 + walks]`: whether there is an edge
/// back, and `log(1 + number of walks)` of lengths `2..=walks + 1` from the first node to the second.
///
/// Plain message passing gives automorphic nodes equal features, so pairs that aren't equivalent can tie: in 0->1, 2->3
/// it can't tell (1, 0), which closes a 2-cycle, from (1, 2).
pub(crate) fn pair_features(batch: &GraphBatch<'_>, walks: usize, kind: Kind) -> Tensor {
    let values = host_pair_features(batch.arrays, walks);
    crate::tensor::from_host(&values, kind, batch.device()).view([-1, 1 + walks as i64])
}

/// The pair features on the host, row by row.
pub(in crate::nn) fn host_pair_features(arrays: &GraphArrays, walks: usize) -> Vec<f64> {
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
    use tch::Device;

    use super::*;
    use crate::Rng;
    use crate::graph::{Edge, GraphKind, GraphSchema, GraphState, GraphStates};
    use crate::nn::Parameters;

    /// The same graphs in a batch small enough for two products, and in one so large that query and key are merged.
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
                assert_eq!(head.ends(&nodes).extra.is_some(), copies > 1);
                let pairs = head.all_pairs(&batch, &nodes, None);
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
