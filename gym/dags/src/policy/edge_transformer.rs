//! The network of DAG-GFlowNet, which has linear attention between pairs of nodes.

use gfn::env::{Direction, DiscreteEnv, Env};
use gfn::graph::{GraphBatch, GraphEnv, GraphKind, GraphState, Node};
use gfn::nn::{
    Activation, Estimators, EstimatorsConfig, GraphNetwork, LayerNorm, Linear, Mlp, MlpConfig, NetworkOutput,
    Parameters, Scope,
};
use gfn::objective::{Quantities, Quantity};
use gfn::{Error, Result, Rng};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

/// The settings of an [`EdgeTransformer`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EdgeTransformerConfig {
    /// The width of the embedding of a pair of nodes. It must be even and a multiple of `heads`.
    pub embedding: i64,
    /// The number of attention heads. Each head has a width of `embedding / heads`.
    pub heads: i64,
    /// The number of attention blocks before the two output heads, which share these blocks.
    pub layers: usize,
    /// The number of further attention blocks in each of the two output heads. The first head gives the
    /// logits of edges, the second the logit of the exit (and the flow).
    pub head_layers: usize,
    /// The settings of log F and log Z. Conditions aren't supported.
    pub estimators: EstimatorsConfig,
}

impl Default for EdgeTransformerConfig {
    /// Returns the settings of a network that is small enough for a CPU: width 64, four heads, one shared
    /// block, and one further block for each output head.
    fn default() -> Self {
        Self { embedding: 64, heads: 4, layers: 1, head_layers: 1, estimators: EstimatorsConfig::default() }
    }
}

impl EdgeTransformerConfig {
    /// Returns the settings of the network of Deleu et al.: width 256, four heads of width 64, three shared
    /// blocks, and two further blocks for each output head.
    #[must_use]
    pub fn published() -> Self {
        Self { embedding: 256, layers: 3, head_layers: 2, ..Self::default() }
    }
}

/// The network of DAG-GFlowNet (Deleu et al., *Bayesian structure learning with generative flow networks*,
/// UAI 2022, section 4.3).
///
/// Each ordered pair of nodes is a token. The input of a token consists of the embeddings of both nodes
/// and, in every block, of a bit that is 1 if the graph has the edge. Attention is linear (Katharopoulos et
/// al., *Transformers are RNNs*, 2020), so the cost of a graph of `d` nodes grows with its `d^2` tokens
/// instead of the `d^4` pairs of tokens. P_F has two factors. The first is the probability of the exit,
/// which is the sigmoid of one output. The second is a softmax over legal edges, which applies if the exit
/// isn't chosen. P_B is uniform.
///
/// ```
/// use gfn::{
///     env::Env,
///     objective::Quantities,
///     policy::{GraphPolicy, Policy},
/// };
/// use gfn_dags::{BayesianStructure, EdgeTransformer, EdgeTransformerConfig, StructureConfig};
/// let env = BayesianStructure::new(StructureConfig::new(4))?.into_env();
/// let config = EdgeTransformerConfig { embedding: 16, ..EdgeTransformerConfig::default() };
/// let network =
///     EdgeTransformer::new(&env, config, tch::Device::Cpu, tch::Kind::Float, &mut gfn::Rng::seeded(0))?;
/// let evaluation = GraphPolicy(network).evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.map(|pf| pf.masks().n_legal(0)), Some(12 + 1));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct EdgeTransformer {
    env: GraphEnv,
    /// The embeddings of nodes as sources of edges, of shape `[n, embedding / 2]`.
    source: Tensor,
    /// The embeddings of nodes as targets of edges, of shape `[n, embedding / 2]`.
    target: Tensor,
    shared_blocks: Vec<AttentionBlock>,
    edges: OutputHead,
    /// The head that gives the exit's logit and, if the network estimates state flows, log F.
    graph: OutputHead,
    flow: bool,
    estimators: Estimators,
    parameters: Parameters,
}

