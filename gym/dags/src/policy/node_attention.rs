//! Messages along edges, then attention among nodes: the network of gfnx's baseline for structures.

use gfn::graph::GraphBatch;
use gfn::nn::{
    Activation, Embedding, EstimatorsConfig, GraphNetwork, LayerNorm, Linear, Mlp, MlpConfig, NetworkOutput,
    Parameters, Scope,
};
use gfn::quantity::Quantities;
use gfn::{Result, Rng};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::pairs::{PairEstimators, check_heads};
use crate::BayesianStructure;

/// The size of a [`NodeAttention`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeAttentionConfig {
    /// Width of all embeddings and hidden layers: a multiple of `heads`.
    pub embedding: i64,
    /// Heads of attention, which share the embedding.
    pub heads: i64,
    /// The state-flow head and log Z. It takes no conditions.
    pub estimators: EstimatorsConfig,
}

impl Default for NodeAttentionConfig {
    /// The size of gfnx's baseline: width 128, four heads.
    fn default() -> Self {
        Self { embedding: 128, heads: 4, estimators: EstimatorsConfig::default() }
    }
}

/// The network of gfnx's baseline for structures (`baselines/mdb_dag.py` at commit 068316d).
///
/// One round of a graph network with vectors of nodes, edges and the graph (Battaglia et al., *Relational inductive biases*, 2018,
/// algorithm 1, sums as aggregation), each updated by a perceptron and a residual connection with a layer norm; multi-head attention
/// among all nodes of a graph; then the logit of an edge is the product of what a perceptron makes of its source and what another
/// makes of its target, and the exit's is made of the graph's vector. P_B is uniform.
///
/// All graphs begin with the same vectors, so what an edge sends depends on its ends alone: messages are computed once for each
/// ordered pair of nodes, not for each edge of each graph, and summed by a product with the adjacency matrices. The result is that of
/// message passing edge by edge. gfnx projects nodes to query, key and value twice in a row without anything between, norms edges that
/// nothing uses afterwards, and norms the graph's vector twice in a row; here the first and the last are done once and the second not at
/// all: 380,545 parameters and log Z at the default size and five nodes, where gfnx has 430,081.
///
/// ```
/// use gfn::{env::Env, policy::{GraphPolicy, Policy}, quantity::Quantities};
/// use gfn_dags::{BayesianStructure, NodeAttention, NodeAttentionConfig, StructureConfig};
/// let env = BayesianStructure::new(StructureConfig::new(4))?;
/// let config = NodeAttentionConfig { embedding: 16, ..NodeAttentionConfig::default() };
/// let network = NodeAttention::new(&env, config, tch::Device::Cpu, tch::Kind::Float, &mut gfn::Rng::seeded(0))?;
/// let evaluation = GraphPolicy(network).evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.map(|pf| pf.masks().n_legal(0)), Some(12 + 1));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct NodeAttention {
    layers: Layers,
    shared: PairEstimators,
}

#[derive(Debug)]
struct Layers {
    messages: Messages,
    attention: Attention,
    senders: Mlp,
    receivers: Mlp,
    /// The exit's logit, and log F beside it.
    graph: Mlp,
}

impl NodeAttention {
    /// A network for the graphs of an environment, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) for an embedding that the heads can't share, and for conditions, which it doesn't take.
    pub fn new(
        env: &BayesianStructure,
        config: NodeAttentionConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        check_heads(config.embedding, config.heads, 1)?;
        let (n, width) = (env.n_nodes(), config.embedding);
        let mlp = MlpConfig { hidden: vec![width], ..MlpConfig::default() };
        let build = |scope: &mut Scope<'_>, of_graph: i64| Layers {
            messages: Messages::new(&mut scope.sub("messages"), n as i64, width),
            attention: Attention::new(&mut scope.sub("attention"), width, config.heads),
            senders: Mlp::new(&mut scope.sub("senders"), width, width, &mlp),
            receivers: Mlp::new(&mut scope.sub("receivers"), width, width, &mlp),
            graph: Mlp::new(&mut scope.sub("graph"), width, of_graph, &mlp),
        };
        let (shared, layers) = PairEstimators::with(n, &config.estimators, device, kind, rng, build)?;
        Ok(Self { layers, shared })
    }
}

impl Layers {
    fn forward(&self, adjacency: &Tensor) -> (Tensor, Tensor) {
        let (b, d) = (adjacency.size()[0], adjacency.size()[1]);
        let (nodes, graphs) = self.messages.forward(adjacency);
        let nodes = self.attention.forward(&nodes);
        let senders = self.senders.forward(&nodes).transpose(0, 1);
        let receivers = self.receivers.forward(&nodes).permute([1, 2, 0]);
        (senders.bmm(&receivers).view([b, d * d]), self.graph.forward(&graphs))
    }
}

impl GraphNetwork for NodeAttention {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        self.shared.output(batch, wants, |adjacency| self.layers.forward(adjacency))
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.shared.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        &self.shared.parameters
    }
}

/// One round of a graph network on vectors that are the same in all graphs: one for each node, one for edges, one for the graph.
#[derive(Debug)]
struct Messages {
    nodes: Embedding,
    /// Of edges and of graphs, `[1, D]` each.
    edge: Embedding,
    graph: Embedding,
    /// Perceptrons of one hidden layer, whose inputs are `(edge, source, target, graph)`, `(node, sent, received, graph)` and
    /// `(nodes, edges, graph)` side by side.
    update_edge: Update,
    update_node: Update,
    update_graph: Update,
    norm_nodes: LayerNorm,
    norm_graphs: LayerNorm,
}

