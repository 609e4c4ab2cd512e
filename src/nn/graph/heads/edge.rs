//! The head that computes logits of edges, from the features of an edge, of its two nodes and of their pair.

use super::pairs::FEATURES_SCALE;
use crate::graph::{GraphKind, GraphSchema};
use crate::nn::graph::engine::Engine;
use crate::nn::graph::features::EdgeFeatures;
use crate::nn::{Linear, Scope};

/// A head that computes `W relu(U h_a + V h_b + t(edge) + P f_ab)` for each edge from `a` to `b`. Here `h`
/// are node embeddings, `t` is the vector of the edge's class and attributes, and `f` are pair features. For
/// undirected edges `V` is `U`, so that both orders of the nodes give the same logits.
///
/// The term `t` is needed because node embeddings aren't enough: in a ring whose edges alternate between two
/// classes all nodes have the same embedding, but the edges differ.
#[derive(Debug)]
pub(crate) struct EdgeHead {
    first: Linear,
    /// The layer `V`; `None` if edges are undirected.
    second: Option<Linear>,
    /// The vectors `t`; `None` if edges have neither several classes nor attributes.
    edges: Option<EdgeFeatures>,
    /// The layer `P`; `None` without pair features. Pair features of undirected graphs are symmetric.
    pairs: Option<Linear>,
    output: Linear,
}

impl EdgeHead {
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        schema: &GraphSchema,
        width: i64,
        columns: i64,
        n_features: i64,
    ) -> Self {
        let is_directed = schema.kind == GraphKind::Directed;
        let pairs = |scope: &mut Scope<'_>| {
            let layer = Linear::without_bias(&mut scope.sub("pairs"), n_features, width);
            layer.scale(FEATURES_SCALE);
            layer
        };
        let has_edge_features = schema.tells_edges_apart();
        Self {
            first: Linear::new(&mut scope.sub("first"), width, width),
            second: is_directed.then(|| Linear::without_bias(&mut scope.sub("second"), width, width)),
            edges: has_edge_features.then(|| EdgeFeatures::new(&mut scope.sub("edges"), schema, width)),
            pairs: (n_features > 0).then(|| pairs(scope)),
            output: Linear::new(&mut scope.sub("output"), width, columns),
        }
    }

    /// Multiplies the weights of the output layer, and so all logits, by a factor. This method is called
    /// before training.
    pub(crate) fn scale(&self, factor: f64) {
        self.output.scale(factor);
    }

    /// Computes the logits of every edge, `[E, columns]`. `pairs` holds the features of all pairs of nodes,
    /// `[sum of n * n, features]`.
    pub(crate) fn forward<E: Engine>(&self, engine: &E, nodes: &E::Rows, pairs: Option<&E::Rows>) -> E::Rows {
        let arrays = engine.arrays();
        let gather = |rows: &E::Rows, indices: Vec<i64>| engine.gather(rows, Some(&engine.index(indices)));
        let first = engine.linear(&self.first, nodes);
        let second = self.second.as_ref().map(|layer| engine.linear(layer, nodes));
        let seconds = gather(
            second.as_ref().unwrap_or(&first),
            arrays.edges.iter().map(|pair| i64::from(pair.1)).collect(),
        );
        let firsts = gather(&first, arrays.edges.iter().map(|pair| i64::from(pair.0)).collect());
        let mut hidden = engine.add(firsts, &seconds);
        if let Some(edges) = &self.edges {
            hidden = engine.add(hidden, &edges.forward(engine, 1));
        }
        if let (Some(layer), Some(pairs)) = (&self.pairs, pairs) {
            let indices = arrays.edge_pairs().map(|pair| pair as i64);
            hidden = engine.add(hidden, &engine.linear(layer, &gather(pairs, indices.collect())));
        }
        engine.linear(&self.output, &engine.relu(hidden))
    }
}
