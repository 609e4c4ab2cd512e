//! The engine for training, which computes on tensors and records gradients.

use std::cell::{Cell, OnceCell};

use tch::{Device, Kind, Tensor};

use super::attention::{SLOPE, attention, softmax_sums};
use super::{Engine, HeadEngine};
use crate::Error;
use crate::graph::{GraphArrays, GraphBatch};
use crate::nn::graph::heads::{scores_of_pairs, weighted_features};
use crate::nn::{GraphNorm, LayerNorm, Linear, Mlp};
use crate::tensor::{from_host, upload, upload_all};

/// A batch of graphs as tensors, on which the operations of a network are computed.
pub(in crate::nn) struct TensorGraphs<'a> {
    pub(in crate::nn) batch: &'a GraphBatch<'a>,
    /// The kind (data type) of the network's parameters.
    pub(in crate::nn) kind: Kind,
    /// `true` if sums over neighbours are computed as products with adjacency matrices, instead of by
    /// gathering a row for each message.
    is_dense: bool,
    /// The adjacency matrices for matrix products, `[n, n]` per graph. An entry is the number of edges
    /// between two nodes, in either direction. The matrices are computed when they are first used.
    adjacency: OnceCell<Vec<Tensor>>,
    shape_error: Cell<Option<Error>>,
}

impl<'a> TensorGraphs<'a> {
    pub(in crate::nn) fn new(batch: &'a GraphBatch<'a>, kind: Kind) -> Self {
        let is_dense = batch.device() == Device::Cpu && is_dense(batch.arrays);
        Self { batch, kind, is_dense, adjacency: OnceCell::new(), shape_error: Cell::new(None) }
    }
}

/// Returns `true` if sums over neighbours are faster as products with adjacency matrices than by gathering a
/// row for each message. Including the gradient, gathering takes 0.14 us per message, and a product takes 7
/// ns per pair of nodes plus 45 us per graph (measured in PyTorch with embeddings of width 64, on one
/// thread).
fn is_dense(arrays: &GraphArrays) -> bool {
    let messages = 2 * arrays.edges.len();
    messages > 320 * arrays.len() + arrays.n_pairs() / 14
}

/// Returns the number of edges between any two nodes, in either direction, as one matrix `[n, n]` per graph.
fn adjacency(arrays: &GraphArrays, kind: Kind) -> Vec<Tensor> {
    let mut all = vec![0.0f32; arrays.n_pairs()];
    for (graph, (n, first)) in arrays.sizes().zip(&arrays.pair_ptr).enumerate() {
        for (a, b, _) in arrays.edges_of(graph) {
            all[first + a * n + b] += 1.0;
            all[first + b * n + a] += 1.0;
        }
    }
    let pairs: Vec<i64> = arrays.sizes().map(|n| (n * n) as i64).collect();
    let parts = Tensor::from_slice(&all).to_kind(kind).split_with_sizes(pairs, 0);
    parts.into_iter().zip(arrays.sizes()).map(|(part, n)| part.view([n as i64, n as i64])).collect()
}

/// Computes the sum of the node rows of each graph, `[B, D]`.
pub(in crate::nn) fn sums(batch: &GraphBatch<'_>, nodes: &Tensor) -> Tensor {
    let b = batch.len() as i64;
    let width = nodes.size()[1];
    match batch.arrays.same_size() {
        Some(n) if n > 0 => nodes.reshape([b, n as i64, width]).sum_dim_intlist(1, false, nodes.kind()),
        _ => {
            Tensor::zeros([b, width], (nodes.kind(), nodes.device())).index_add(0, batch.node_graph(), nodes)
        }
    }
}

/// Returns `n^power` for each graph, `[B, 1]`, where n is its number of nodes; 1 for a graph without nodes.
pub(in crate::nn) fn scales(batch: &GraphBatch<'_>, power: f64, kind: Kind) -> Tensor {
    let scales: Vec<f64> = batch.arrays.sizes().map(|n| (n.max(1) as f64).powf(power)).collect();
    from_host(&scales, kind, batch.device()).unsqueeze(1)
}

