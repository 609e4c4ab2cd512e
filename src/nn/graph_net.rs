use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::conv::Conv;
use super::heads::Heads;
use super::node_values::{NodeFeatures, NodeValues};
use super::pairs::pair_features;
use super::{Activation, ConvKind, Linear, LogZ, Mlp, MlpConfig, Parameters, Scope};
use crate::env::Direction;
use crate::graph::{GraphBatch, GraphEnv, GraphSchema};
use crate::policy::{GraphNetwork, GraphOutput, Wants};
use crate::{Error, Result, Rng};

/// What a backward policy is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum BackwardPolicy {
    /// Uniform over legal backward actions; nothing to train.
    #[default]
    Uniform,
    /// Learned, by heads on the torso of the forward policy.
    SharedTorso,
    /// Learned, by a network of its own.
    Separate,
}

/// The size and make of a [`GraphNet`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GraphNetConfig {
    /// How nodes exchange messages.
    pub conv: ConvKind,
    /// Rounds of message passing.
    pub layers: usize,
    /// Width of node embeddings and of the heads' hidden layers.
    pub embedding: i64,
    /// Whether a node's label enters: only where nodes are distinguishable.
    pub identity: bool,
    /// Lengths of walks counted as pair features beyond the edge back; `None` for no pair features at all.
    pub pair_walks: Option<usize>,
    /// Whether heads of nodes, edges and pairs see the whole graph, not only the neighbourhood that messages reach.
    pub global: bool,
    /// What P_B is.
    pub backward: BackwardPolicy,
    /// Whether there is a state-flow head, for DB and SubTB.
    pub flow: bool,
    /// Width of the condition vectors; 0 for none.
    pub n_conditions: i64,
    /// Where log Z starts.
    pub initial_log_z: f64,
    /// Where the bias of the exit action's logit starts. At 0 an untrained policy takes each legal action about equally often,
    /// so its trajectories are as long as there is much to do; above, they are shorter, and so are the first steps of training.
    pub initial_exit_bias: f64,
}

impl Default for GraphNetConfig {
    fn default() -> Self {
        Self {
            conv: ConvKind::Gin,
            layers: 2,
            embedding: 128,
            identity: false,
            pair_walks: None,
            global: true,
            backward: BackwardPolicy::Uniform,
            flow: false,
            n_conditions: 0,
            initial_log_z: 0.0,
            initial_exit_bias: 0.0,
        }
    }
}

/// The library's graph network: message passing, then a head per action type at its anchor, a flow head and log Z.
///
/// ```
/// use gfn::{env::Env, nn::{GraphNet, GraphNetConfig}, policy::{GraphPolicy, Policy, Wants}, testing::Triangles, Rng};
/// let env = Triangles::new();
/// let net = GraphNet::new(&env, GraphNetConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0))?;
/// let evaluation = GraphPolicy(net).evaluate(&env, &env.initial(2), None, Wants::PF)?;
/// assert_eq!(evaluation.pf.unwrap().len(), 2);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct GraphNet {
    config: GraphNetConfig,
    forward: Torso,
    pf: Heads,
    backward: Option<Torso>,
    pb: Option<Heads>,
    flow: Option<Mlp>,
    log_z: LogZ,
    parameters: Parameters,
}

impl GraphNet {
    /// A network for the graphs and actions of an environment, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for an embedding below 1.
    pub fn new<E: GraphEnv>(
        env: &E,
        config: GraphNetConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        if config.embedding < 1 {
            return Err(Error::Config {
                setting: "embedding",
                got: config.embedding.to_string(),
                expected: "at least 1",
            });
        }
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let forward = Torso::new(&mut scope.sub("torso"), env.schema(), &config);
        let pf = Heads::new(&mut scope.sub("pf"), env.actions(), Direction::Forward, &config);
        let learned = config.backward != BackwardPolicy::Uniform;
        let backward = (config.backward == BackwardPolicy::Separate)
            .then(|| Torso::new(&mut scope.sub("backward_torso"), env.schema(), &config));
        let pb = learned.then(|| Heads::new(&mut scope.sub("pb"), env.actions(), Direction::Backward, &config));
        let hidden = MlpConfig { hidden: vec![config.embedding], activation: Activation::Relu, layer_norm: false };
        let flow = config.flow.then(|| Mlp::new(&mut scope.sub("flow"), 2 * config.embedding, 1, &hidden));
        let log_z = match config.n_conditions {
            0 => LogZ::scalar(&mut scope, config.initial_log_z),
            n => LogZ::conditional(&mut scope, n, &hidden),
        };
        parameters.check()?;
        Ok(Self { config, forward, pf, backward, pb, flow, log_z, parameters })
    }

