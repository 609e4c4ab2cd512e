//! From a batch of graphs to embeddings of nodes and graphs.

use tch::{Kind, Tensor};

use super::conv::{Conv, MessageKind, MessageRounds};
use super::fits::Fits;
use super::heads::Heads;
use super::node_features::NodeFeatures;
use super::transformer::Transformer;
use super::{ConvKind, GraphNetConfig};
use crate::graph::{GraphBatch, GraphSchema};
use crate::nn::host::HostParts;
use crate::nn::{HostGraphNet, Linear, Scope};
use crate::{Error, Result};

/// Node embeddings `[N, D]` and graph embeddings `[B, 2 D]`.
#[derive(Debug)]
pub(crate) struct Embedded {
    pub(crate) nodes: Tensor,
    pub(crate) graphs: Tensor,
}

/// The torso: features, rounds of message passing, and the pooled graph.
#[derive(Debug)]
pub(crate) struct Torso {
    features: NodeFeatures,
    body: Body,
    condition: Option<Linear>,
    global: Option<Linear>,
    n_conditions: i64,
}

#[derive(Debug)]
enum Body {
    Convs(Vec<Conv>),
    Transformer(Transformer),
}

impl Torso {
    /// A torso for graphs of an environment in which `n_labels` labels are told apart.
    pub(crate) fn new(scope: &mut Scope<'_>, schema: &GraphSchema, n_labels: usize, config: &GraphNetConfig) -> Self {
        let width = config.embedding;
        let features = NodeFeatures::new(&mut scope.sub("features"), schema, width, n_labels);
        let convs = |scope: &mut Scope<'_>, new: fn(&mut Scope<'_>, &GraphSchema, i64) -> Conv| {
            Body::Convs((0..config.layers).map(|k| new(&mut scope.sub(&format!("conv{k}")), schema, width)).collect())
        };
        let body = match config.conv.chosen(schema) {
            ConvKind::Auto | ConvKind::Gin => convs(scope, Conv::gin),
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
            n_conditions: config.estimators.n_conditions,
        }
    }

    /// A copy of the torso and these heads for a roll-out; `None` for a transformer, or with conditions.
    pub(crate) fn on_host(&self, heads: &Heads, fits: &Fits, pair_walks: Option<usize>) -> Option<HostGraphNet> {
        let Body::Convs(convs) = &self.body else { return None };
        if self.n_conditions > 0 {
            return None;
        }
        let (features, global) = (&self.features, self.global.as_ref());
        HostGraphNet::new(&HostParts { features, convs, global, heads, fits, pair_walks })
    }

    pub(crate) fn embed(&self, batch: &GraphBatch<'_>) -> Result<Embedded> {
        let (n_rounds, message_kind) = match &self.body {
            Body::Convs(convs) => (convs.len(), convs.first().map_or(MessageKind::Sum, Conv::message_kind)),
            Body::Transformer(_) => (0, MessageKind::Sum),
        };
        let rounds = MessageRounds::new(batch.graphs(), self.features.n_labels(), n_rounds, message_kind);
        let rounds = rounds.to_device(batch.device());
        let features = self.features.forward(batch, &rounds.features);
        let kind = features.kind();
        let conditions = checked_conditions(batch, self.n_conditions, kind)?;
        let condition = self.condition.as_ref().zip(conditions).map(|(layer, c)| layer.forward(&c));
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
}

/// The conditions for a network that takes `n_conditions` numbers per graph, `[B, n_conditions]`; `None` if it takes
/// none.
pub(in crate::nn) fn checked_conditions(
    batch: &GraphBatch<'_>,
    n_conditions: i64,
    kind: Kind,
) -> Result<Option<Tensor>> {
    match (&batch.conditions, n_conditions) {
        (None, 0) => Ok(None),
        // Constant conditions have no columns.
        (Some(conditions), 0) if conditions.size() == [batch.len() as i64, 0] => Ok(None),
        (Some(conditions), n) if n > 0 => {
            let expected = vec![batch.len() as i64, n];
            match conditions.size() == expected {
                true => Ok(Some(conditions.to_kind(kind))),
                false => Err(Error::shape(
                    "the tensor of conditions",
                    expected,
                    conditions.size(),
                    "give one row of `n_conditions` numbers per graph",
                )),
            }
        }
        (given, _) => Err(Error::missing(
            "the graph network",
            if given.is_none() { "condition vectors" } else { "a network built for conditions" },
            "set n_conditions to the width of the condition vectors, and sample with conditions",
        )),
    }
}

/// Mean and damped sum of node embeddings, `[B, 2 D]`. The mean alone can't count nodes. An empty graph gives zeros.
fn pool(batch: &GraphBatch<'_>, nodes: &Tensor) -> Tensor {
    let sum = sums(batch, nodes);
    let scale = |power: f64| scales(batch, power, nodes.kind());
    Tensor::cat(&[&sum * scale(-1.0), &sum * scale(-0.5)], 1)
}

/// Adds each graph's row to its nodes, `[N, D]`.
fn to_nodes(batch: &GraphBatch<'_>, nodes: &Tensor, graphs: &Tensor) -> Tensor {
    match batch.same_n_nodes() {
        Some(n) if n > 0 => {
            let size = nodes.size();
            (nodes.view([batch.len() as i64, n as i64, size[1]]) + graphs.unsqueeze(1)).view([size[0], size[1]])
        }
        _ => nodes + graphs.index_select(0, &batch.node_graph),
    }
}

/// The sum of each graph's node rows, `[B, D]`.
fn sums(batch: &GraphBatch<'_>, nodes: &Tensor) -> Tensor {
    let (b, width) = (batch.len() as i64, nodes.size()[1]);
    match batch.same_n_nodes() {
        Some(n) if n > 0 => nodes.reshape([b, n as i64, width]).sum_dim_intlist(1, false, nodes.kind()),
        _ => Tensor::zeros([b, width], (nodes.kind(), nodes.device())).index_add(0, &batch.node_graph, nodes),
    }
}

/// A power of each graph's number of nodes, `[B, 1]`; 1 for an empty graph.
fn scales(batch: &GraphBatch<'_>, power: f64, kind: Kind) -> Tensor {
    let scales: Vec<f64> = batch.n_nodes.iter().map(|&n| (n.max(1) as f64).powf(power)).collect();
    crate::tensor::from_host(&scales, kind, batch.device()).unsqueeze(1)
}