impl Engine for TensorGraphs<'_> {
    type Rows = Tensor;
    type Index = Tensor;

    fn arrays(&self) -> &GraphArrays {
        self.batch.arrays
    }

    fn rows(&self, values: &[f64], width: usize) -> Tensor {
        from_host(values, self.kind, self.batch.device()).view([-1, width as i64])
    }

    fn index(&self, rows: Vec<i64>) -> Tensor {
        upload(&rows, self.batch.device())
    }

    fn index_all<const K: usize>(&self, lists: Vec<[Vec<i64>; K]>) -> Vec<[Tensor; K]> {
        upload_all(&lists, self.batch.device())
    }

    fn parameter(&self, parameter: &Tensor) -> Tensor {
        parameter.view([1, -1])
    }

    fn look_up(&self, table: &Tensor, entries: &[i64], each: usize) -> Tensor {
        let rows = table.index_select(0, &upload(entries, table.device()));
        match each {
            1 => rows,
            _ => rows.view([-1, each as i64, table.size()[1]]).sum_dim_intlist(1, false, table.kind()),
        }
    }

    fn linear(&self, layer: &Linear, rows: &Tensor) -> Tensor {
        if !self.fits_layer(layer.weight(), rows) {
            return self.zeros_for(rows, layer.weight().size()[0]);
        }
        layer.forward(rows)
    }

    fn products(&self, layers: [&Linear; 3], rows: &Tensor) -> Tensor {
        let weights = Tensor::cat(&layers.map(Linear::weight), 0);
        rows.linear(&weights, None::<&Tensor>).view([-1, layers[0].weight().size()[0]])
    }

    fn mlp(&self, mlp: &Mlp, rows: &Tensor) -> Tensor {
        if !self.fits_layer(mlp.input_weight(), rows) {
            return self.zeros_for(rows, mlp.output.weight().size()[0]);
        }
        mlp.forward(rows)
    }

    fn norm(&self, norm: &LayerNorm, rows: Tensor) -> Tensor {
        norm.forward(&rows)
    }

    fn graph_norm(&self, norm: &GraphNorm, rows: Tensor) -> Tensor {
        let means = |rows: &Tensor| sums(self.batch, rows) * scales(self.batch, -1.0, rows.kind());
        let shift = -means(&rows) * &norm.mean_scale;
        let centred = self.add_to_nodes(rows, &shift);
        let factors = &norm.weight / (means(&centred.square()) + GraphNorm::EPS).sqrt();
        &centred * self.add_to_nodes(centred.zeros_like(), &factors) + &norm.bias
    }

    fn relu(&self, rows: Tensor) -> Tensor {
        rows.relu()
    }

    fn scale_by_one_plus(&self, rows: Tensor, eps: &Tensor) -> Tensor {
        rows * (eps + 1.0)
    }

    fn add(&self, rows: Tensor, others: &Tensor) -> Tensor {
        let is_single = others.size() == [1, rows.size()[1]];
        if is_single || self.have_equal_shapes(&rows, others) { rows + others } else { rows }
    }

    fn max(&self, rows: Tensor, others: &Tensor) -> Tensor {
        if self.have_equal_shapes(&rows, others) { rows.maximum(others) } else { rows }
    }

    fn scale(&self, rows: Tensor, factors: &Tensor) -> Tensor {
        rows * factors
    }

    fn concat(&self, first: &Tensor, second: &Tensor) -> Tensor {
        Tensor::cat(&[first, second], 0)
    }

    fn gather(&self, rows: &Tensor, which: Option<&Tensor>) -> Tensor {
        which.map_or_else(|| rows.shallow_clone(), |which| rows.index_select(0, which))
    }

    fn sum(&self, rows: &Tensor, entries: &Tensor, offsets: &Tensor) -> Tensor {
        const SUM: i64 = 0;
        if offsets.numel() == 0 || entries.numel() == 0 {
            return Tensor::zeros([offsets.size()[0], rows.size()[1]], (rows.kind(), rows.device()));
        }
        // The operation embedding_bag gathers and sums in one pass. Including the gradient it was 1.6 times
        // as fast as index_select and index_add.
        Tensor::embedding_bag::<Tensor>(rows, entries, offsets, false, SUM, false, None, false).0
    }

    fn sums_over_neighbours(&self) -> bool {
        self.is_dense
    }

    fn sum_over_neighbours(&self, rows: &Tensor) -> Option<Tensor> {
        if !self.is_dense {
            return None;
        }
        let adjacency = self.adjacency.get_or_init(|| adjacency(self.batch.arrays, self.kind));
        let sizes: Vec<i64> = self.batch.arrays.sizes().map(|n| n as i64).collect();
        let parts = rows.split_with_sizes(sizes, 0);
        let sums: Vec<Tensor> =
            adjacency.iter().zip(&parts).map(|(adjacency, rows)| adjacency.mm(rows)).collect();
        Some(Tensor::cat(&sums, 0))
    }

    fn max_over_neighbours(&self, nodes: &Tensor) -> Tensor {
        let zeros = nodes.zeros_like();
        let edges = &self.batch.arrays.edges;
        if !self.has_row_per_node(nodes) || edges.is_empty() {
            return zeros;
        }
        // Each neighbour of a node is listed once, even if edges join the two nodes in both directions.
        let mut messages: Vec<(u32, u32)> = edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        messages.sort_unstable();
        messages.dedup();
        let mut degrees = vec![0; self.batch.arrays.nodes.len()];
        for &(receiver, _) in &messages {
            degrees[receiver as usize] += 1;
        }
        let degrees = self.index(degrees);
        let sent = nodes.index_select(0, &self.batch.ends(&messages).get(1));
        // The initial value must not be 0: it would share the gradient with neighbours whose maximum is 0.
        // The argument `true` omits a check of the degrees, which would wait for the device.
        let most =
            Tensor::segment_reduce(&sent, "max", Some(&degrees), None, None, 0, true, f64::NEG_INFINITY);
        most.where_self(&degrees.gt(0).unsqueeze(1), &zeros)
    }

    fn add_messages(
        &self,
        to: Tensor,
        rows: &Tensor,
        entries: &Tensor,
        edges: &Tensor,
        messages: &Tensor,
        receivers: &Tensor,
    ) -> Tensor {
        let sums = Tensor::zeros(to.size(), (rows.kind(), rows.device()));
        let sent = (rows.index_select(0, entries) + edges.index_select(0, messages)).relu();
        to + sums.index_add(0, receivers, &sent)
    }

    fn attend(
        &self,
        inputs: &Tensor,
        parameter: &Tensor,
        values: &Tensor,
        receivers: &Tensor,
        offsets: &Tensor,
    ) -> Tensor {
        let size = parameter.size();
        let parts = inputs.view([inputs.size()[0], size[0], size[1]]);
        // The difference of the two terms is the leaky ReLU of `parts`. The built-in function isn't used,
        // because it takes no slope in this binding of libtorch.
        let activated = parts.relu() - (-&parts).relu() * SLOPE;
        let scores = (activated * parameter).sum_dim_intlist(2, false, inputs.kind());
        softmax_sums(&scores, values, receivers, offsets)
    }

    fn attend_within(&self, query: &Tensor, key: &Tensor, value: &Tensor, heads: usize) -> Tensor {
        attention(self.batch, [query, key, value], heads as i64)
    }

    fn pool(&self, nodes: &Tensor) -> Tensor {
        let sum = sums(self.batch, nodes);
        let scale = |power: f64| scales(self.batch, power, nodes.kind());
        Tensor::cat(&[&sum * scale(-1.0), &sum * scale(-0.5)], 1)
    }

    fn add_to_nodes(&self, nodes: Tensor, graphs: &Tensor) -> Tensor {
        if !self.fits_nodes(&nodes, graphs) {
            return nodes;
        }
        match self.batch.arrays.same_size() {
            Some(n) if n > 0 => {
                let size = nodes.size();
                let by_graph = nodes.view([self.batch.len() as i64, n as i64, size[1]]);
                (by_graph + graphs.unsqueeze(1)).view([size[0], size[1]])
            }
            _ => nodes + graphs.index_select(0, self.batch.node_graph()),
        }
    }
}

impl HeadEngine for TensorGraphs<'_> {
    fn shape(&self, rows: &Tensor) -> Vec<i64> {
        rows.size()
    }

    fn shape_error(&self) -> &Cell<Option<Error>> {
        &self.shape_error
    }

    fn pair_scores(&self, query: &Linear, key: &Linear, columns: usize, nodes: &Tensor) -> Tensor {
        scores_of_pairs(self.batch, query, key, columns as i64, nodes)
    }

    fn weighted_pair_features(&self, weights: &Tensor, columns: usize, features: &Tensor) -> Tensor {
        weighted_features(self.batch, weights, columns as i64, features)
    }
}
