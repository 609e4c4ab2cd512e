//! The library's own torso.

use super::conv::{Conv, MessageKind, MessageRounds};
use super::engine::Engine;
use super::features::{Labels, NodeFeatures};
use super::torso::{Embedded, Torso};
use super::transformer::Transformer;
use super::{ConvKind, GraphNetConfig};
use crate::Result;
use crate::graph::GraphSchema;
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
        let body = match config.conv {
            ConvKind::Transformer { heads } => {
                let mut scope = scope.sub("transformer");
                Body::Transformer(Transformer::new(&mut scope, schema, config.layers, width, heads))
            }
            conv => {
                let round = |k| Conv::new(&mut scope.sub(&format!("conv{k}")), conv, schema, width);
                Body::Convs((0..config.layers).map(round).collect())
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
        let width = self.features.width();
        (width, 2 * width)
    }

    fn embed<E: Engine>(&self, engine: &E, conditions: Option<&E::Rows>) -> Result<Embedded<E::Rows>> {
        let (n_rounds, message_kind) = match &self.body {
            Body::Convs(convs) => (convs.len(), convs.first().map_or(MessageKind::Sum, Conv::message_kind)),
            Body::Transformer(_) => (0, MessageKind::Sum),
        };
        let rounds = MessageRounds::new(engine, &self.features.labels(), n_rounds, message_kind);
        let features = self.features.forward(engine, &rounds.features);
        let condition = self.condition.as_ref().zip(conditions).map(|(layer, c)| engine.linear(layer, c));
        let (nodes, graphs) = match &self.body {
            Body::Convs(convs) => {
                let layers = convs.iter().zip(&rounds.rounds);
                let nodes = layers.fold(features, |rows, (conv, round)| conv.forward(engine, round, &rows));
                let nodes = rounds.of_nodes(engine, &nodes);
                let graphs = engine.pool(&nodes);
                let graphs = match condition {
                    Some(condition) => engine.add(graphs, &condition),
                    None => graphs,
                };
                (nodes, graphs)
            }
            Body::Transformer(transformer) => {
                let condition = condition.map(|condition| engine.to_tensor(&condition));
                let features = engine.to_tensor(&rounds.of_nodes(engine, &features));
                let (nodes, graphs) = transformer.forward(engine.batch()?, &features, condition.as_ref());
                (engine.of_tensor(nodes), engine.of_tensor(graphs))
            }
        };
        let nodes = match &self.global {
            // Every node gets a message from the whole graph, as from a virtual node.
            Some(layer) => engine.to_nodes(nodes, &engine.relu(engine.linear(layer, &graphs))),
            None => nodes,
        };
        Ok(Embedded { nodes, graphs })
    }

    fn on_host(&self) -> bool {
        matches!(self.body, Body::Convs(_))
    }
}
