//! The default torso of a graph network: message passing.

use serde::{Deserialize, Serialize};

use super::GraphNetConfig;
use super::conv::{Conv, MessageRounds, Plan};
use super::engine::Engine;
use super::features::{Labels, NodeFeatures};
use super::torso::{Embeddings, Torso};
use crate::Result;
use crate::graph::GraphSchema;
use crate::nn::{Linear, Scope};

/// The rounds of message passing from which the embeddings for the heads are computed (Xu et al.,
/// *Representation Learning on Graphs with Jumping Knowledge Networks*, 2018, section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum JumpingKnowledge {
    /// Uses only the result of the last round (the default).
    #[default]
    Last,
    /// Uses a linear map of the concatenated node features before the first round and after each round.
    Concat,
    /// Uses a linear map of the elementwise maximum of the node features before the first round and after
    /// each round.
    Max,
}

/// The layers that [`JumpingKnowledge`] needs.
#[derive(Debug)]
enum Jumping {
    Last,
    /// The linear map of the concatenated features, split into one layer for the features before the first
    /// round and one for each round.
    Concat(Vec<Linear>),
    Max(Linear),
}

impl Jumping {
    /// Builds the layers for `rounds` rounds whose features have this width.
    fn new(scope: &mut Scope<'_>, kind: JumpingKnowledge, rounds: usize, width: i64) -> Self {
        let part = |k: usize| {
            let mut scope = scope.sub(&format!("round{k}"));
            // Only the last layer has a bias, because the outputs of all layers are added, and one bias is
            // enough for the sum.
            let build = if k == rounds { Linear::new } else { Linear::without_bias };
            let layer = build(&mut scope, width, width);
            layer.scale((rounds as f64 + 1.0).sqrt().recip());
            layer
        };
        match kind {
            JumpingKnowledge::Last => Self::Last,
            JumpingKnowledge::Concat => Self::Concat((0..=rounds).map(part).collect()),
            JumpingKnowledge::Max => Self::Max(Linear::new(&mut scope.sub("map"), width, width)),
        }
    }

    /// Combines `rows`, the output of round `k` (or the initial features for `k` 0), with `before`, the
    /// combination of all earlier outputs. `rows` and `before` must have the same number of rows. Returns
    /// `None` if only the last round is used.
    fn read<E: Engine>(
        &self,
        engine: &E,
        k: usize,
        before: Option<E::Rows>,
        rows: &E::Rows,
    ) -> Option<E::Rows> {
        let round = match self {
            Self::Last => return None,
            Self::Concat(parts) => engine.linear(parts.get(k)?, rows),
            Self::Max(_) => engine.gather(rows, None),
        };
        Some(match (self, before) {
            (_, None) => round,
            (Self::Max(_), Some(before)) => engine.max(round, &before),
            (_, Some(before)) => engine.add(round, &before),
        })
    }

    /// Computes the final node embeddings from the result of [`read`](Self::read) after all rounds, and from
    /// `last`, the embeddings of the last round.
    fn finish<E: Engine>(&self, engine: &E, read: Option<E::Rows>, last: E::Rows) -> E::Rows {
        match (self, read) {
            (Self::Max(map), Some(read)) => engine.linear(map, &read),
            (_, read) => read.unwrap_or(last),
        }
    }
}

/// The default torso of a [`GraphNet`](super::GraphNet). The torso computes node features, applies rounds of
/// message passing, and pools the nodes of each graph.
///
/// [`GraphNet::new`](super::GraphNet::new) builds this torso from the environment's schema. Graph embeddings
/// are twice as wide as node embeddings.
#[derive(Debug)]
pub struct MessagePassing {
    features: NodeFeatures,
    convs: Vec<Conv>,
    plan: Plan,
    jumping: Jumping,
    condition: Option<Linear>,
    global: Option<Linear>,
}

impl MessagePassing {
    /// Builds a torso for graphs of a schema. The network distinguishes two node labels only if their classes
    /// in `labels` differ.
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        schema: &GraphSchema,
        labels: &Labels,
        config: &GraphNetConfig,
    ) -> Self {
        let width = config.embedding;
        let features = NodeFeatures::new(&mut scope.sub("features"), schema, labels, config);
        let round =
            |k| Conv::new(&mut scope.sub(&format!("conv{k}")), config.conv, config.norm, schema, width);
        let convs: Vec<Conv> = (0..config.layers).map(round).collect();
        Self {
            plan: Plan::new(&features, &convs),
            jumping: Jumping::new(&mut scope.sub("jumping"), config.jumping, convs.len(), width),
            features,
            convs,
            condition: condition_layer(scope, config, 2 * width),
            global: global_layer(scope, config),
        }
    }
}

/// Builds the linear map from a condition to `outputs` numbers; `None` if the network has no conditions.
pub(super) fn condition_layer(
    scope: &mut Scope<'_>,
    config: &GraphNetConfig,
    outputs: i64,
) -> Option<Linear> {
    let inputs = config.estimators.n_conditions;
    (inputs > 0).then(|| Linear::new(&mut scope.sub("condition"), inputs, outputs))
}

