//! A causal transformer over sequences.

use tch::Tensor;

use super::{SequenceNet, add_context};
use crate::nn::{Activation, Embedding, LayerNorm, Linear, Scope};

/// The ratio of the width of a feed-forward block's hidden layer to the width of the embedding.
const FEED_FORWARD: i64 = 4;

/// A causal transformer. Each layer consists of causal attention and a feed-forward block, each of which
/// begins with a layer norm and has a residual connection. The input is the sum of a learned vector of the
/// token and a learned vector of the position.
///
/// If the network processes one input per step, it returns a row of numbers for each input, which later steps
/// use. The row holds the output, followed by the key and the value of each layer.
#[derive(Debug)]
pub(crate) struct CausalTransformer {
    embedding: Embedding,
    /// The learned vector of each position, `[n_positions, width]`.
    positions: Tensor,
    layers: Vec<Layer>,
    norm: LayerNorm,
    width: i64,
}

#[derive(Debug)]
struct Layer {
    norm: LayerNorm,
    /// The linear map from the vector of a position to its query, key and value, concatenated.
    project: Linear,
    output: Linear,
    norm_feed: LayerNorm,
    feed: (Linear, Linear),
    heads: i64,
}

impl CausalTransformer {
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        n_inputs: i64,
        n_positions: i64,
        width: i64,
        layers: i64,
        heads: i64,
    ) -> Self {
        Self {
            embedding: Embedding::new(&mut scope.sub("embedding"), n_inputs, width),
            positions: scope.normal("positions", &[n_positions, width], 1.0),
            layers: (0..layers)
                .map(|k| Layer::new(&mut scope.sub(&format!("layer{k}")), width, heads))
                .collect(),
            norm: LayerNorm::new(&mut scope.sub("norm"), width),
            width,
        }
    }
}

impl Layer {
    fn new(scope: &mut Scope<'_>, width: i64, heads: i64) -> Self {
        Self {
            norm: LayerNorm::new(&mut scope.sub("norm"), width),
            // The map to queries, keys and values has no bias. A bias of the key would cancel in the softmax,
            // and a bias of the value is equivalent to a bias of `output`.
            project: Linear::without_bias(&mut scope.sub("project"), width, 3 * width),
            output: Linear::new(&mut scope.sub("output"), width, width),
            norm_feed: LayerNorm::new(&mut scope.sub("norm_feed"), width),
            feed: (
                Linear::new(&mut scope.sub("feed_in"), width, FEED_FORWARD * width),
                Linear::new(&mut scope.sub("feed_out"), FEED_FORWARD * width, width),
            ),
            heads,
        }
    }

    /// Computes the queries, `[B, T, width]`, and the concatenated keys and values, `[B, T, 2 width]`, from
    /// `x`, `[B, T, width]`.
    fn project(&self, x: &Tensor) -> (Tensor, Tensor) {
        let width = x.size()[2];
        let projected = self.project.forward(&self.norm.forward(x));
        (projected.narrow(2, 0, width), projected.narrow(2, width, 2 * width))
    }

    /// Applies the attention of queries `[B, T, width]` to keys and values `[B, S, 2 width]`, and then the
    /// feed-forward block. Each of the two results is added to its input, which is `x` for the attention. If
    /// `causal` is `true`, a query attends to the keys up to its own position, otherwise to all keys.
    fn attend(&self, x: &Tensor, query: &Tensor, key_value: &Tensor, causal: bool) -> Tensor {
        let b = x.size()[0];
        let width = x.size()[2];
        let by_head = |x: &Tensor| x.reshape([b, -1, self.heads, width / self.heads]).transpose(1, 2);
        let key = by_head(&key_value.narrow(2, 0, width));
        let value = by_head(&key_value.narrow(2, width, width));
        let out = Tensor::scaled_dot_product_attention(
            &by_head(query),
            &key,
            &value,
            None::<&Tensor>,
            0.0,
            causal,
            None,
            false,
        );
        let x = x + self.output.forward(&out.transpose(1, 2).reshape([b, -1, width]));
        let hidden = Activation::Gelu.apply(&self.feed.0.forward(&self.norm_feed.forward(&x)));
        x + self.feed.1.forward(&hidden)
    }
}

impl SequenceNet for CausalTransformer {
    fn forward(&self, inputs: &Tensor, context: Option<&Tensor>) -> Tensor {
        let embedded = add_context(self.embedding.forward(inputs), context);
        let mut x = embedded + self.positions.narrow(0, 0, inputs.size()[1]);
        for layer in &self.layers {
            let (query, key_value) = layer.project(&x);
            x = layer.attend(&x, &query, &key_value, true);
        }
        self.norm.forward(&x)
    }

    fn step(&self, inputs: &Tensor, position: usize, memory: &Tensor) -> Tensor {
        let embedded = self.embedding.forward(inputs) + self.positions.get(position as i64);
        let mut x = embedded.unsqueeze(1);
        let mut rows = Vec::with_capacity(1 + self.layers.len());
        for (k, layer) in self.layers.iter().enumerate() {
            let (query, key_value) = layer.project(&x);
            let before = memory.narrow(2, (1 + 2 * k as i64) * self.width, 2 * self.width);
            x = layer.attend(&x, &query, &Tensor::cat(&[&before, &key_value], 1), false);
            rows.push(key_value.squeeze_dim(1));
        }
        rows.insert(0, self.norm.forward(&x.squeeze_dim(1)));
        Tensor::cat(&rows, 1)
    }

    fn reach(&self, position: usize) -> usize {
        position
    }

    fn row_width(&self) -> i64 {
        (1 + 2 * self.layers.len() as i64) * self.width
    }

    fn output(&self, rows: &Tensor) -> Tensor {
        rows.narrow(1, 0, self.width)
    }
}
