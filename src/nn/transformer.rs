//! A graph transformer: attention along edges, and to and from a virtual node of each graph that carries the condition.

use tch::{Kind, Tensor};

use super::conv::EdgeFeatures;
use super::{LayerNorm, Linear, Scope};
use crate::graph::{GraphBatch, GraphSchema};

/// How much wider than the embedding the hidden layer of a feed-forward block is.
const FEED_FORWARD: i64 = 4;

/// Layers of attention and feed-forward blocks, each behind a layer norm and beside a residual connection.
///
/// Every node hears of its neighbours (both ways along an edge, told apart where edges are directed), of its graph's virtual
/// node and of itself; the virtual node of all nodes of its graph and of itself. As in recursionpharma/gflownet's
/// `GraphTransformer`, the virtual node starts as the embedded condition.
#[derive(Debug)]
pub(crate) struct Transformer {
    /// What a virtual node is before a condition is added, `[D]`.
    start: Tensor,
    layers: Vec<Layer>,
    norm: LayerNorm,
}

impl Transformer {
    pub(crate) fn new(scope: &mut Scope<'_>, schema: &GraphSchema, layers: usize, width: i64, heads: i64) -> Self {
        Self {
            start: scope.normal("virtual", &[width], 1.0),
            layers: (0..layers)
                .map(|k| Layer::new(&mut scope.sub(&format!("layer{k}")), schema, width, heads))
                .collect(),
            norm: LayerNorm::new(&mut scope.sub("norm"), width),
        }
    }

    /// Node values `[N, D]` and embedded conditions `[B, D]` to embeddings of nodes `[N, D]` and of virtual nodes `[B, D]`.
    pub(crate) fn forward(
        &self,
        batch: &GraphBatch<'_>,
        nodes: &Tensor,
        condition: Option<&Tensor>,
    ) -> (Tensor, Tensor) {
        let (n, b) = (batch.total_nodes() as i64, batch.len() as i64);
        let mut start = self.start.unsqueeze(0).expand([b, -1], false);
        if let Some(condition) = condition {
            start = condition + start;
        }
        if b == 0 {
            return (nodes.shallow_clone(), start);
        }
        let messages = Messages::new(batch, nodes.kind());
        let mut rows = Tensor::cat(&[nodes, &start], 0);
        for layer in &self.layers {
            rows = layer.forward(batch, &messages, &rows);
        }
        let rows = self.norm.forward(&rows);
        (rows.narrow(0, 0, n), rows.narrow(0, n, b))
    }
}

/// Who hears of whom; rows are all nodes, then the virtual node of each graph: `R = N + B`.
///
/// The `M` messages are those along edges, those against directed edges, virtual node to node, node to virtual node, and each
/// row to itself, so that nobody hears nothing.
struct Messages {
    /// The row that each message comes from, `[M]`.
    from: Tensor,
    /// The row that each message goes to, `[M]`.
    to: Tensor,
    /// The messages sorted by the row that they go to, `[M]`, and where each row's start and the last one's end, `[R + 1]`.
    order: Tensor,
    offsets: Tensor,
    /// log(1 + number of messages to each row), `[R, 1]`.
    log_degree: Tensor,
    /// Nodes, and rows.
    sizes: (i64, i64),
}

impl Messages {
    fn new(batch: &GraphBatch<'_>, kind: Kind) -> Self {
        let (n, b, device) = (batch.total_nodes(), batch.len(), batch.device());
        let mut ends = Vec::with_capacity(2 * batch.total_edges() + 3 * n + b);
        for (graph, &first) in batch.graphs().iter().zip(&batch.node_ptr) {
            for (i, j) in graph.edges() {
                let (i, j) = (first + i as usize, first + j as usize);
                ends.push((i, j));
                if !batch.directed {
                    ends.push((j, i));
                }
            }
        }
        if batch.directed {
            let against: Vec<_> = ends.iter().map(|&(i, j)| (j, i)).collect();
            ends.extend(against);
        }
        let virtual_of = |i: usize| n + batch.node_ptr.partition_point(|&start| start <= i) - 1;
        let virtual_rows: Vec<usize> = (0..n).map(virtual_of).collect();
        ends.extend(virtual_rows.iter().copied().zip(0..n));
        ends.extend((0..n).zip(virtual_rows.iter().copied()));
        ends.extend((0..n + b).map(|row| (row, row)));

        let mut offsets = vec![0i64; n + b + 1];
        for &(_, to) in &ends {
            offsets[to + 1] += 1;
        }
        let log_degree: Vec<f64> = offsets[1..].iter().map(|&degree| (degree as f64).ln_1p()).collect();
        for row in 0..n + b {
            offsets[row + 1] += offsets[row];
        }
        let mut place = offsets.clone();
        let mut order = vec![0i64; ends.len()];
        for (message, &(_, to)) in ends.iter().enumerate() {
            order[place[to] as usize] = message as i64;
            place[to] += 1;
        }
        let tensor = |values: &[i64]| Tensor::from_slice(values).to_device(device);
        let (from, to): (Vec<i64>, Vec<i64>) = ends.iter().map(|&(from, to)| (from as i64, to as i64)).unzip();
        Self {
            from: tensor(&from),
            to: tensor(&to),
            order: tensor(&order),
            offsets: tensor(&offsets),
            log_degree: crate::dist::from_host(&log_degree, kind, device).unsqueeze(1),
            sizes: (n as i64, (n + b) as i64),
        }
    }