impl EdgeTransformer {
    /// Creates a network for the environment of a [`BayesianStructure`](crate::BayesianStructure), with
    /// weights sampled by `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for an embedding width that is odd or no multiple of the number of heads, and for
    /// conditions, which aren't supported. The same error is returned for an environment unless its graphs
    /// are directed and have a fixed number of nodes, one action for each ordered pair of nodes, and an
    /// exit.
    pub fn new(
        env: &GraphEnv,
        config: EdgeTransformerConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        let embedding = config.embedding;
        let heads = config.heads;
        let flow = config.estimators.flow;
        if heads < 1 || embedding < 1 || embedding % heads != 0 || embedding % 2 != 0 {
            let expected = "an embedding that is positive, even and a multiple of the number of heads";
            return Err(Error::config("embedding and heads", format!("{embedding} and {heads}"), expected));
        }
        let n = env.schema().max_nodes;
        let start = env.initial(&[0]);
        let has_all_pairs = env.masks(Direction::Forward, &start).row(0).len() == n * n + 1;
        if env.schema().kind != GraphKind::Directed || start.graphs()[0].n_nodes() != n || !has_all_pairs {
            let got = format!("an environment of {:?} graphs with at most {n} nodes", env.schema().kind)
                .to_lowercase();
            let expected = "the environment of a `BayesianStructure`, with one action for each ordered pair \
                of nodes and an exit";
            return Err(Error::config("the environment of an edge transformer", got, expected));
        }
        let half = [n as i64, embedding / 2];
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let source = scope.normal("source", &half, 1.0);
        let target = scope.normal("target", &half, 1.0);
        let shared = blocks(&mut scope.sub("shared"), config.layers, &config);
        let edges = OutputHead::new(&mut scope.sub("edges"), 1, &config);
        let graph = OutputHead::new(&mut scope.sub("graph"), 1 + i64::from(flow), &config);
        let estimators = Estimators::new(&mut scope, &config.estimators, None)?;
        parameters.check()?;
        Ok(Self {
            env: env.clone(),
            source,
            target,
            shared_blocks: shared,
            edges,
            graph,
            flow,
            estimators,
            parameters,
        })
    }

    /// Returns two masks of ordered pairs of nodes, of shape `[B, d^2]` each. The first marks the edges of
    /// the graphs, the second the edges that may be added. The second mask is needed because the softmax over
    /// edges is computed before the exit's logit is added and before the policy masks illegal actions.
    fn pairs(&self, batch: &GraphBatch<'_>) -> Result<[Tensor; 2]> {
        let b = batch.len();
        let n = self.env.schema().max_nodes;
        if let Some(other) = batch.arrays.sizes().find(|&size| size != n) {
            let remedy = "give graphs of the environment that the policy was built for";
            return Err(Error::shape("graphs of an edge transformer", [n as i64], [other as i64], remedy));
        }
        let graph = |g: usize| {
            let edges: Vec<_> =
                batch.arrays.edges_of(g).map(|(a, b, edge)| (a as u32, b as u32, edge)).collect();
            GraphState::from_parts(GraphKind::Directed, &vec![Node::default(); n], &edges)
        };
        let graphs = (0..b).map(graph).collect::<Result<Vec<_>>>()?.into();
        let mut present = vec![false; b * n * n];
        for pair in batch.arrays.edge_pairs() {
            present[pair] = true;
        }
        let tensor =
            |bits: &[bool]| Tensor::from_slice(bits).view([b as i64, -1]).to_device(self.parameters.device());
        let legal = tensor(&self.env.masks(Direction::Forward, &graphs).legal).narrow(1, 0, (n * n) as i64);
        Ok([tensor(&present), legal])
    }

    /// Maps adjacency bits of shape `[B, d^2]` to logits of edges of shape `[B, d^2]` and to outputs per
    /// graph of shape `[B, 1]`, or `[B, 2]` if the network estimates log F.
    fn layers(&self, present: &Tensor) -> (Tensor, Tensor) {
        let b = present.size()[0];
        let d = self.env.schema().max_nodes as i64;
        let bits = present.to_kind(self.parameters.kind()).unsqueeze(2);
        let shape = [d, d, -1];
        let source = self.source.unsqueeze(1).expand(shape, false);
        let target = self.target.unsqueeze(0).expand(shape, false);
        let mut tokens = Tensor::cat(&[source, target], 2).view([1, d * d, -1]).expand([b, -1, -1], false);
        for block in &self.shared_blocks {
            tokens = block.forward(&tokens, &bits);
        }
        let edges = self.edges.tokens(&tokens, &bits);
        let graph = self.graph.tokens(&tokens, &bits).mean_dim([1i64].as_slice(), false, None);
        (self.edges.out.forward(&edges).squeeze_dim(2), self.graph.out.forward(&graph))
    }
}

