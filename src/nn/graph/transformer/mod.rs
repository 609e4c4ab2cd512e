//! A graph transformer with attention along edges, and with attention to and from a virtual node of each
//! graph.

mod attention_tables;

use tch::Tensor;

use super::GraphNetConfig;
use super::conv::{MessageRounds, Plan};
use super::engine::{TensorGraphs, scales, sums};
use super::features::{EdgeFeatures, Labels, NodeFeatures};
use super::message_passing::{add_global, condition_layer, global_layer};
use super::torso::{Embeddings, TensorTorso};
use crate::Result;
use crate::graph::{GraphBatch, GraphSchema};
use crate::nn::{LayerNorm, Linear, Scope};
use attention_tables::{AttentionTables, Group, Relation};

/// The ratio of the width of a feed-forward block's hidden layer to the width of the embedding.
const FEED_FORWARD: i64 = 4;

/// A graph transformer. Each of its layers consists of an attention block and a feed-forward block. Each
/// block begins with a layer norm and has a residual connection.
///
/// A node attends to its neighbours in both directions, to the virtual node of its graph and to itself. If
/// edges are directed, messages along an edge and messages against it have different vectors. If there are
/// two opposite edges between two nodes, each of the nodes receives one message from the other, with the sum
/// of the vectors of both edges. The virtual node attends to all nodes of its graph and to itself. The
/// virtual node starts as the sum of a learned vector and the embedded condition. The design follows
/// `GraphTransformer` of the repository recursionpharma/gflownet.
#[derive(Debug)]
struct Transformer {
    /// The initial vector of virtual nodes, before a condition is added, `[D]`.
    start: Tensor,
    layers: Vec<Layer>,
    norm: LayerNorm,
    schema: GraphSchema,
}

impl Transformer {
    fn new(scope: &mut Scope<'_>, schema: &GraphSchema, layers: usize, width: i64, heads: i64) -> Self {
        Self {
            start: scope.normal("virtual", &[width], 1.0),
            layers: (0..layers)
                .map(|k| Layer::new(&mut scope.sub(&format!("layer{k}")), schema, width, heads))
                .collect(),
            norm: LayerNorm::new(&mut scope.sub("norm"), width),
            schema: schema.clone(),
        }
    }

    /// Computes embeddings of nodes, `[N, D]`, and of graphs, `[B, 2 D]`, from node features `[N, D]` and
    /// embedded conditions `[B, D]`. The embedding of a graph is the mean over its nodes, concatenated with
    /// its virtual node.
    fn forward(
        &self,
        batch: &GraphBatch<'_>,
        nodes: &Tensor,
        condition: Option<&Tensor>,
    ) -> (Tensor, Tensor) {
        let b = batch.len() as i64;
        let start = self.start.unsqueeze(0).expand([b, -1], false);
        let start = match condition {
            Some(condition) => start + condition,
            None => start,
        };
        let (nodes, virtuals) = if b == 0 {
            (nodes.shallow_clone(), start)
        } else {
            let tables = AttentionTables::new(batch, &self.schema, nodes.kind());
            let start = tables.rows(nodes, &start);
            let rows = self.layers.iter().fold(start, |rows, layer| layer.forward(&tables, &rows));
            tables.split(&self.norm.forward(&rows))
        };
        let mean = sums(batch, &nodes) * scales(batch, -1.0, nodes.kind());
        (nodes, Tensor::cat(&[mean, virtuals], 1))
    }
}

/// The default torso for [`ConvKind::Transformer`](super::ConvKind::Transformer): node features and a
/// transformer.
#[derive(Debug)]
pub(super) struct TransformerTorso {
    features: NodeFeatures,
    plan: Plan,
    transformer: Transformer,
    condition: Option<Linear>,
    global: Option<Linear>,
}

impl TransformerTorso {
    pub(super) fn new(
        scope: &mut Scope<'_>,
        schema: &GraphSchema,
        labels: &Labels,
        config: &GraphNetConfig,
        heads: i64,
    ) -> Self {
        let width = config.embedding;
        let features = NodeFeatures::new(&mut scope.sub("features"), schema, labels, config);
        let transformer =
            Transformer::new(&mut scope.sub("transformer"), schema, config.layers, width, heads);
        Self {
            plan: Plan::new(&features, &[]),
            features,
            transformer,
            condition: condition_layer(scope, config, width),
            global: global_layer(scope, config),
        }
    }
}

impl TensorTorso for TransformerTorso {
    fn widths(&self) -> (i64, i64) {
        let width = self.features.width();
        (width, 2 * width)
    }

    fn embed(&self, batch: &GraphBatch<'_>, conditions: Option<&Tensor>) -> Result<Embeddings> {
        let engine = TensorGraphs::new(batch, self.features.kind());
        let rounds = MessageRounds::new(&engine, &self.plan);
        let features = self.features.forward(&engine, &rounds.features);
        let features = rounds.expand_to_nodes(&engine, &features);
        let condition =
            self.condition.as_ref().zip(conditions).map(|(layer, conditions)| layer.forward(conditions));
        let (nodes, graphs) = self.transformer.forward(batch, &features, condition.as_ref());
        Ok(add_global(&engine, self.global.as_ref(), nodes, graphs))
    }
}

