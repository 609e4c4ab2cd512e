//! The part of a GPS layer after its messages: attention of each node to the whole graph, and a perceptron.

use super::norm::{Norm, NormKind};
use crate::nn::graph::engine::Engine;
use crate::nn::{Linear, Scope};

/// The ratio of the width of the perceptron's hidden layer to the width of the embedding, as in PyTorch
/// Geometric's `GPSConv`.
const FEED_FORWARD: i64 = 2;

/// A layer in which each node attends to all nodes of its graph. The result is added to the result of message
/// passing, and a perceptron is applied to the sum.
#[derive(Debug)]
pub(super) struct WholeAttention {
    pub(super) query: Linear,
    pub(super) key: Linear,
    pub(super) value: Linear,
    pub(super) output: Linear,
    pub(super) norm: Norm,
    pub(super) feed: (Linear, Linear),
    pub(super) norm_feed: Norm,
    pub(super) heads: usize,
}

impl WholeAttention {
    pub(super) fn new(scope: &mut Scope<'_>, width: i64, heads: i64, norm: NormKind) -> Self {
        Self {
            query: Linear::new(&mut scope.sub("query"), width, width),
            // The map to keys has no bias, because a bias of the key cancels in the softmax.
            key: Linear::without_bias(&mut scope.sub("key"), width, width),
            value: Linear::new(&mut scope.sub("value"), width, width),
            output: Linear::new(&mut scope.sub("output"), width, width),
            norm: Norm::new(&mut scope.sub("norm"), norm, width),
            feed: (
                Linear::new(&mut scope.sub("feed_in"), width, FEED_FORWARD * width),
                Linear::new(&mut scope.sub("feed_out"), FEED_FORWARD * width, width),
            ),
            norm_feed: Norm::new(&mut scope.sub("norm_feed"), norm, width),
            heads: heads as usize,
        }
    }

    /// Computes the output of the layer, `[N, D]`, from its input `before` and from `local`, the result of
    /// message passing.
    pub(super) fn forward<E: Engine>(&self, engine: &E, before: E::Rows, local: &E::Rows) -> E::Rows {
        let project = |layer| engine.linear(layer, &before);
        let query = project(&self.query);
        let key = project(&self.key);
        let value = project(&self.value);
        let attended = engine.linear(&self.output, &engine.attend_within(&query, &key, &value, self.heads));
        let attended = self.norm.forward(engine, engine.add(before, &attended));
        let sum = engine.add(attended, local);
        let fed = engine.linear(&self.feed.1, &engine.relu(engine.linear(&self.feed.0, &sum)));
        self.norm_feed.forward(engine, engine.add(sum, &fed))
    }
}
