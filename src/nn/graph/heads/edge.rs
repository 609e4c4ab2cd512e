//! Logits of edges, from the edge's own features, its ends and their pair features.

use tch::Tensor;

use super::pairs::FEATURES_SCALE;
use crate::graph::{GraphArrays, GraphBatch, GraphKind, GraphSchema};
use crate::nn::graph::edge_features::EdgeFeatures;
use crate::nn::host::HostLinear;
use crate::nn::layers::HostKinds;
use crate::nn::{Linear, Scope};

/// `W relu(U h_a + V h_b + t(edge) + P f_ab)` for each edge from `a` to `b`, where `t` is the vector of its class and
/// attributes and `f` are pair features. Undirected edges, whose ends are interchangeable, have `V = U`.
///
/// The ends alone aren't enough: in a ring whose edges alternate between two classes all nodes look alike, but the
/// edges differ.
#[derive(Debug)]
pub(crate) struct EdgeHead {
    first: Linear,
    /// `None` if edges have no direction.
    second: Option<Linear>,
    /// `None` if all edges are alike.
    edges: Option<EdgeFeatures>,
    /// `None` without pair features. Those of an undirected pair are symmetric.
    pairs: Option<Linear>,
    output: Linear,
}

impl EdgeHead {
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        schema: &GraphSchema,
        (width, columns): (i64, i64),
        n_features: i64,
    ) -> Self {
        let directed = schema.kind == GraphKind::Directed;
        let pairs = |scope: &mut Scope<'_>| {
            let layer = Linear::without_bias(&mut scope.sub("pairs"), n_features, width);
            layer.scale(FEATURES_SCALE);
            layer
        };
        let tells_apart = schema.tells_edges_apart();
        Self {
            first: Linear::new(&mut scope.sub("first"), width, width),
            second: directed.then(|| Linear::without_bias(&mut scope.sub("second"), width, width)),
            edges: tells_apart.then(|| EdgeFeatures::new(&mut scope.sub("edges"), schema, width)),
            pairs: (n_features > 0).then(|| pairs(scope)),
            output: Linear::new(&mut scope.sub("output"), width, columns),
        }
    }

    /// Multiplies all logits by a factor; called before training.
    pub(crate) fn scale(&self, factor: f64) {
        self.output.scale(factor);
    }

    /// The logits of every row, `[rows, columns]`, given pair features of `[sum of n * n, features]`.
    pub(crate) fn forward(&self, batch: &GraphBatch<'_>, nodes: &Tensor, pairs: Option<&Tensor>) -> Tensor {
        let first = self.first.forward(nodes);
        let second = self.second.as_ref().map_or_else(|| first.shallow_clone(), |layer| layer.forward(nodes));
        let rows = batch.edge_rows();
        let ends = |nodes: &Tensor, end: i64| nodes.index_select(0, &rows.get(end));
        let mut hidden = ends(&first, 0) + ends(&second, 1);
        if let Some(edges) = &self.edges {
            hidden += edges.of_edges(batch);
        }
        if let (Some(layer), Some(pairs)) = (&self.pairs, pairs) {
            let places = batch.tensor(batch.arrays.edge_pairs().map(|place| place as i64));
            hidden += layer.forward(&pairs.index_select(0, &places));
        }
        self.output.forward(&hidden.relu())
    }

    /// A copy of the head on the host.
    pub(crate) fn on_host(&self) -> HostEdgeHead {
        HostEdgeHead {
            first: HostLinear::of(&self.first),
            second: self.second.as_ref().map(HostLinear::of),
            edges: self.edges.as_ref().map(EdgeFeatures::on_host),
            pairs: self.pairs.as_ref().map(HostLinear::of),
            output: HostLinear::of(&self.output),
        }
    }
}

/// A copy of an [`EdgeHead`] on the host.
#[derive(Debug)]
pub(crate) struct HostEdgeHead {
    first: HostLinear,
    second: Option<HostLinear>,
    edges: Option<HostKinds>,
    pairs: Option<HostLinear>,
    output: HostLinear,
}

impl HostEdgeHead {
    /// Same as [`EdgeHead::forward`].
    pub(in crate::nn) fn forward(&self, arrays: &GraphArrays, nodes: &[f32], pairs: Option<&[f64]>) -> Vec<f32> {
        let n = arrays.nodes.len();
        let first = self.first.rows(nodes, n);
        let second = self.second.as_ref().map(|layer| layer.rows(nodes, n));
        let second = second.as_ref().unwrap_or(&first);
        let (width, n_rows) = (self.first.outputs(), arrays.edges.len());
        let mut hidden = Vec::with_capacity(n_rows * width);
        for &(a, b) in &arrays.edges {
            let (a_row, b_row) = (&first[a as usize * width..][..width], &second[b as usize * width..][..width]);
            hidden.extend(a_row.iter().zip(b_row).map(|(a, b)| a + b));
        }
        if let Some(kinds) = &self.edges {
            for (edge, row) in arrays.weights.iter().zip(hidden.chunks_exact_mut(width)) {
                kinds.add(edge.class, &edge.attributes, row);
            }
        }
        if let (Some(layer), Some(pairs)) = (&self.pairs, pairs) {
            let k = layer.inputs();
            let of_pair = |pair: usize| pairs[pair * k..][..k].iter().map(|&x| x as f32);
            let features: Vec<f32> = arrays.edge_pairs().flat_map(of_pair).collect();
            hidden.iter_mut().zip(layer.rows(&features, n_rows)).for_each(|(x, added)| *x += added);
        }
        // NaN passes through; the check before drawing finds it.
        hidden.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x });
        self.output.rows(&hidden, n_rows)
    }
}