#[derive(Debug)]
struct Layer {
    norm: LayerNorm,
    /// The linear map from the row of a node or virtual node to its query, key and value, concatenated. The
    /// map has no bias: a bias of the key cancels in the softmax, and a bias of the value is equivalent to a
    /// bias of the output.
    project: Linear,
    /// The vectors of edge features, `[.., 2 D]`. The first half of a vector is added to the key, the second
    /// half to the value.
    edges: EdgeFeatures,
    /// The vector of each [`Relation`], `[relations, 2 D]`. The first half is added to the key, the second
    /// half to the value.
    relations: Tensor,
    output: Linear,
    norm_feed: LayerNorm,
    feed: (Linear, Linear),
    heads: i64,
}

impl Layer {
    fn new(scope: &mut Scope<'_>, schema: &GraphSchema, width: i64, heads: i64) -> Self {
        Self {
            norm: LayerNorm::new(&mut scope.sub("norm"), width),
            project: Linear::without_bias(&mut scope.sub("project"), width, 3 * width),
            edges: EdgeFeatures::new(&mut scope.sub("edges"), schema, 2 * width),
            relations: scope.normal("relations", &[Relation::count(schema) as i64, 2 * width], 1.0),
            output: Linear::new(&mut scope.sub("output"), 2 * width, width),
            norm_feed: LayerNorm::new(&mut scope.sub("norm_feed"), width),
            feed: (
                Linear::new(&mut scope.sub("feed_in"), width, FEED_FORWARD * width),
                Linear::new(&mut scope.sub("feed_out"), FEED_FORWARD * width, width),
            ),
            heads,
        }
    }

    fn forward(&self, tables: &AttentionTables, rows: &Tensor) -> Tensor {
        let attended = self.attend(tables, &self.norm.forward(rows));
        // Attention averages over messages, so it can't count them. A copy of the result that is multiplied
        // by `log(1 + n)`, where n is the number of messages, can count them (Corso et al., *Principal
        // Neighbourhood Aggregation*, 2020, eq. 5).
        let scaled = &attended * &tables.log_degree;
        let rows = rows + self.output.forward(&Tensor::cat(&[attended, scaled], 1));
        let hidden = self.feed.0.forward(&self.norm_feed.forward(&rows)).relu();
        rows + self.feed.1.forward(&hidden)
    }

    /// Computes the multi-head attention of each row (node or virtual node) to the rows from which it
    /// receives messages, `[R, D]`.
    fn attend(&self, tables: &AttentionTables, rows: &Tensor) -> Tensor {
        let projected = self.project.forward(rows);
        let depth = rows.size()[1] / self.heads;
        // The vectors of all F features (edge features and relations) have the shape `[2, heads, F, depth]`.
        // The two entries of the first dimension are the parts for the key and for the value.
        let features = Tensor::cat(&[self.edges.table(), self.relations.shallow_clone()], 0);
        let features = features.view([-1, 2, self.heads, depth]).permute([1, 2, 0, 3]);
        let groups: Vec<Tensor> =
            tables.groups.iter().map(|group| self.attend_within(group, &projected, &features)).collect();
        tables.scatter(&groups)
    }

