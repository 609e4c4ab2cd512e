//! Message passing.

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

/// One round of message passing with a residual connection and a norm: `norm(h + f(h))`. In a GPS layer
/// attention to the whole graph joins it.
#[derive(Debug)]
pub(crate) struct Conv {
    messages: Messages,
    output: Linear,
    norm: Norm,
    attention: Option<WholeAttention>,
}

#[derive(Debug)]
enum Messages {
    Gin {
        inner: Linear,
        eps: Tensor,
        /// From the whole graph.
        whole: Option<Linear>,
    },
    /// Messages against the direction of their edge add `against` to the edge's vector. `None` in undirected
    /// graphs.
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
    /// A node's message to itself has the vector `itself`, `[1, D]`, in place of an edge's.
    Gat {
        to: Linear,
        from: Linear,
        /// A vector for each head, `[heads, D / heads]`.
        scores: Tensor,
        edges: EdgeFeatures,
        against: Option<Tensor>,
        itself: Tensor,
    },
}

impl Conv {
    /// A round of this kind; those of a transformer aren't rounds of messages.
    pub(crate) fn new(scope: &mut Scope<'_>, kind: ConvKind, norm: NormKind, schema: &GraphSchema, width: i64) -> Self {
        let eps = |scope: &mut Scope<'_>| scope.constant("eps", &[1], 0.0);
        let against = |scope: &mut Scope<'_>| {
            (schema.kind == GraphKind::Directed).then(|| scope.normal("against", &[width], 1.0))
        };
        let (local, whole_heads) = match kind {
            ConvKind::Gps { heads } => (ConvKind::Auto, Some(heads)),
            kind => (kind, None),
        };
        let messages = match local.chosen(schema) {
            ConvKind::Gine => Messages::Gine {
                inner: Linear::new(&mut scope.sub("inner"), width, width),
                eps: eps(scope),
                edges: EdgeFeatures::new(&mut scope.sub("edges"), schema, width),
                against: against(scope),
            },
            ConvKind::Gat { heads } => Messages::Gat {
                // One bias is enough: the scores see the sum of both.
                to: Linear::without_bias(&mut scope.sub("to"), width, width),
                from: Linear::new(&mut scope.sub("from"), width, width),
                scores: scope.uniform("scores", &[heads, width / heads], (heads as f64 / width as f64).sqrt()),
                edges: EdgeFeatures::new(&mut scope.sub("edges"), schema, width),
                against: against(scope),
                itself: scope.normal("itself", &[1, width], 1.0),
            },
            ConvKind::Directed => Messages::Directed {
                own: Linear::new(&mut scope.sub("own"), width, width),
                incoming: Linear::without_bias(&mut scope.sub("incoming"), width, width),
                outgoing: Linear::without_bias(&mut scope.sub("outgoing"), width, width),
            },
            chosen => Messages::Gin {
                inner: Linear::new(&mut scope.sub("inner"), width, width),
                eps: eps(scope),
                whole: (chosen == ConvKind::GinVirtual).then(|| Linear::new(&mut scope.sub("whole"), 2 * width, width)),
            },
        };
        let output = Linear::new(&mut scope.sub("output"), width, width);
        Self {
            messages,
            output,
            norm: Norm::new(&mut scope.sub("norm"), norm, width),
            attention: whole_heads.map(|heads| WholeAttention::new(&mut scope.sub("whole"), width, heads, norm)),
        }
    }

    /// The kind of messages that nodes receive.
    fn message_kind(&self) -> MessageKind {
        match self.messages {
            Messages::Gin { .. } => MessageKind::Sum,
            Messages::Gine { .. } => MessageKind::WithEdges,
            Messages::Directed { .. } => MessageKind::BySide,
            Messages::Gat { .. } => MessageKind::WithEdgesAndItself,
        }
    }

    /// `true` if what a node gets depends on its whole graph.
    fn reads_whole(&self) -> bool {
        let virtual_node = matches!(self.messages, Messages::Gin { whole: Some(_), .. });
        virtual_node || self.attention.is_some() || matches!(self.norm, Norm::Graph(_))
    }

    /// One round: from the rows before it, `[R, D]`, to the rows after it, `[R', D]`.
    pub(crate) fn forward<E: Engine>(&self, engine: &E, round: &MessageRound<E::Index>, rows: &E::Rows) -> E::Rows {
        let own = |rows: &E::Rows| engine.gather(rows, round.own.as_ref());
        let received = match &self.messages {
            Messages::Gin { inner, eps, whole } => {
                // The linear map commutes with the sum. Applying it first is cheaper, because there are fewer
                // rows before the round. The bias then becomes a part of each message, which the next layer
                // can make up for.
                let mapped = engine.linear(inner, rows);
                let dense = if round.own.is_none() { engine.sum_over_neighbours(&mapped) } else { None };
                let sums = dense.unwrap_or_else(|| engine.sum(&mapped, &round.entries, &round.offsets));
                let received = engine.add(engine.grow(own(&mapped), eps), &sums);
                match whole {
                    Some(whole) => engine.to_nodes(received, &engine.linear(whole, &engine.pool(&own(rows)))),
                    None => received,
                }
            }
            Messages::Gine { inner, eps, edges, against } => {
                let carried = carried(engine, edges, against.as_ref());
                engine.linear(inner, &round.add_along(engine, engine.grow(own(rows), eps), rows, &carried))
            }
            Messages::Directed { own, incoming, outgoing } => {
                // The three maps run as one product, whose result holds three table entries per row; then one
                // sum.
                let table = engine.products([own, incoming, outgoing], rows);
                let sums = engine.sum(&table, &round.entries, &round.offsets);
                match own.bias() {
                    Some(bias) => engine.add(sums, &engine.parameter(bias)),
                    None => sums,
                }
            }
            Messages::Gat { to, from, scores, edges, against, itself } => {
                let carried = engine.join(&carried(engine, edges, against.as_ref()), &engine.look_up(itself, &[0], 1));
                let to = own(&engine.linear(to, rows));
                round.attend_along(engine, to, &engine.linear(from, rows), &carried, scores)
            }
        };
        let mapped = engine.linear(&self.output, &engine.relu(received));
        let local = self.norm.forward(engine, engine.add(own(rows), &mapped));
        match &self.attention {
            Some(attention) => attention.forward(engine, own(rows), &local),
            None => local,
        }
    }
}

/// The vector of each message of the batch, `[M, D]`; in directed graphs first of those along edges, then of
/// those against them.
fn carried<E: Engine>(engine: &E, edges: &EdgeFeatures, against: Option<&Tensor>) -> E::Rows {
    let along = edges.forward(engine, engine.arrays().messages_per_edge());
    match against {
        Some(against) => engine.join(&along, &engine.add(engine.gather(&along, None), &engine.parameter(against))),
        None => along,
    }
}