/// Builds the linear map from the embedding of a graph to a message that each of its nodes receives, as from
/// a virtual node; `None` if nodes receive no such message.
pub(super) fn global_layer(scope: &mut Scope<'_>, config: &GraphNetConfig) -> Option<Linear> {
    // Nodes also need this message if there are conditions, because a condition reaches nodes only through
    // the embedding of their graph.
    let is_global = config.global || config.estimators.n_conditions > 0;
    is_global.then(|| Linear::new(&mut scope.sub("global"), 2 * config.embedding, config.embedding))
}

/// Adds the message of each graph to the embeddings of its nodes.
pub(super) fn add_global<E: Engine>(
    engine: &E,
    global: Option<&Linear>,
    nodes: E::Rows,
    graphs: E::Rows,
) -> Embeddings<E::Rows> {
    let nodes = match global {
        Some(layer) => engine.add_to_nodes(nodes, &engine.relu(engine.linear(layer, &graphs))),
        None => nodes,
    };
    Embeddings { nodes, graphs }
}

impl Torso for MessagePassing {
    fn widths(&self) -> (i64, i64) {
        let width = self.features.width();
        (width, 2 * width)
    }

    fn embed<E: Engine>(&self, engine: &E, conditions: Option<&E::Rows>) -> Result<Embeddings<E::Rows>> {
        let rounds = MessageRounds::new(engine, &self.plan);
        let mut rows = self.features.forward(engine, &rounds.features);
        let mut read = self.jumping.read(engine, 0, None, &rows);
        for ((conv, round), k) in self.convs.iter().zip(&rounds.rounds).zip(1..) {
            rows = conv.forward(engine, round, &rows);
            read = read.map(|read| engine.gather(&read, round.receivers.as_ref()));
            read = self.jumping.read(engine, k, read, &rows);
        }
        let nodes = rounds.expand_to_nodes(engine, &self.jumping.finish(engine, read, rows));
        let mut graphs = engine.pool(&nodes);
        if let Some((layer, conditions)) = self.condition.as_ref().zip(conditions) {
            graphs = engine.add(graphs, &engine.linear(layer, conditions));
        }
        Ok(add_global(engine, self.global.as_ref(), nodes, graphs))
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind, Tensor};

    use super::*;
    use crate::Rng;
    use crate::graph::{Edge, GraphBatch, GraphKind, GraphState, GraphStates};
    use crate::nn::graph::engine::TensorGraphs;
    use crate::nn::{ConvKind, NormKind, Parameters};

    /// Compares jumping knowledge with the outputs of networks with fewer rounds. Weights are drawn in the
    /// order of rounds, so the rounds that several networks have in common have equal weights.
    #[test]
    fn jumping_knowledge_reads_the_rounds_of_networks_with_fewer() {
        const ROUNDS: usize = 3;
        for (conv, norm) in [(ConvKind::Gin, NormKind::Layer), (ConvKind::Gin, NormKind::Graph)] {
            let schema = GraphSchema::plain(GraphKind::Undirected, 5);
            let graph = |n, edges: &[(u32, u32)]| {
                let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, Edge::default())).collect();
                GraphState::from_parts(GraphKind::Undirected, &vec![Default::default(); n], &edges).unwrap()
            };
            let path = graph(5, &[(0, 1), (1, 2), (2, 3), (3, 4)]);
            let states = GraphStates::from(vec![path.clone(), graph(3, &[(0, 1)]), path]);
            let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
            let engine = TensorGraphs::new(&batch, Kind::Double);
            let embed = |layers, jumping| {
                let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
                let rng = &mut Rng::seeded(1);
                let config = GraphNetConfig {
                    conv,
                    norm,
                    jumping,
                    layers,
                    embedding: 6,
                    global: false,
                    ..GraphNetConfig::default()
                };
                let torso =
                    MessagePassing::new(&mut parameters.scope(rng), &schema, &Labels::default(), &config);
                (torso.embed(&engine, None).unwrap(), parameters)
            };
            let rounds: Vec<Tensor> =
                (0..=ROUNDS).map(|k| embed(k, JumpingKnowledge::Last).0.nodes).collect();
            let check = |got: Embeddings, expected: &Tensor| {
                let pooled = engine.pool(expected);
                for (got, expected) in [(got.nodes, expected), (got.graphs, &pooled)] {
                    let off = (got - expected).abs().max().double_value(&[]);
                    assert!(off < 1e-12, "{conv:?}, {norm:?}: {off}");
                }
            };
            let (got, parameters) = embed(ROUNDS, JumpingKnowledge::Max);
            let parameter = |parameters: &Parameters, name: &str| {
                parameters.iter().find(|p| p.name == name).unwrap().tensor.shallow_clone()
            };
            let largest = Tensor::stack(&rounds, 0).amax([0i64].as_slice(), false);
            let bias = parameter(&parameters, "jumping.map.bias");
            check(got, &largest.linear(&parameter(&parameters, "jumping.map.weight"), Some(&bias)));
            let (got, parameters) = embed(ROUNDS, JumpingKnowledge::Concat);
            let parts =
                parameters.iter().filter(|p| p.name.starts_with("jumping.") && p.name.ends_with("weight"));
            let weight = Tensor::cat(&parts.map(|p| p.tensor.shallow_clone()).collect::<Vec<_>>(), 1);
            let bias = parameter(&parameters, "jumping.round3.bias");
            assert_eq!(weight.size(), [6, 24]);
            check(got, &Tensor::cat(&rounds, 1).linear(&weight, Some(&bias)));
        }
    }
}