impl GraphNetwork for EdgeTransformer {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        if batch.conditions.as_ref().is_some_and(|conditions| conditions.size().get(1) != Some(&0)) {
            let remedy = "sample without conditions, or use a policy of perceptrons, which takes conditions";
            return Err(Error::missing(
                "an edge transformer",
                "a network that takes conditions, but it takes none",
                remedy,
            ));
        }
        let [present, legal] = self.pairs(batch)?;
        let log_flow = wants.has(Quantity::LogFlow) && self.flow;
        if !wants.has(Quantity::LogPf) && !log_flow {
            return Ok(NetworkOutput::default());
        }
        let (edges, graph) = self.layers(&present);
        // The softmax makes the probabilities of the edges sum to 1. The logit of the exit, which is added
        // now, must therefore be the log-odds of the exit.
        let edges = edges.masked_fill(&legal.logical_not(), IMPOSSIBLE).log_softmax(1, None);
        let pf = Some(vec![edges.view([-1, 1]), graph.narrow(1, 0, 1)]);
        let values = log_flow.then(|| (Quantity::LogFlow, graph.select(1, 1))).into_iter().collect();
        Ok(NetworkOutput { pf, values, ..NetworkOutput::default() })
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

/// The logit of an illegal edge. It is so small that the edge's probability is 0, and finite so that
/// gradients are finite.
const IMPOSSIBLE: f64 = -1e5;

/// An output head, which consists of attention blocks followed by an MLP.
#[derive(Debug)]
struct OutputHead {
    blocks: Vec<AttentionBlock>,
    out: Mlp,
}

impl OutputHead {
    fn new(scope: &mut Scope<'_>, outputs: i64, config: &EdgeTransformerConfig) -> Self {
        let hidden = vec![config.embedding, config.embedding / 2];
        let mlp = MlpConfig { hidden, ..MlpConfig::default() };
        let blocks = blocks(scope, config.head_layers, config);
        Self { blocks, out: Mlp::new(&mut scope.sub("out"), config.embedding, outputs, &mlp) }
    }

    fn tokens(&self, shared: &Tensor, bits: &Tensor) -> Tensor {
        self.blocks.iter().fold(shared.shallow_clone(), |tokens, block| block.forward(&tokens, bits))
    }
}

fn blocks(scope: &mut Scope<'_>, count: usize, config: &EdgeTransformerConfig) -> Vec<AttentionBlock> {
    (0..count).map(|k| AttentionBlock::new(&mut scope.sub(&format!("layer{k}")), config)).collect()
}

/// A block that consists of linear attention and a feed-forward layer. Each of these two parts has a residual
/// connection. The input of each part includes the adjacency bit and is normalised by a layer norm.
#[derive(Debug)]
struct AttentionBlock {
    heads: i64,
    attention: PairInput,
    query_key_value: Linear,
    merge: Linear,
    dense: PairInput,
    widen: Linear,
    narrow: Linear,
}

/// The width of the hidden layer of a block, as a multiple of the embedding's width.
const WIDENING: i64 = 2;

impl AttentionBlock {
    fn new(scope: &mut Scope<'_>, config: &EdgeTransformerConfig) -> Self {
        let width = config.embedding;
        Self {
            heads: config.heads,
            attention: PairInput::new(&mut scope.sub("attention"), width),
            query_key_value: Linear::new(&mut scope.sub("query_key_value"), 2 * width, 3 * width),
            merge: Linear::new(&mut scope.sub("merge"), width, width),
            dense: PairInput::new(&mut scope.sub("dense"), width),
            widen: Linear::new(&mut scope.sub("widen"), 2 * width, WIDENING * width),
            narrow: Linear::new(&mut scope.sub("narrow"), WIDENING * width, width),
        }
    }

    /// Maps tokens of shape `[B, P, D]` and adjacency bits of shape `[B, P, 1]` to new tokens of shape `[B,
    /// P, D]`, for `P` pairs and the embedding width `D`.
    fn forward(&self, tokens: &Tensor, bits: &Tensor) -> Tensor {
        let size = tokens.size();
        let b = size[0];
        let p = size[1];
        let width = size[2];
        let each = self.query_key_value.forward(&self.attention.forward(tokens, bits));
        // The tensor of queries, keys and values gets the shape [3, B, heads, P, width / heads].
        let each = each.view([b, p, 3, self.heads, width / self.heads]).permute([2, 0, 3, 1, 4]);
        // An attention weight is the product of the positive features of query and key: elu + 1.
        let query = each.get(0).elu() + 1.0;
        let key = each.get(1).elu() + 1.0;
        let value = each.get(2);
        let summary = key.transpose(2, 3).matmul(&value);
        let total = key.sum_dim_intlist([2i64].as_slice(), true, None);
        let weight = query.matmul(&total.transpose(2, 3));
        let heard = (query.matmul(&summary) / weight).transpose(1, 2).reshape([b, p, width]);
        let tokens = tokens + self.merge.forward(&heard);
        let hidden = Activation::Relu.apply(&self.widen.forward(&self.dense.forward(&tokens, bits)));
        tokens + self.narrow.forward(&hidden)
    }
}

/// The input of a layer, which is the concatenation of the embedded adjacency bit and the token of each
/// pair, after normalisation.
#[derive(Debug)]
struct PairInput {
    bit: Linear,
    norm: LayerNorm,
}

impl PairInput {
    fn new(scope: &mut Scope<'_>, width: i64) -> Self {
        Self {
            bit: Linear::new(&mut scope.sub("bit"), 1, width),
            norm: LayerNorm::new(&mut scope.sub("norm"), 2 * width),
        }
    }

    fn forward(&self, tokens: &Tensor, bits: &Tensor) -> Tensor {
        self.norm.forward(&Tensor::cat(&[self.bit.forward(bits), tokens.shallow_clone()], 2))
    }
}