    /// The softmax of scores `[M, heads]` among the messages to each row.
    fn softmax(&self, scores: &Tensor) -> Tensor {
        let sorted = scores.detach().index_select(0, &self.order);
        // The largest score cancels: it keeps the exponentials finite, and has no gradient.
        let largest = Tensor::segment_reduce(
            &sorted,
            "max",
            None::<&Tensor>,
            None,
            Some(&self.offsets),
            0,
            true,
            f64::NEG_INFINITY,
        );
        let weights = (scores - largest.index_select(0, &self.to)).exp();
        let sums = self.sum(&weights);
        weights / sums.index_select(0, &self.to)
    }

    /// The sum of `[M, ..]` over the messages to each row, `[R, ..]`.
    fn sum(&self, values: &Tensor) -> Tensor {
        let mut shape = values.size();
        shape[0] = self.sizes.1;
        Tensor::zeros(shape, (values.kind(), values.device())).index_add(0, &self.to, values)
    }
}

#[derive(Debug)]
struct Layer {
    norm: LayerNorm,
    /// Query, key and value side by side. Without a bias: a key's cancels in the softmax, a value's is one of the output's.
    project: Linear,
    /// What an edge adds to key and value, side by side.
    edges: EdgeFeatures,
    /// The same for messages that are no edges: from and to a virtual node, to oneself, and what is added against an edge.
    relations: Tensor,
    output: Linear,
    norm_feed: LayerNorm,
    feed: (Linear, Linear),
    heads: i64,
}

impl Layer {
    fn new(scope: &mut Scope<'_>, schema: &GraphSchema, width: i64, heads: i64) -> Self {
        let n_relations = if schema.kind == crate::graph::GraphKind::Directed { 4 } else { 3 };
        Self {
            norm: LayerNorm::new(&mut scope.sub("norm"), width),
            project: Linear::without_bias(&mut scope.sub("project"), width, 3 * width),
            edges: EdgeFeatures::new(&mut scope.sub("edges"), schema, 2 * width),
            relations: scope.normal("relations", &[n_relations, 2 * width], 1.0),
            output: Linear::new(&mut scope.sub("output"), 2 * width, width),
            norm_feed: LayerNorm::new(&mut scope.sub("norm_feed"), width),
            feed: (
                Linear::new(&mut scope.sub("feed_in"), width, FEED_FORWARD * width),
                Linear::new(&mut scope.sub("feed_out"), FEED_FORWARD * width, width),
            ),
            heads,
        }
    }

    fn forward(&self, batch: &GraphBatch<'_>, messages: &Messages, rows: &Tensor) -> Tensor {
        let heard = self.attend(batch, messages, &self.norm.forward(rows));
        // Attention averages, which hides how many there are; scaled by the degree it can count (Corso et al., *Principal
        // Neighbourhood Aggregation*, 2020, eq. 5).
        let counted = &heard * &messages.log_degree;
        let rows = rows + self.output.forward(&Tensor::cat(&[heard, counted], 1));
        let hidden = self.feed.0.forward(&self.norm_feed.forward(&rows)).relu();
        rows + self.feed.1.forward(&hidden)
    }

    /// Multi-head attention over the messages to each row, `[R, D]`.
    fn attend(&self, batch: &GraphBatch<'_>, messages: &Messages, rows: &Tensor) -> Tensor {
        let width = rows.size()[1];
        let depth = width / self.heads;
        let by_head = |x: &Tensor| x.view([-1, self.heads, depth]);
        let projected = self.project.forward(rows);
        let query = projected.narrow(1, 0, width).index_select(0, &messages.to);
        let sent =
            projected.narrow(1, width, 2 * width).index_select(0, &messages.from) + self.sent_along(batch, messages);
        let key = sent.narrow(1, 0, width);
        let scores = by_head(&(query * key)).sum_dim_intlist(2, false, rows.kind()) / (depth as f64).sqrt();
        let weights = messages.softmax(&scores).unsqueeze(2);
        let values = sent.narrow(1, width, width).reshape([-1, self.heads, depth]);
        messages.sum(&(values * weights)).view([-1, width])
    }

    /// What each message's kind, class and attributes add to key and value, `[M, 2 D]`.
    fn sent_along(&self, batch: &GraphBatch<'_>, messages: &Messages) -> Tensor {
        let (nodes, rows) = messages.sizes;
        let relation = |k: i64, n: i64| self.relations.narrow(0, k, 1).expand([n, -1], false);
        let edges = self.edges.forward(batch);
        let mut parts = Vec::with_capacity(5);
        if batch.directed {
            let against = &edges + self.relations.narrow(0, 3, 1);
            parts.extend([edges, against]);
        } else {
            parts.push(edges);
        }
        parts.extend([relation(0, nodes), relation(1, nodes), relation(2, rows)]);
        Tensor::cat(&parts, 0)
    }
}
