//! Message passing on [`GraphBatch`].

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::node_values::NodeValues;
use super::{LayerNorm, Linear, Scope};
use crate::graph::{GraphBatch, GraphSchema};

/// How nodes exchange messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ConvKind {
    /// `MLP((1 + eps) h_i + sum_j h_j)` over neighbours either way (Xu et al., *How Powerful are GNNs?*, 2019, eq. 4.1).
    Gin,
    /// `MLP((1 + eps) h_i + sum_j relu(h_j + e_ij))`: edge classes and attributes enter (Hu et al. 2020).
    Gine,
    /// `W2 relu(W h_i + W_in sum_in h_j + W_out sum_out h_j)`: sums over in- and out-neighbours, kept apart.
    ///
    /// GCN-style, but not normalised: dividing by degrees hides them, and without self-loops drops messages between nodes
    /// of in-degree 0.
    Directed,
    /// Attention along edges, both ways, and to and from a virtual node of each graph that carries the condition; edge classes
    /// and attributes enter. The design of recursionpharma/gflownet's `GraphTransformer`, pre-norm.
    ///
    /// For graphs of up to a few hundred nodes: a layer takes memory for each pair of nodes, a few numbers per head and one per edge
    /// class, attribute value and relation.
    Transformer {
        /// Heads of attention; they divide the embedding among them.
        heads: i64,
    },
}

/// One round of message passing with a residual connection and a layer norm: `LN(h + f(h))`.
#[derive(Debug)]
pub(crate) struct Conv {
    messages: Messages,
    output: Linear,
    norm: LayerNorm,
}

#[derive(Debug)]
enum Messages {
    Gin { inner: Linear, eps: Tensor },
    Gine { inner: Linear, eps: Tensor, edges: EdgeFeatures },
    Directed { own: Linear, incoming: Linear, outgoing: Linear },
}

impl Conv {
    pub(crate) fn gin(scope: &mut Scope<'_>, _: &GraphSchema, width: i64) -> Self {
        let messages = Messages::Gin {
            inner: Linear::new(&mut scope.sub("inner"), width, width),
            eps: scope.constant("eps", &[1], 0.0),
        };
        Self::around(messages, scope, width)
    }

    pub(crate) fn gine(scope: &mut Scope<'_>, schema: &GraphSchema, width: i64) -> Self {
        let messages = Messages::Gine {
            inner: Linear::new(&mut scope.sub("inner"), width, width),
            eps: scope.constant("eps", &[1], 0.0),
            edges: EdgeFeatures::new(&mut scope.sub("edges"), schema, width),
        };
        Self::around(messages, scope, width)
    }

    pub(crate) fn directed(scope: &mut Scope<'_>, _: &GraphSchema, width: i64) -> Self {
        let messages = Messages::Directed {
            own: Linear::new(&mut scope.sub("own"), width, width),
            incoming: Linear::without_bias(&mut scope.sub("incoming"), width, width),
            outgoing: Linear::without_bias(&mut scope.sub("outgoing"), width, width),
        };
        Self::around(messages, scope, width)
    }

    fn around(messages: Messages, scope: &mut Scope<'_>, width: i64) -> Self {
        Self {
            messages,
            output: Linear::new(&mut scope.sub("output"), width, width),
            norm: LayerNorm::new(&mut scope.sub("norm"), width),
        }
    }

    pub(crate) fn forward(&self, batch: &GraphBatch<'_>, values: &NodeValues) -> NodeValues {
        let inner = match &self.messages {
            Messages::Gin { inner, eps } => {
                // The linear map commutes with the sum: applied first, it meets the table instead of every node. Its bias
                // is a part of what neighbours send then, which the next layer sees through.
                let mapped = values.linear(inner);
                let mut sum = mapped.dense() * (eps + 1.0) + mapped.sum_over(&batch.incoming);
                if batch.directed {
                    sum += mapped.sum_over(&batch.outgoing);
                }
                sum
            }
            Messages::Gine { inner, eps, edges } => {
                let nodes = values.dense();
                let sent = edges.forward(batch);
                let along = |from: i64, to: i64| {
                    let messages = (nodes.index_select(0, &batch.edge_index.get(from)) + &sent).relu();
                    nodes.zeros_like().index_add(0, &batch.edge_index.get(to), &messages)
                };
                let mut sum = along(0, 1);
                if batch.directed {
                    sum += along(1, 0);
                }
                inner.forward(&(&nodes * (eps + 1.0) + sum))
            }
            Messages::Directed { own, incoming, outgoing } => {
                values.linear(own).dense()
                    + values.linear(incoming).sum_over(&batch.incoming)
                    + values.linear(outgoing).sum_over(&batch.outgoing)
            }
        };
        NodeValues::Dense(self.norm.forward(&(values.dense() + self.output.forward(&inner.relu()))))
    }
}

/// Learned tables for what an edge is: its class and its attributes.
#[derive(Debug)]
pub(crate) struct EdgeFeatures {
    classes: Tensor,
    attributes: Option<(Tensor, Vec<i64>)>,
}

impl EdgeFeatures {
    pub(crate) fn new(scope: &mut Scope<'_>, schema: &GraphSchema, width: i64) -> Self {
        let mut starts = Vec::new();
        let mut values = 0;
        for &n in &schema.edge_attributes {
            starts.push(values);
            values += i64::from(n) + 1;
        }
        Self {
            classes: scope.normal("class", &[schema.edge_classes as i64, width], 1.0),
            attributes: (values > 0).then(|| (scope.normal("attribute", &[values, width], 1.0), starts)),
        }
    }

    /// The vectors of all classes, then of the values of each attribute, `[classes + values, width]`.
    pub(crate) fn table(&self) -> Tensor {
        match &self.attributes {
            None => self.classes.shallow_clone(),
            Some((values, _)) => Tensor::cat(&[&self.classes, values], 0),
        }
    }

    /// One row per message, `[E, width]`.
    pub(crate) fn forward(&self, batch: &GraphBatch<'_>) -> Tensor {
        let classes = self.classes.index_select(0, &batch.edge_classes);
        match &self.attributes {
            None => classes,
            Some((table, starts)) => {
                let entries = &batch.edge_attributes + Tensor::from_slice(starts).to_device(batch.device());
                let rows = table.index_select(0, &entries.view(-1));
                let rows = rows.view([-1, starts.len() as i64, table.size()[1]]);
                classes + rows.sum_dim_intlist(1, false, table.kind())
            }
        }
    }
}
