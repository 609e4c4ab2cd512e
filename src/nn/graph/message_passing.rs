//! The library's own torso.

use tch::Tensor;

use super::conv::pooling::{pool, scales, sums, to_nodes};
use super::conv::{Conv, MessageKind, MessageRounds};
use super::node_features::{Labels, NodeFeatures};
use super::torso::{Embedded, HostTorso, Torso};
use super::transformer::Transformer;
use super::{ConvKind, GraphNetConfig};
use crate::Result;
use crate::graph::{GraphBatch, GraphSchema};
use crate::nn::host::HostMessagePassing;
use crate::nn::{Linear, Scope};

/// The library's torso: node features, rounds of message passing or layers of attention, and the pooled graph.
///
/// [`GraphNet::new`](super::GraphNet::new) makes one from the environment's schema. The graph embeddings are twice as wide as
/// those of nodes.
#[derive(Debug)]
pub struct MessagePassing {
    features: NodeFeatures,
    body: Body,
    condition: Option<Linear>,
    global: Option<Linear>,
}

#[derive(Debug)]
enum Body {
    Convs(Vec<Conv>),
    Transformer(Transformer),
}

impl MessagePassing {
    /// A torso for graphs of an environment in which these labels are told apart.
    pub(crate) fn new(scope: &mut Scope<'_>, schema: &GraphSchema, labels: &Labels, config: &GraphNetConfig) -> Self {
        let width = config.embedding;
        let features = NodeFeatures::new(&mut scope.sub("features"), schema, width, labels);
        let convs = |scope: &mut Scope<'_>, new: fn(&mut Scope<'_>, &GraphSchema, i64) -> Conv| {
            Body::Convs((0..config.layers).map(|k| new(&mut scope.sub(&format!("conv{k}")), schema, width)).collect())
        };
        let body = match config.conv.chosen(schema) {
            ConvKind::Auto | ConvKind::Gin => convs(scope, Conv::gin),
            ConvKind::GinVirtual => convs(scope, Conv::gin_virtual),
            ConvKind::Gine => convs(scope, Conv::gine),
            ConvKind::Directed => convs(scope, Conv::directed),
            ConvKind::Transformer { heads } => {
                let mut scope = scope.sub("transformer");
                Body::Transformer(Transformer::new(&mut scope, schema, config.layers, width, heads))
            }
        };
        let condition_width = match body {
            Body::Convs(_) => 2 * width,
            Body::Transformer(_) => width,
        };
        Self {
            features,
            body,
            condition: (config.estimators.n_conditions > 0)
                .then(|| Linear::new(&mut scope.sub("condition"), config.estimators.n_conditions, condition_width)),
            // A condition reaches nodes through their graph's embedding.
            global: (config.global || config.estimators.n_conditions > 0)
                .then(|| Linear::new(&mut scope.sub("global"), 2 * width, width)),
        }
    }
}

impl Torso for MessagePassing {
    fn widths(&self) -> (i64, i64) {
        let width = self.features.classes().size()[1];
        (width, 2 * width)
    }

    fn embed(&self, batch: &GraphBatch<'_>, conditions: Option<&Tensor>) -> Result<Embedded> {
        let (n_rounds, message_kind) = match &self.body {
            Body::Convs(convs) => (convs.len(), convs.first().map_or(MessageKind::Sum, Conv::message_kind)),
            Body::Transformer(_) => (0, MessageKind::Sum),
        };
        let rounds = MessageRounds::new(batch.arrays, &self.features.labels(), n_rounds, message_kind);
        let rounds = rounds.on_device(batch.device());
        let features = self.features.forward(batch, &rounds.features);
        let kind = features.kind();
        let condition = self.condition.as_ref().zip(conditions).map(|(layer, c)| layer.forward(c));
        let (nodes, graphs) = match &self.body {
            Body::Convs(convs) => {
                let layers = convs.iter().zip(&rounds.rounds);
                let nodes = layers.fold(features, |rows, (conv, round)| conv.forward(batch, round, &rows));
                let nodes = rounds.of_nodes(&nodes);
                let graphs = pool(batch, &nodes);
                let graphs = match condition {
                    Some(condition) => graphs + condition,
                    None => graphs,
                };
                (nodes, graphs)
            }
            Body::Transformer(transformer) => {
                let (nodes, of_virtual) = transformer.forward(batch, &rounds.of_nodes(&features), condition.as_ref());
                let mean = sums(batch, &nodes) * scales(batch, -1.0, kind);
                (nodes, Tensor::cat(&[mean, of_virtual], 1))
            }
        };
        let nodes = match &self.global {
            // Every node gets a message from the whole graph, as from a virtual node.
            Some(layer) => to_nodes(batch, &nodes, &layer.forward(&graphs).relu()),
            None => nodes,
        };
        Ok(Embedded { nodes, graphs })
    }

    fn on_host(&self) -> Option<Box<dyn HostTorso>> {
        let Body::Convs(convs) = &self.body else { return None };
        Some(Box::new(HostMessagePassing::new(&self.features, convs, self.global.as_ref())))
    }
}