    /// The make of the network.
    #[must_use]
    pub fn config(&self) -> &GraphNetConfig {
        &self.config
    }
}

impl GraphNetwork for GraphNet {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Wants) -> Result<GraphOutput> {
        let pairs = self.config.pair_walks.map(|walks| pair_features(batch, walks, self.parameters.kind()));
        let needs_forward = wants.pf || wants.log_flow || (wants.pb && self.pb.is_some() && self.backward.is_none());
        let shared = needs_forward.then(|| self.forward.embed(batch)).transpose()?;
        let pf = match &shared {
            Some(embedded) if wants.pf => Some(self.pf.forward(batch, embedded, pairs.as_ref())),
            _ => None,
        };
        let log_flow = match (&self.flow, &shared) {
            (Some(flow), Some(embedded)) if wants.log_flow => Some(flow.forward(&embedded.graphs).view(-1)),
            _ => None,
        };
        let own = match &self.backward {
            Some(torso) if wants.pb => Some(torso.embed(batch)?),
            _ => None,
        };
        let pb = match (&self.pb, own.as_ref().or(shared.as_ref())) {
            (Some(heads), Some(embedded)) if wants.pb => Some(heads.forward(batch, embedded, pairs.as_ref())),
            _ => None,
        };
        Ok(GraphOutput { pf, pb, log_flow })
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.log_z.forward(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

/// Node embeddings `[N, D]` and graph embeddings `[B, 2 D]`.
#[derive(Debug)]
pub(crate) struct Embedded {
    pub(crate) nodes: Tensor,
    pub(crate) graphs: Tensor,
}

/// Features, rounds of message passing, and the pooled graph.
#[derive(Debug)]
struct Torso {
    features: NodeFeatures,
    convs: Vec<Conv>,
    condition: Option<Linear>,
    global: Option<Linear>,
}

impl Torso {
    fn new(scope: &mut Scope<'_>, schema: &GraphSchema, config: &GraphNetConfig) -> Self {
        let width = config.embedding;
        Self {
            features: NodeFeatures::new(&mut scope.sub("features"), schema, width, config.identity),
            convs: (0..config.layers)
                .map(|k| Conv::new(&mut scope.sub(&format!("conv{k}")), schema, config.conv, width))
                .collect(),
            condition: (config.n_conditions > 0)
                .then(|| Linear::new(&mut scope.sub("condition"), config.n_conditions, 2 * width)),
            global: config.global.then(|| Linear::new(&mut scope.sub("global"), 2 * width, width)),
        }
    }

    fn embed(&self, batch: &GraphBatch<'_>) -> Result<Embedded> {
        let mut values = self.features.forward(batch);
        for conv in &self.convs {
            values = conv.forward(batch, &values);
        }
        let mut nodes = match values {
            NodeValues::Dense(nodes) => nodes,
            table => table.dense(),
        };
        let mut graphs = pool(batch, &nodes);
        match (&self.condition, &batch.conditions) {
            (Some(layer), Some(conditions)) => graphs = graphs + layer.forward(conditions),
            (None, None) => {}
            (layer, _) => {
                return Err(Error::Missing {
                    objective: "the graph network",
                    needs: if layer.is_some() { "condition vectors" } else { "a network built for conditions" },
                    remedy: "set n_conditions to the width of the condition vectors, and sample with conditions",
                });
            }
        }
        if let Some(layer) = &self.global {
            // Every node hears of the whole graph, as from a virtual node.
            nodes = nodes + layer.forward(&graphs).relu().index_select(0, &batch.node_graph);
        }
        Ok(Embedded { nodes, graphs })
    }
}

/// Mean and damped sum of node embeddings, `[B, 2 D]`: the mean alone can't count. An empty graph gives zeros.
fn pool(batch: &GraphBatch<'_>, nodes: &Tensor) -> Tensor {
    let (b, width) = (batch.len() as i64, nodes.size()[1]);
    let sum = match batch.same_n_nodes() {
        Some(n) if n > 0 => nodes.view([b, n as i64, width]).sum_dim_intlist(1, false, nodes.kind()),
        _ => Tensor::zeros([b, width], (nodes.kind(), nodes.device())).index_add(0, &batch.node_graph, nodes),
    };
    let scale = |power: f64| {
        let scales: Vec<f64> = batch.n_nodes.iter().map(|&n| (n.max(1) as f64).powf(power)).collect();
        crate::dist::from_host(&scales, nodes.kind(), nodes.device()).unsqueeze(1)
    };
    Tensor::cat(&[&sum * scale(-1.0), &sum * scale(-0.5)], 1)
}