    /// Computes multi-head attention within a group of graphs of similar size, `[G L, D]`, from projected
    /// rows `[R, 3 D]`.
    ///
    /// The message from `s` to `r` has the key `k_s + sum_f c_rsf t_f`, where `t_f` is the vector of feature
    /// `f`, and `c_rsf` is the count of this feature for the pair. The value of the message is computed in
    /// the same way. Products with `t` are computed per row and feature, which is cheaper than per pair of
    /// rows.
    fn attend_within(&self, group: &Group, projected: &Tensor, features: &Tensor) -> Tensor {
        let width = projected.size()[1] / 3;
        let heads = self.heads;
        let depth = width / self.heads;
        let (graphs, length) = group.sizes;
        // The parts have the shape `[3, G, heads, L, depth]`. The three entries of the first dimension are
        // query, key and value.
        let parts = group
            .gather(projected)
            .view([graphs, length, 3, heads, depth])
            .permute([2, 0, 3, 1, 4])
            .contiguous();
        let query = parts.get(0) / (depth as f64).sqrt();
        let key = parts.get(1);
        let value = parts.get(2);

        let feature_scores = query.matmul(&features.get(0).transpose(1, 2)).transpose(1, 2);
        let by_feature = feature_scores.matmul(&group.features.transpose(2, 3)).transpose(1, 2);
        let scores = query.matmul(&key.transpose(2, 3)) + by_feature;
        let weights = scores.masked_fill(&group.masked, f64::NEG_INFINITY).softmax(3, None);

        let from_features =
            weights.transpose(1, 2).matmul(&group.features).transpose(1, 2).matmul(&features.get(1));
        let sum = weights.matmul(&value) + from_features;
        sum.transpose(1, 2).reshape([graphs * length, width])
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::graph::{Attributes, Edge, GraphKind, GraphState, GraphStates, Node};
    use crate::nn::Parameters;

    /// Returns the messages to each row (node or virtual node) of a layer, in the order of the rows. A
    /// message consists of the index of the sending row, and the indices of the feature vectors that are
    /// added to the message.
    fn messages(graphs: &[GraphState], directed: bool) -> Vec<Vec<(usize, Vec<i64>)>> {
        let mut messages = Vec::new();
        for graph in graphs {
            let first = messages.len();
            let n = graph.n_nodes();
            // The feature vectors with the indices 0 and 1 belong to the edge classes, 2 to 4 to the values
            // of an attribute, and those from 5 on to the relations.
            messages.extend((0..=n).map(|row| vec![(first + row, vec![7])]));
            for node in 1..=n {
                messages[first + node].push((first, vec![5]));
                messages[first].push((first + node, vec![6]));
            }
            for (i, j) in graph.edges() {
                let edge = graph.edge(i, j).unwrap();
                let mut vectors = vec![i64::from(edge.class), 2 + i64::from(edge.attributes.values()[0])];
                let i = first + 1 + i as usize;
                let j = first + 1 + j as usize;
                let add = |row: &mut Vec<(usize, Vec<i64>)>, from: usize, vectors: &[i64]| match row
                    .iter_mut()
                    .find(|(other, _)| *other == from)
                {
                    Some((_, both)) => both.extend(vectors),
                    None => row.push((from, vectors.to_vec())),
                };
                add(&mut messages[j], i, &vectors);
                if directed {
                    vectors.push(8);
                }
                add(&mut messages[i], j, &vectors);
            }
        }
        messages
    }

    #[test]
    fn attention_tables_agree_with_a_sum_over_messages() {
        for (kind, same_size) in
            [(GraphKind::Directed, false), (GraphKind::Undirected, false), (GraphKind::Directed, true)]
        {
            let schema =
                GraphSchema { edge_classes: 2, edge_attributes: vec![2], ..GraphSchema::plain(kind, 12) };
            let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
            let layer = Layer::new(&mut parameters.scope(&mut Rng::seeded(3)), &schema, 6, 2);
            let directed = kind == GraphKind::Directed;
            let edge = |class, value| Edge { class, attributes: Attributes::new(&[value]).unwrap() };
            let mut edges = vec![(0, 1, edge(0, 1)), (2, 1, edge(1, 0)), (2, 3, edge(1, 2))];
            if directed {
                // Adds an edge from node 1 to node 0, opposite to the first edge.
                edges.push((1, 0, edge(1, 2)));
            }
            let graph = |n: usize, edges: &[_]| {
                GraphState::from_parts(kind, &vec![Node::default(); n], edges).unwrap()
            };
            let mut graphs = vec![graph(4, &edges), graph(4, &[])];
            if !same_size {
                graphs.extend([graph(0, &[]), graph(12, &edges), graph(2, &edges[..1])]);
            }
            let states = GraphStates::from(graphs.clone());
            let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
            assert_eq!(batch.arrays.same_size().is_some(), same_size);
            let tables = AttentionTables::new(&batch, &schema, Kind::Double);
            let listed = messages(&graphs, directed);
            let values: Vec<f64> = (0..listed.len() * 6).map(|k| (k as f64 * 0.7).sin()).collect();
            let rows = Tensor::from_slice(&values).view([-1, 6]);
            let got = layer.attend(&tables, &rows);

            let projected = layer.project.forward(&rows);
            let table = Tensor::cat(&[layer.edges.table(), layer.relations.shallow_clone()], 0);
            for (row, messages) in listed.iter().enumerate() {
                for head in 0..2 {
                    let part = |x: &Tensor, which: i64| x.narrow(0, which * 6 + head * 3, 3);
                    let query = part(&projected.get(row as i64), 0);
                    let sent: Vec<Tensor> = messages
                        .iter()
                        .map(|(from, vectors)| {
                            let added = table.index_select(0, &Tensor::from_slice(vectors));
                            let added = added.sum_dim_intlist([0i64].as_slice(), false, None);
                            projected.get(*from as i64).narrow(0, 6, 12) + added
                        })
                        .collect();
                    let scores: Vec<Tensor> =
                        sent.iter().map(|x| query.dot(&part(x, 0)) / 3f64.sqrt()).collect();
                    let weights = Tensor::stack(&scores, 0).softmax(0, None);
                    let terms = sent.iter().enumerate().map(|(k, x)| weights.get(k as i64) * part(x, 1));
                    let expected = terms.fold(query.zeros_like(), |sum, term| sum + term);
                    let off =
                        (got.get(row as i64).narrow(0, head * 3, 3) - expected).abs().max().double_value(&[]);
                    assert!(off < 1e-12, "{kind:?}, row {row}: {off}");
                }
            }
            let counted: Vec<f64> = tables.log_degree.exp().view(-1).try_into().unwrap();
            // If edges are directed, node 1 sends one message to node 0 for both of the opposite edges
            // between them, but `log_degree` counts two.
            let both_ways = if directed { 1.0 } else { 0.0 };
            assert!((counted[1] - (1.0 + 3.0 + both_ways)).abs() < 1e-9, "{counted:?}");
        }
    }
}
