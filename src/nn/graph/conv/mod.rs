//! Message passing.

mod message_classes;

pub(in crate::nn) use message_classes::{MessageKind, MessageRounds};

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::engine::Engine;
use super::features::EdgeFeatures;
use crate::graph::{GraphKind, GraphSchema};
use crate::nn::{LayerNorm, Linear, Scope};
use message_classes::MessageRound;

/// The kind of message passing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ConvKind {
    /// The choice that sees all edge features of the environment: [`Gine`](Self::Gine) if edges have classes or
    /// attributes, else [`Directed`](Self::Directed) if they have a direction, else [`Gin`](Self::Gin).
    #[default]
    Auto,
    /// `MLP((1 + eps) h_i + sum_j h_j)` over neighbours in both directions (Xu et al., *How Powerful are GNNs?*, 2019,
    /// eq. 4.1).
    Gin,
    /// [`Gin`](Self::Gin) with a virtual node: each round adds `W [mean h, sum h / sqrt(n)]` of the whole graph to what a node
    /// receives (Gilmer et al., *Neural Message Passing for Quantum Chemistry*, 2017, section 5.2; Hu et al., *Open Graph
    /// Benchmark*, 2020).
    ///
    /// For what depends on nodes far away, or on nodes without an edge. Equal nodes of different graphs are then different, so
    /// that each is computed.
    GinVirtual,
    /// `MLP((1 + eps) h_i + sum_j relu(h_j + e_ij))` over neighbours in both directions. `e_ij` holds edge classes and
    /// attributes (Hu et al. 2020) and, in directed graphs, the direction of the edge.
    Gine,
    /// `W2 relu(W h_i + W_in sum_in h_j + W_out sum_out h_j)`: separate sums over in-neighbours and out-neighbours.
    ///
    /// It is GCN-style but not normalised: dividing by degrees would hide them, and without self-loops it would drop
    /// messages between nodes of in-degree 0.
    Directed,
    /// Attention along edges in both directions, and to and from a virtual node of each graph that holds the condition.
    /// It sees edge classes and attributes. The design is that of recursionpharma/gflownet's `GraphTransformer`,
    /// pre-norm.
    ///
    /// It is meant for graphs of up to a few hundred nodes: a layer takes memory for each pair of nodes, a few numbers
    /// per head and one per edge class, attribute value and relation.
    Transformer {
        /// Attention heads; their number divides the embedding width.
        heads: i64,
    },
}

impl ConvKind {
    /// The convolution for graphs of a schema, with [`Auto`](Self::Auto) resolved.
    pub(in crate::nn) fn chosen(self, schema: &GraphSchema) -> Self {
        match self {
            Self::Auto if schema.tells_edges_apart() => Self::Gine,
            Self::Auto if schema.kind == GraphKind::Directed => Self::Directed,
            Self::Auto => Self::Gin,
            named => named,
        }
    }

    /// The edge feature of such graphs that this convolution can't see, if any.
    pub(in crate::nn) fn misses(self, schema: &GraphSchema) -> Option<&'static str> {
        match self {
            Self::Gin | Self::GinVirtual | Self::Directed if schema.tells_edges_apart() => {
                Some("the classes and attributes of edges")
            }
            Self::Gin | Self::GinVirtual if schema.kind == GraphKind::Directed => Some("the direction of edges"),
            _ => None,
        }
    }
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
    Gin {
        inner: Linear,
        eps: Tensor,
        /// From the whole graph.
        whole: Option<Linear>,
    },
    /// Messages against the direction of their edge add `against` to the edge's vector. `None` in undirected graphs.
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
}

