//! Logits of edges, from the edge's own features, its ends and their pair features.

use super::pairs::FEATURES_SCALE;
use crate::graph::{GraphKind, GraphSchema};
use crate::nn::graph::engine::Engine;
use crate::nn::graph::features::EdgeFeatures;
use crate::nn::{Linear, Scope};

/// `W relu(U h_a + V h_b + t(edge) + P f_ab)` for each edge from `a` to `b`, where `t` is the vector of its
/// class and attributes and `f` are pair features. Undirected edges, whose ends are interchangeable, have
/// `V = U`.
///
/// The ends alone aren't enough: in a ring whose edges alternate between two classes all nodes look alike,
/// but the edges differ.
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
    pub(crate) fn new(scope: &mut Scope<'_>, schema: &GraphSchema, width: i64, columns: i64, n_features: i64) -> Self {
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
    pub(crate) fn forward<E: Engine>(&self, engine: &E, nodes: &E::Rows, pairs: Option<&E::Rows>) -> E::Rows {
        let arrays = engine.arrays();
        let at = |rows: &E::Rows, nodes: Vec<i64>| engine.gather(rows, Some(&engine.index(nodes)));
        let first = engine.linear(&self.first, nodes);
        let second = self.second.as_ref().map(|layer| engine.linear(layer, nodes));
        let seconds =
            at(second.as_ref().unwrap_or(&first), arrays.edges.iter().map(|pair| i64::from(pair.1)).collect());
        let firsts = at(&first, arrays.edges.iter().map(|pair| i64::from(pair.0)).collect());
        let mut hidden = engine.add(firsts, &seconds);
        if let Some(edges) = &self.edges {
            hidden = engine.add(hidden, &edges.forward(engine, 1));
        }
        if let (Some(layer), Some(pairs)) = (&self.pairs, pairs) {
            let places = arrays.edge_pairs().map(|place| place as i64);
            hidden = engine.add(hidden, &engine.linear(layer, &at(pairs, places.collect())));
        }
        engine.linear(&self.output, &engine.relu(hidden))
    }
}