impl Messages {
    fn new(scope: &mut Scope<'_>, n_nodes: i64, width: i64) -> Self {
        Self {
            nodes: Embedding::new(&mut scope.sub("nodes"), n_nodes, width),
            edge: Embedding::new(&mut scope.sub("edge"), 1, width),
            graph: Embedding::new(&mut scope.sub("graph"), 1, width),
            update_edge: Update::new(&mut scope.sub("update_edge"), 4, width),
            update_node: Update::new(&mut scope.sub("update_node"), 4, width),
            update_graph: Update::new(&mut scope.sub("update_graph"), 3, width),
            norm_nodes: LayerNorm::new(&mut scope.sub("norm_nodes"), width),
            norm_graphs: LayerNorm::new(&mut scope.sub("norm_graphs"), width),
        }
    }

    /// What an edge from i to j sends, `[d, d, D]`.
    fn sent(&self) -> Tensor {
        let (nodes, update) = (self.nodes.weight(), &self.update_edge);
        let ends = update.part(1, nodes).unsqueeze(1) + update.part(2, nodes).unsqueeze(0);
        update.finish(&(ends + update.part(0, self.edge.weight()) + update.part(3, self.graph.weight())))
    }

    /// Adjacency matrices `[B, d, d]`, sources by targets, to vectors of nodes `[d, B, D]` and of graphs `[B, D]`.
    fn forward(&self, adjacency: &Tensor) -> (Tensor, Tensor) {
        let (b, d) = (adjacency.size()[0], adjacency.size()[1]);
        let (nodes, graph, messages) = (self.nodes.weight(), self.graph.weight(), self.sent());
        let width = nodes.size()[1];

        // A node's sums over its edges are products of a row and a column of the matrix with what these edges send. The first layer
        // of the update is linear, so it is applied to messages, of which there are fewer than sums.
        let update = &self.update_node;
        let sent = update.part(1, &messages);
        let received = update.part(2, &messages).transpose(0, 1);
        let own = (update.part(0, nodes) + update.part(3, graph)).unsqueeze(1);
        let rows = Tensor::cat(&[adjacency.transpose(0, 1), adjacency.permute([2, 0, 1])], 2);
        let updates = update.finish(&own.baddbmm(&rows, &Tensor::cat(&[sent, received], 1), 1.0, 1.0));

        let update = &self.update_graph;
        let sums = update.part(0, &updates.sum_dim_intlist([0i64].as_slice(), false, None));
        let edges = adjacency.view([b, d * d]).matmul(&update.part(1, &messages).view([d * d, width]));
        let graphs = update.finish(&(sums + edges + update.part(2, graph)));
        (self.norm_nodes.forward(&(updates + nodes.unsqueeze(1))), self.norm_graphs.forward(&(graphs + graph)))
    }
}

/// A perceptron of one hidden layer on several inputs of one width, side by side, that needn't come together.
#[derive(Debug)]
struct Update {
    input: Linear,
    output: Linear,
    width: i64,
}

impl Update {
    fn new(scope: &mut Scope<'_>, inputs: i64, width: i64) -> Self {
        let input = Linear::new(&mut scope.sub("input"), inputs * width, width);
        Self { input, output: Linear::new(&mut scope.sub("output"), width, width), width }
    }

    /// The share of input `k` in the hidden layer, without the bias.
    fn part(&self, k: i64, x: &Tensor) -> Tensor {
        x.linear(&self.input.weight().narrow(1, k * self.width, self.width), None::<&Tensor>)
    }

    /// The output of a sum of parts.
    fn finish(&self, parts: &Tensor) -> Tensor {
        let hidden = self.input.bias().map_or_else(|| parts.shallow_clone(), |bias| parts + bias);
        self.output.forward(&Activation::Relu.apply(&hidden))
    }
}

/// Attention of all nodes of a graph to all, and a layer norm.
#[derive(Debug)]
struct Attention {
    query_key_value: Linear,
    merge: Linear,
    norm: LayerNorm,
    heads: i64,
}

impl Attention {
    fn new(scope: &mut Scope<'_>, width: i64, heads: i64) -> Self {
        Self {
            query_key_value: Linear::new(&mut scope.sub("query_key_value"), width, 3 * width),
            merge: Linear::new(&mut scope.sub("merge"), width, width),
            norm: LayerNorm::new(&mut scope.sub("norm"), width),
            heads,
        }
    }

    /// `[d, B, D]` to `[d, B, D]`.
    fn forward(&self, nodes: &Tensor) -> Tensor {
        let size = nodes.size();
        let (d, b, width) = (size[0], size[1], size[2]);
        let depth = width / self.heads;
        // [3, B * heads, d, depth]
        let each = self.query_key_value.forward(nodes).view([d, b, 3, self.heads, depth]).permute([2, 1, 3, 0, 4]);
        let each = each.reshape([3, b * self.heads, d, depth]);
        let (query, key, value) = (each.get(0) / (depth as f64).sqrt(), each.get(1), each.get(2));
        let heard = query.bmm(&key.transpose(1, 2)).softmax(2, None).bmm(&value);
        let heard = heard.view([b, self.heads, d, depth]).permute([2, 0, 1, 3]).reshape([d, b, width]);
        self.norm.forward(&self.merge.forward(&heard))
    }
}
