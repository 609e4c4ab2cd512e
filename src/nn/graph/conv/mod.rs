//! Convolutions: rounds of message passing.

mod colours;
mod kind;
mod message_classes;
mod norm;
#[cfg(test)]
mod tests;
mod whole;

pub use kind::ConvKind;
pub(in crate::nn) use message_classes::{MessageRounds, Plan};
pub use norm::{GraphNorm, NormKind};

use tch::Tensor;

use super::engine::Engine;
use super::features::EdgeFeatures;
use crate::graph::{GraphKind, GraphSchema};
use crate::nn::{Linear, Scope};
use message_classes::{MessageKind, MessageRound};
use norm::Norm;
use whole::WholeAttention;

/// A round of message passing with a residual connection and a norm, `norm(h + f(h))`. In a GPS layer each
/// node also attends to the whole graph.
#[derive(Debug)]
pub(crate) struct Conv {
    messages: Messages,
    output: Linear,
    norm: Norm,
    attention: Option<WholeAttention>,
}

/// The layers that compute the messages, by the kind of message passing ([`ConvKind`]).
#[derive(Debug)]
enum Messages {
    Gin {
        inner: Linear,
        eps: Tensor,
        /// The linear map from the mean and the scaled sum of a graph's node embeddings to the message that
        /// its virtual node sends to all nodes; `None` without a virtual node.
        whole: Option<Linear>,
    },
    /// The layers of a GINE round. The vector `against` is added to the edge vectors of messages against the
    /// direction of their edges. The vector is `None` for undirected graphs.
    Gine {
        inner: Linear,
        eps: Tensor,
        edges: EdgeFeatures,
        against: Option<Tensor>,
    },
    Directed {
        own: Linear,
        incoming: Linear,
        outgoing: Linear,
    },
    /// The layers of a GATv2 round. The vector `itself`, `[1, D]`, is used instead of an edge vector in the
    /// message of a node to itself. The vector `against` is added to the edge vectors of messages against the
    /// direction of their edges.
    Gat {
        to: Linear,
        from: Linear,
        /// The vector with which each head computes attention scores, `[heads, D / heads]`.
        scores: Tensor,
        edges: EdgeFeatures,
        against: Option<Tensor>,
        itself: Tensor,
    },
}