impl Conv {
    /// A round of this kind; those of a transformer aren't rounds of messages.
    pub(crate) fn new(scope: &mut Scope<'_>, kind: ConvKind, schema: &GraphSchema, width: i64) -> Self {
        let eps = |scope: &mut Scope<'_>| scope.constant("eps", &[1], 0.0);
        let messages = match kind.chosen(schema) {
            ConvKind::Gine => Messages::Gine {
                inner: Linear::new(&mut scope.sub("inner"), width, width),
                eps: eps(scope),
                edges: EdgeFeatures::new(&mut scope.sub("edges"), schema, width),
                against: (schema.kind == GraphKind::Directed).then(|| scope.normal("against", &[width], 1.0)),
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
        Self { messages, output, norm: LayerNorm::new(&mut scope.sub("norm"), width) }
    }

    /// The kind of messages that nodes receive.
    pub(crate) fn message_kind(&self) -> MessageKind {
        match self.messages {
            Messages::Gin { whole: None, .. } => MessageKind::Sum,
            Messages::Gin { whole: Some(_), .. } => MessageKind::SumAndWhole,
            Messages::Gine { .. } => MessageKind::WithEdges,
            Messages::Directed { .. } => MessageKind::BySide,
        }
    }

    /// One round: from the rows before it, `[R, D]`, to the rows after it, `[R', D]`.
    pub(crate) fn forward<E: Engine>(&self, engine: &E, round: &MessageRound<E::Index>, rows: &E::Rows) -> E::Rows {
        let own = |rows: &E::Rows| engine.gather(rows, round.own.as_ref());
        let received = match &self.messages {
            Messages::Gin { inner, eps, whole } => {
                // The linear map commutes with the sum. Applying it first is cheaper, because there are fewer rows
                // before the round. The bias then becomes a part of each message, which the next layer can make up for.
                let mapped = engine.linear(inner, rows);
                let sums = engine.sum(&mapped, &round.entries, &round.offsets);
                let received = engine.add(engine.grow(own(&mapped), eps), &sums);
                match whole {
                    Some(whole) => engine.to_nodes(received, &engine.linear(whole, &engine.pool(&own(rows)))),
                    None => received,
                }
            }
            Messages::Gine { inner, eps, edges, against } => {
                let along = edges.forward(engine, engine.arrays().messages_per_edge());
                let carried = match against {
                    Some(against) => {
                        engine.join(&along, &engine.add(engine.gather(&along, None), &engine.parameter(against)))
                    }
                    None => along,
                };
                engine.linear(inner, &round.add_along(engine, engine.grow(own(rows), eps), rows, &carried))
            }
            Messages::Directed { own, incoming, outgoing } => {
                // The three maps run as one product, whose result holds three table entries per row; then one sum.
                let table = engine.products([own, incoming, outgoing], rows);
                let sums = engine.sum(&table, &round.entries, &round.offsets);
                match own.bias() {
                    Some(bias) => engine.add(sums, &engine.parameter(bias)),
                    None => sums,
                }
            }
        };
        let mapped = engine.linear(&self.output, &engine.relu(received));
        engine.norm(&self.norm, engine.add(own(rows), &mapped))
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::graph::{Attributes, Edge, GraphBatch, GraphKind, GraphState, GraphStates, Node};
    use crate::nn::Parameters;
    use crate::nn::graph::engine::{HostGraphs, TensorGraphs};
    use crate::nn::graph::features::{Labels, NodeFeatures};
    use crate::nn::host::Packed;

    const WIDTH: i64 = 6;
    const CONVS: [ConvKind; 4] = [ConvKind::Gin, ConvKind::GinVirtual, ConvKind::Gine, ConvKind::Directed];

    fn schema(kind: GraphKind) -> GraphSchema {
        GraphSchema {
            node_classes: 2,
            node_attributes: vec![2],
            edge_classes: 2,
            edge_attributes: vec![2],
            ..GraphSchema::plain(kind, 6)
        }
    }

    /// The formulas of a round, computed node by node and message by message.
    fn one_by_one(conv: &Conv, batch: &GraphBatch<'_>, nodes: &Tensor) -> Tensor {
        let edges = Vec::<Vec<i64>>::try_from(batch.edge_index()).unwrap();
        let row = |node: usize| nodes.get(node as i64);
        let linear = |layer: &Linear, x: &Tensor| layer.forward(&x.unsqueeze(0)).squeeze_dim(0);
        let each = (0..batch.arrays.nodes.len()).map(|i| {
            // Neighbours and messages whose end `at` is this node.
            let received = |at: usize| -> Vec<(usize, usize)> {
                let here = (0..edges[0].len()).filter(|&m| edges[at][m] == i as i64);
                here.map(|m| (edges[1 - at][m] as usize, m)).collect()
            };
            let (incoming, outgoing) = (received(1), received(0));
            let sum = |terms: Vec<Tensor>| terms.iter().fold(row(i).zeros_like(), |sum, term| sum + term);
            // An undirected edge is two messages already.
            let both = || incoming.iter().chain(outgoing.iter().filter(|_| batch.arrays.is_directed()));
            let inner = match &conv.messages {
                Messages::Gin { inner, eps, whole } => {
                    let mapped = |x: &Tensor| linear(inner, x);
                    let received = mapped(&row(i)) * (eps + 1.0) + sum(both().map(|&(j, _)| mapped(&row(j))).collect());
                    let ptr = &batch.arrays.node_ptr;
                    let graph = ptr.windows(2).find(|ends| (ends[0]..ends[1]).contains(&i)).unwrap();
                    let total = || sum((graph[0]..graph[1]).map(row).collect());
                    let n = (graph[1] - graph[0]) as f64;
                    whole.as_ref().map_or_else(
                        || received.shallow_clone(),
                        |whole| &received + linear(whole, &Tensor::cat(&[total() / n, total() / n.sqrt()], 0)),
                    )
                }
                Messages::Gine { inner, eps, edges, against } => {
                    let engine = TensorGraphs { batch, kind: Kind::Double };
                    let sent = edges.forward(&engine, batch.arrays.messages_per_edge());
                    let along = incoming.iter().map(|&(j, m)| (row(j) + sent.get(m as i64)).relu());
                    let (row, sent) = (&row, &sent);
                    let back = against.iter().flat_map(|against| {
                        outgoing.iter().map(move |&(j, m)| (row(j) + sent.get(m as i64) + against).relu())
                    });
                    linear(inner, &(row(i) * (eps + 1.0) + sum(along.chain(back).collect())))
                }
                Messages::Directed { own, incoming: from, outgoing: to } => {
                    linear(own, &row(i))
                        + sum(incoming.iter().map(|&(j, _)| linear(from, &row(j))).collect())
                        + sum(outgoing.iter().map(|&(j, _)| linear(to, &row(j))).collect())
                }
            };
            conv.norm.forward(&(row(i) + linear(&conv.output, &inner.relu())).unsqueeze(0))
        });
        Tensor::cat(&each.collect::<Vec<_>>(), 0)
    }

    /// The states of a trajectory that adds one edge after another and changes another part of the graph.
    fn growing(kind: GraphKind) -> GraphStates {
        let node = |k: u8| Node { class: u16::from(k % 2), attributes: Attributes::new(&[k / 2]).unwrap() };
        let mut graph = GraphState::from_parts(kind, &[0, 1, 0, 1, 2, 0].map(node), &[]).unwrap();
        let mut graphs = vec![GraphState::new(kind), graph.clone()];
        let edges = [(0, 1, 0), (2, 3, 0), (1, 2, 1), (4, 1, 2), (0, 4, 0), (3, 5, 2)];
        for (a, b, value) in edges {
            let edge = Edge { class: value % 2, attributes: Attributes::new(&[(value / 2) as u8]).unwrap() };
            graph.add_edge(a, b, edge).unwrap();
            graphs.push(graph.clone());
        }
        graphs.push(GraphState::from_parts(kind, &[node(0), node(3)], &[]).unwrap());
        graphs.into()
    }

    #[test]
    fn shared_rounds_give_what_each_node_by_itself_gives() {
        for kind in [GraphKind::Directed, GraphKind::Undirected] {
            let schema = schema(kind);
            let states = growing(kind);
            let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
            for (conv, labels) in CONVS.into_iter().flat_map(|conv| {
                [vec![], vec![0, 1], (0..6).collect(), vec![0, 2, 0, 3]].map(|labels| (conv, Labels(labels)))
            }) {
                let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
                let rng = &mut Rng::seeded(1);
                let mut scope = parameters.scope(rng);
                let features = NodeFeatures::new(&mut scope.sub("features"), &schema, WIDTH, &labels);
                let layer = |k| Conv::new(&mut scope.sub(&format!("conv{k}")), conv, &schema, WIDTH);
                let convs: Vec<Conv> = (0..3).map(layer).collect();
                let n = batch.arrays.nodes.len() as i64;

                let engine = TensorGraphs { batch: &batch, kind: Kind::Double };
                let rounds = MessageRounds::new(&engine, &labels, convs.len(), convs[0].message_kind());
                let start = features.forward(&engine, &rounds.features);
                let layers = convs.iter().zip(&rounds.rounds);
                let mut rows = vec![start.size()[0]];
                let shared = layers.fold(start, |x, (conv, round)| {
                    let x = conv.forward(&engine, round, &x);
                    rows.push(x.size()[0]);
                    x
                });
                let shared = rounds.of_nodes(&engine, &shared);
                // Some nodes share a row, fewer after each round, and there are never more rows than nodes.
                let few = rows[1] < n || convs[0].message_kind() == MessageKind::SumAndWhole;
                assert!(few && rows[0] < n && rows.is_sorted() && rows[3] <= n, "{rows:?} of {n}");

                let all = features.forward(&engine, &(0..n as usize).collect::<Vec<_>>());
                let naive = convs.iter().fold(all, |x, conv| one_by_one(conv, &batch, &x));
                let off = (&shared - &naive).abs().max().double_value(&[]);
                assert!(off < 1e-12, "{kind:?}, {labels:?}: {off}");

                let weights = Tensor::from_slice(&(0..n * WIDTH).map(|k| (k as f64 * 0.3).cos()).collect::<Vec<_>>());
                let gradients = |output: &Tensor| -> Tensor {
                    (output.view(-1) * &weights).sum(Kind::Double).backward();
                    let each = parameters.iter().map(|p| {
                        let mut gradient = p.tensor.grad();
                        let copy = gradient.copy().view(-1);
                        let _ = gradient.zero_();
                        copy
                    });
                    Tensor::cat(&each.collect::<Vec<_>>(), 0)
                };
                let (got, expected) = (gradients(&shared), gradients(&naive));
                let off = (&got - &expected).abs().max().double_value(&[]);
                assert!(off < 1e-11 && expected.abs().max().double_value(&[]) > 0.1, "{kind:?}, {labels:?}: {off}");
            }
        }
    }
    #[test]
    fn rounds_on_the_host_are_those_of_tensors() {
        let labels = Labels(vec![0, 2, 0, 3]);
        for (kind, conv) in
            [GraphKind::Directed, GraphKind::Undirected].into_iter().flat_map(|kind| CONVS.map(|conv| (kind, conv)))
        {
            let (schema, states, rng) = (schema(kind), growing(kind), &mut Rng::seeded(2));
            let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
            let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
            let mut scope = parameters.scope(rng);
            let features = NodeFeatures::new(&mut scope.sub("features"), &schema, WIDTH, &labels);
            let convs = ["0", "1", "2"].map(|name| Conv::new(&mut scope.sub(name), conv, &schema, WIDTH));
            // Weights that start at 0 or 1 would hide what is left out.
            for parameter in &parameters {
                let values: Vec<f64> = (0..parameter.tensor.numel()).map(|_| rng.normal()).collect();
                let noise = Tensor::from_slice(&values).view(&parameter.tensor.size()[..]).to_kind(Kind::Float);
                tch::no_grad(|| parameter.tensor.shallow_clone().copy_(&(&parameter.tensor + 0.1 * noise)));
            }
            fn run<E: Engine>(engine: &E, labels: &Labels, features: &NodeFeatures, convs: &[Conv]) -> Tensor {
                let rounds = MessageRounds::new(engine, labels, convs.len(), convs[0].message_kind());
                let start = features.forward(engine, &rounds.features);
                let layers = convs.iter().zip(&rounds.rounds);
                let last = layers.fold(start, |x, (conv, round)| conv.forward(engine, round, &x));
                engine.to_tensor(&rounds.of_nodes(engine, &last))
            }
            let expected = run(&TensorGraphs { batch: &batch, kind: Kind::Float }, &labels, &features, &convs);
            let host = HostGraphs { arrays: states.arrays(), symmetries: None, packed: &Packed::default() };
            let got = run(&host, &labels, &features, &convs);
            assert_eq!(got.size(), expected.size());
            let off = (got - expected).abs().max().double_value(&[]);
            assert!(off < 1e-5, "{kind:?}, {conv:?}: {off}");
        }
    }
}
