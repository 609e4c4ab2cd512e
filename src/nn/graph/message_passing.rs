//! The library's own torso.

use serde::{Deserialize, Serialize};

use super::conv::{Conv, MessageRounds, Plan};
use super::engine::Engine;
use super::features::{Counts, Labels, NodeFeatures};
use super::torso::{Embedded, Torso};
use super::transformer::Transformer;
use super::{ConvKind, GraphNetConfig};
use crate::Result;
use crate::graph::GraphSchema;
use crate::nn::{Linear, Scope};

/// The rounds that a network reads (Xu et al., *Representation Learning on Graphs with Jumping Knowledge
/// Networks*, 2018, section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum JumpingKnowledge {
    /// The last round alone. The default.
    #[default]
    Last,
    /// All rounds, and node features before the first, side by side, then a linear map to the embedding.
    Concat,
    /// The largest of all rounds, and of node features before the first, number by number, then a linear map.
    Max,
}

/// Layers of a [`JumpingKnowledge`].
#[derive(Debug)]
enum Jumping {
    Last,
    /// The parts of one linear map, for each round its own.
    Concat(Vec<Linear>),
    Max(Linear),
}

impl Jumping {
    fn new(scope: &mut Scope<'_>, kind: JumpingKnowledge, rounds: usize, width: i64) -> Self {
        let part = |k: usize| {
            let mut scope = scope.sub(&format!("round{k}"));
            // The map's bias is that of its last part.
            let made = if k == rounds { Linear::new } else { Linear::without_bias };
            let layer = made(&mut scope, width, width);
            layer.scale((rounds as f64 + 1.0).sqrt().recip());
            layer
        };
        match kind {
            JumpingKnowledge::Last => Self::Last,
            JumpingKnowledge::Concat => Self::Concat((0..=rounds).map(part).collect()),
            JumpingKnowledge::Max => Self::Max(Linear::new(&mut scope.sub("map"), width, width)),
        }
    }

    /// The rows that are read of round `k`, given what was read before, with as many rows.
    fn read<E: Engine>(&self, engine: &E, k: usize, before: Option<E::Rows>, rows: &E::Rows) -> Option<E::Rows> {
        let own = match self {
            Self::Last => return None,
            Self::Concat(parts) => engine.linear(parts.get(k)?, rows),
            Self::Max(_) => engine.gather(rows, None),
        };
        Some(match (self, before) {
            (_, None) => own,
            (Self::Max(_), Some(before)) => engine.max(own, &before),
            (_, Some(before)) => engine.add(own, &before),
        })
    }

    /// The rows of nodes, given what was read of all rounds, or of the last alone.
    fn finish<E: Engine>(&self, engine: &E, read: Option<E::Rows>, last: E::Rows) -> E::Rows {
        match (self, read) {
            (Self::Max(map), Some(read)) => engine.linear(map, &read),
            (_, read) => read.unwrap_or(last),
        }
    }
}

/// The library's torso: node features, rounds of message passing or layers of attention, and the pooled
/// graph.
///
/// [`GraphNet::new`](super::GraphNet::new) makes one from the environment's schema. The graph embeddings are
/// twice as wide as those of nodes.
#[derive(Debug)]
pub struct MessagePassing {
    features: NodeFeatures,
    body: Body,
    plan: Plan,
    jumping: Jumping,
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
        let counts = Counts { degrees: config.degrees, closed_walks: config.closed_walks.unwrap_or(0) };
        let features = NodeFeatures::new(&mut scope.sub("features"), schema, width, labels, counts);
        let body = match config.conv {
            ConvKind::Transformer { heads } => {
                let mut scope = scope.sub("transformer");
                Body::Transformer(Transformer::new(&mut scope, schema, config.layers, width, heads))
            }
            conv => {
                let round = |k| Conv::new(&mut scope.sub(&format!("conv{k}")), conv, config.norm, schema, width);
                Body::Convs((0..config.layers).map(round).collect())
            }
        };
        let condition_width = match body {
            Body::Convs(_) => 2 * width,
            Body::Transformer(_) => width,
        };
        let convs = if let Body::Convs(convs) = &body { convs.as_slice() } else { &[] };
        Self {
            plan: Plan::new(&features, convs),
            jumping: Jumping::new(&mut scope.sub("jumping"), config.jumping, convs.len(), width),
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
        let rounds = MessageRounds::new(engine, &self.plan);
        let features = self.features.forward(engine, &rounds.features);
        let condition = self.condition.as_ref().zip(conditions).map(|(layer, c)| engine.linear(layer, c));
        let (nodes, graphs) = match &self.body {
            Body::Convs(convs) => {
                let read = self.jumping.read(engine, 0, None, &features);
                let layers = convs.iter().zip(&rounds.rounds).zip(1..);
                let (rows, read) = layers.fold((features, read), |(rows, read), ((conv, round), k)| {
                    let rows = conv.forward(engine, round, &rows);
                    let read = read.map(|read| engine.gather(&read, round.own.as_ref()));
                    let read = self.jumping.read(engine, k, read, &rows);
                    (rows, read)
                });
                let nodes = rounds.of_nodes(engine, &self.jumping.finish(engine, read, rows));
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

#[cfg(test)]
mod tests {
    use tch::{Device, Kind, Tensor};

    use super::*;
    use crate::Rng;
    use crate::graph::{Edge, GraphBatch, GraphKind, GraphState, GraphStates};
    use crate::nn::graph::engine::TensorGraphs;
    use crate::nn::{NormKind, Parameters};

    /// Weights are drawn in the order of rounds, so that a network of fewer rounds begins as one of more
    /// does.
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
                let (mut parameters, rng) = (Parameters::new(Device::Cpu, Kind::Double), &mut Rng::seeded(1));
                let config = GraphNetConfig {
                    conv,
                    norm,
                    jumping,
                    layers,
                    embedding: 6,
                    global: false,
                    ..GraphNetConfig::default()
                };
                let torso = MessagePassing::new(&mut parameters.scope(rng), &schema, &Labels::default(), &config);
                (torso.embed(&engine, None).unwrap(), parameters)
            };
            let rounds: Vec<Tensor> = (0..=ROUNDS).map(|k| embed(k, JumpingKnowledge::Last).0.nodes).collect();
            let check = |got: Embedded, expected: &Tensor| {
                let pooled = engine.pool(expected);
                for (got, expected) in [(got.nodes, expected), (got.graphs, &pooled)] {
                    let off = (got - expected).abs().max().double_value(&[]);
                    assert!(off < 1e-12, "{conv:?}, {norm:?}: {off}");
                }
            };
            let (got, parameters) = embed(ROUNDS, JumpingKnowledge::Max);
            let of = |parameters: &Parameters, name: &str| {
                parameters.iter().find(|p| p.name == name).unwrap().tensor.shallow_clone()
            };
            let largest = Tensor::stack(&rounds, 0).amax([0i64].as_slice(), false);
            let bias = of(&parameters, "jumping.map.bias");
            check(got, &largest.linear(&of(&parameters, "jumping.map.weight"), Some(&bias)));
            let (got, parameters) = embed(ROUNDS, JumpingKnowledge::Concat);
            let parts = parameters.iter().filter(|p| p.name.starts_with("jumping.") && p.name.ends_with("weight"));
            let weight = Tensor::cat(&parts.map(|p| p.tensor.shallow_clone()).collect::<Vec<_>>(), 1);
            let bias = of(&parameters, "jumping.round3.bias");
            assert_eq!(weight.size(), [6, 24]);
            check(got, &Tensor::cat(&rounds, 1).linear(&weight, Some(&bias)));
        }
    }
}