impl Conv {
    /// Builds a round of message passing of this kind, which must not be [`ConvKind::Transformer`].
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        kind: ConvKind,
        norm: NormKind,
        schema: &GraphSchema,
        width: i64,
    ) -> Self {
        let eps = |scope: &mut Scope<'_>| scope.constant("eps", &[1], 0.0);
        let against = |scope: &mut Scope<'_>| {
            (schema.kind == GraphKind::Directed).then(|| scope.normal("against", &[width], 1.0))
        };
        let (local, whole_heads) = match kind {
            ConvKind::Gps { heads } => (ConvKind::Auto, Some(heads)),
            kind => (kind, None),
        };
        let messages = match local.resolve(schema) {
            ConvKind::Gine => Messages::Gine {
                inner: Linear::new(&mut scope.sub("inner"), width, width),
                eps: eps(scope),
                edges: EdgeFeatures::new(&mut scope.sub("edges"), schema, width),
                against: against(scope),
            },
            ConvKind::Gat { heads } => Messages::Gat {
                // Only one of the layers `to` and `from` has a bias, because scores depend only on the sum of
                // their outputs.
                to: Linear::without_bias(&mut scope.sub("to"), width, width),
                from: Linear::new(&mut scope.sub("from"), width, width),
                scores: scope.uniform(
                    "scores",
                    &[heads, width / heads],
                    (heads as f64 / width as f64).sqrt(),
                ),
                edges: EdgeFeatures::new(&mut scope.sub("edges"), schema, width),
                against: against(scope),
                itself: scope.normal("itself", &[1, width], 1.0),
            },
            ConvKind::Directed => Messages::Directed {
                own: Linear::new(&mut scope.sub("own"), width, width),
                incoming: Linear::without_bias(&mut scope.sub("incoming"), width, width),
                outgoing: Linear::without_bias(&mut scope.sub("outgoing"), width, width),
            },
            resolved => Messages::Gin {
                inner: Linear::new(&mut scope.sub("inner"), width, width),
                eps: eps(scope),
                whole: (resolved == ConvKind::GinVirtual)
                    .then(|| Linear::new(&mut scope.sub("whole"), 2 * width, width)),
            },
        };
        let output = Linear::new(&mut scope.sub("output"), width, width);
        Self {
            messages,
            output,
            norm: Norm::new(&mut scope.sub("norm"), norm, width),
            attention: whole_heads
                .map(|heads| WholeAttention::new(&mut scope.sub("whole"), width, heads, norm)),
        }
    }

    /// Returns the kind of messages that nodes receive in this round.
    fn message_kind(&self) -> MessageKind {
        match self.messages {
            Messages::Gin { .. } => MessageKind::Sum,
            Messages::Gine { .. } => MessageKind::WithEdges,
            Messages::Directed { .. } => MessageKind::ByDirection,
            Messages::Gat { .. } => MessageKind::WithEdgesAndItself,
        }
    }

    /// Returns `true` if the new value of a node depends on all nodes of its graph.
    fn reads_whole_graph(&self) -> bool {
        let has_virtual_node = matches!(self.messages, Messages::Gin { whole: Some(_), .. });
        has_virtual_node || self.attention.is_some() || matches!(self.norm, Norm::Graph(_))
    }

    /// Computes the rows of node values after this round of message passing, `[R', D]`, from the rows before
    /// it, `[R, D]`. A row is the embedding of one node, or of several nodes with equal embeddings.
    pub(crate) fn forward<E: Engine>(
        &self,
        engine: &E,
        round: &MessageRound<E::Index>,
        rows: &E::Rows,
    ) -> E::Rows {
        let receiver_rows = |rows: &E::Rows| engine.gather(rows, round.receivers.as_ref());
        let grown = |rows, eps| engine.scale_by_one_plus(rows, eps);
        let received = match &self.messages {
            Messages::Gin { inner, eps, whole } => {
                // The linear map commutes with the sum over messages. The map is applied first, because this
                // is cheaper: there are at most as many rows of node values before the round as after it. The
                // bias of the map is then added once per message instead of once per node. The next layer can
                // compensate for this difference.
                let mapped = engine.linear(inner, rows);
                let dense =
                    if round.receivers.is_none() { engine.sum_over_neighbours(&mapped) } else { None };
                let sums = dense.unwrap_or_else(|| engine.sum(&mapped, &round.entries, &round.offsets));
                let received = engine.add(grown(receiver_rows(&mapped), eps), &sums);
                match whole {
                    Some(whole) => engine
                        .add_to_nodes(received, &engine.linear(whole, &engine.pool(&receiver_rows(rows)))),
                    None => received,
                }
            }
            Messages::Gine { inner, eps, edges, against } => {
                let edge_vectors = edge_vectors(engine, edges, against.as_ref());
                let to = grown(receiver_rows(rows), eps);
                engine.linear(inner, &round.add_messages(engine, to, rows, &edge_vectors))
            }
            Messages::Directed { own, incoming, outgoing } => {
                // The three linear maps are computed as one matrix product, which gives three entries of the
                // table of messages for each row of node values.
                let table = engine.products([own, incoming, outgoing], rows);
                let sums = engine.sum(&table, &round.entries, &round.offsets);
                match own.bias() {
                    Some(bias) => engine.add(sums, &engine.parameter(bias)),
                    None => sums,
                }
            }
            Messages::Gat { to, from, scores, edges, against, itself } => {
                let edge_vectors = edge_vectors(engine, edges, against.as_ref());
                let edge_vectors = engine.concat(&edge_vectors, &engine.look_up(itself, &[0], 1));
                let to = receiver_rows(&engine.linear(to, rows));
                round.attend_along(engine, to, &engine.linear(from, rows), &edge_vectors, scores)
            }
        };
        let mapped = engine.linear(&self.output, &engine.relu(received));
        let local = self.norm.forward(engine, engine.add(receiver_rows(rows), &mapped));
        match &self.attention {
            Some(attention) => attention.forward(engine, receiver_rows(rows), &local),
            None => local,
        }
    }
}

/// Computes the edge vector of each message of the batch, `[2 E, D]`. In undirected graphs the two messages
/// of an edge are adjacent. In directed graphs the messages along all edges come first, followed by the
/// messages against all edges.
fn edge_vectors<E: Engine>(engine: &E, edges: &EdgeFeatures, against: Option<&Tensor>) -> E::Rows {
    let along = edges.forward(engine, engine.arrays().messages_per_edge());
    match against {
        Some(against) => {
            engine.concat(&along, &engine.add(engine.gather(&along, None), &engine.parameter(against)))
        }
        None => along,
    }
}
