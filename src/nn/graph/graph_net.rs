use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::engine::{Engine, HostGraphs, HostRows, TensorGraphs};
use super::expected_graphs::ExpectedGraphs;
use super::features::Labels;
use super::heads::{Heads, Symmetry, SymmetryLayer, initial_scale, pair_features, require_symmetries};
use super::network::HostGraphNet;
use super::torso::{Embedded, ErasedTorso, Torso, checked_conditions};
use super::{ConvKind, GraphNetwork, JumpingKnowledge, MessagePassing, NormKind};
use crate::env::{Direction, HostPolicy};
use crate::graph::{GraphBatch, GraphEnv, GraphSchema, Semantics, SymmetryCount};
use crate::nn::{Estimators, EstimatorsConfig, Mlp, MlpConfig, NetworkOutput, Parameters, Scope};
use crate::quantity::{Quantities, Quantity};
use crate::{Error, Result, Rng};

/// The kind of backward policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum BackwardPolicy {
    /// Uniform over legal backward actions, without parameters (the default).
    #[default]
    Uniform,
    /// Learned, with heads on the torso of the forward policy.
    SharedTorso,
    /// Learned, with a separate network.
    Separate,
}

/// The architecture and size of a [`GraphNet`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GraphNetConfig {
    /// The kind of message passing. The default is chosen to read all edge features of the environment. A
    /// kind that can't read them is refused, unless [`ablation`](Self::ablation) is set.
    pub conv: ConvKind,
    /// The number of rounds of message passing, or of layers of a transformer.
    pub layers: usize,
    /// The width of node embeddings and of the heads' hidden layers, at least 1.
    pub embedding: i64,
    /// `true` for a network that reads node labels if they are meaningful: all labels in labelled
    /// environments, and in environments up to isomorphism the labels of the nodes of the initial graph.
    /// Without labels a network gives equal values to nodes of a labelled graph that differ only in their
    /// label.
    pub identity: bool,
    /// `true` for a network that reads the degree `d` of each node and the number `n` of nodes of its graph,
    /// as `log(1 + d)`, `d / n`, `1 / (1 + d)` and `log(1 + n)`. In directed graphs it reads in-degree and
    /// out-degree. Use it for convolutions that average, and for graphs larger than those that the network
    /// was trained on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub degrees: bool,
    /// The number of lengths of closed walks that the network reads at each node, as
    /// `log(1 + number of walks)` for lengths 2, 3, ...; at least 1, or `None`. In undirected graphs the
    /// number for length 2 is the number of neighbours, and the number for length 3 is twice the number of
    /// triangles. In directed graphs walks follow the edges. Message passing can't count closed walks: it
    /// can't distinguish two triangles from a hexagon. The walks between all pairs of nodes of a graph are
    /// counted, in `O(n m)` operations per length.
    #[serde(default, skip_serializing_if = "is_default")]
    pub closed_walks: Option<usize>,
    /// The norm after each round of message passing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub norm: NormKind,
    /// The rounds that node and graph embeddings are computed from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jumping: JumpingKnowledge,
    /// `true` to allow a `conv` that can't read all edge features of the environment (classes, attributes,
    /// direction).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ablation: bool,
    /// The number of lengths of walks that are counted as features of node pairs. Another feature is whether
    /// there is a reverse edge. `None` for no pair features.
    pub pair_walks: Option<usize>,
    /// `true` if heads of nodes, edges and pairs read the whole graph instead of the neighbourhood that
    /// messages reach. With conditions this is always so, because a condition reaches these heads through the
    /// embedding of the graph.
    pub global: bool,
    /// The kind of backward policy.
    pub backward: BackwardPolicy,
    /// The choice of an input about the symmetry of graphs. A file without this setting is read as
    /// [`Symmetry::Unseen`].
    #[serde(default = "Symmetry::default_in_files", skip_serializing_if = "Symmetry::is_unseen")]
    pub symmetry: Symmetry,
    /// The settings of the state-flow head, log Z, and conditions.
    pub estimators: EstimatorsConfig,
    /// A factor on all logits and on log F, positive and finite. If log R is in the hundreds, logits and log
    /// F must be of that size. With a factor of 1 a network needs many steps to reach this size, and more
    /// steps for log F. A larger factor moves an untrained network further from the uniform policy.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub unit: f64,
    /// The initial bias of the exit action's logit. With 0 an untrained policy takes each legal action about
    /// equally often, so trajectories are long if there are many actions. A larger bias makes trajectories
    /// shorter, and the first training steps faster.
    pub initial_exit_bias: f64,
}

impl Default for GraphNetConfig {
    /// Two rounds of message passing of width 128 that read labels and the whole graph, uniform P_B, no flow
    /// head, no conditions, log Z from the first batch.
    fn default() -> Self {
        Self {
            conv: ConvKind::Auto,
            layers: 2,
            embedding: 128,
            identity: true,
            degrees: false,
            closed_walks: None,
            norm: NormKind::Layer,
            jumping: JumpingKnowledge::Last,
            ablation: false,
            pair_walks: None,
            global: true,
            backward: BackwardPolicy::Uniform,
            symmetry: Symmetry::default(),
            estimators: EstimatorsConfig::default(),
            unit: 1.0,
            initial_exit_bias: 0.0,
        }
    }
}

/// The value of `unit` in a file that has no such setting.
fn one() -> f64 {
    1.0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::float_cmp,
    reason = "serde passes a reference, and only exactly 1 is the default"
)]
fn is_one(unit: &f64) -> bool {
    *unit == 1.0
}

/// Returns `true` for a default value, which isn't written to files.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl GraphNetConfig {
    /// Checks the settings of the default torso and the estimators.
    fn check(&self) -> Result<()> {
        let refuse = |setting, got: i64, expected| Err(Error::config(setting, got, expected));
        match self.conv {
            _ if self.embedding < 1 => refuse("embedding", self.embedding, "at least 1"),
            _ if self.closed_walks == Some(0) => refuse("closed_walks", 0, "at least one length, or `None`"),
            ConvKind::Transformer { heads } | ConvKind::Gat { heads } | ConvKind::Gps { heads }
                if heads < 1 || self.embedding % heads != 0 =>
            {
                refuse("heads", heads, "a number of heads that divides the embedding")
            }
            ConvKind::Transformer { .. } if !(is_default(&self.norm) && is_default(&self.jumping)) => {
                let got = format!("{:?} and {:?}, of a transformer", self.norm, self.jumping);
                let expected =
                    "`Layer` and `Last`: its layers are norms of their own, and the last is read; or another `conv`";
                Err(Error::config("norm and jumping", got, expected))
            }
            _ => self.estimators.check(),
        }
    }

    /// Checks that the network reads all features of edges of a schema, unless [`ablation`](Self::ablation)
    /// is set.
    fn check_edge_features(&self, schema: &GraphSchema) -> Result<()> {
        match self.conv.missing_features(schema) {
            Some(what) if !self.ablation => Err(Error::config(
                "conv",
                format!("{:?}, which can't see {what} that this environment has", self.conv),
                "a convolution that can: `Auto`, `Gine`, `Gat`, `Gps` or `Transformer`; or `ablation: true`, to leave it out on purpose",
            )),
            _ => Ok(()),
        }
    }
}

/// A graph network: a torso, which by default is [`MessagePassing`], a head per action type, a flow head and
/// log Z.
///
/// It is built from the environment's schema. By default it reads everything that distinguishes graphs:
/// meaningful labels, classes, attributes and the direction of edges. An untrained network is close to the
/// uniform policy, for graphs of any size.
///
/// ```
/// use gfn::{env::Env, nn::{GraphNet, GraphNetConfig}, objective::Quantities, policy::{GraphPolicy, Policy}};
/// use gfn::{Rng, testing::Triangles};
/// let env = Triangles::env();
/// let (device, kind) = (tch::Device::Cpu, tch::Kind::Float);
/// let net = GraphNet::new(&env, GraphNetConfig::default(), device, kind, &mut Rng::seeded(0))?;
/// let evaluation = GraphPolicy(net).evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.unwrap().len(), 2);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct GraphNet {
    config: GraphNetConfig,
    pub(super) expected_graphs: ExpectedGraphs,
    /// `true` for a custom torso, which may read labels.
    has_custom_torso: bool,
    /// The torso of P_F, log F, and P_B unless it is separate.
    forward: Box<dyn ErasedTorso>,
    pf: Heads,
    /// The torso of P_B, with [`BackwardPolicy::Separate`].
    backward: Option<Box<dyn ErasedTorso>>,
    pb: Option<Heads>,
    flow: Option<Mlp>,
    symmetry: Option<SymmetryLayer>,
    estimators: Estimators,
    parameters: Parameters,
}

impl GraphNet {
    /// Builds a network for the graphs and actions of an environment, with initial weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for an embedding below 1, attention heads that don't divide it, a norm or jumping
    /// knowledge of a transformer that isn't the default, a negative number of conditions, a convolution that
    /// can't read all edge features of the environment, a schema that no graph can satisfy
    /// ([`GraphSchema::check`]), and too many slots; [`Error::Contract`] for an initial graph that violates
    /// the schema; [`Error::Device`] for a device that isn't available.
    pub fn new(env: &GraphEnv, config: GraphNetConfig, device: Device, kind: Kind, rng: &mut Rng) -> Result<Self> {
        let schema = env.schema();
        config.check()?;
        config.check_edge_features(schema)?;
        let config = GraphNetConfig { conv: config.conv.resolve(schema), ..config };
        let labels = Labels(if config.identity { env.label_classes() } else { Vec::new() });
        let torso_config = config.clone();
        let torso = |scope: &mut Scope<'_>| MessagePassing::new(scope, schema, &labels, &torso_config);
        let mut net = Self::with_torso(env, torso, config, device, kind, rng)?;
        let is_labelled = env.actions().semantics() == Semantics::Labelled;
        net.expected_graphs.n_labels = (is_labelled && labels.classes() > 0).then(|| labels.classes());
        net.expected_graphs.labels = labels;
        net.has_custom_torso = false;
        Ok(net)
    }

    /// Builds a network with a custom torso. `torso` builds it in the scope that it receives. With
    /// [`BackwardPolicy::Separate`] it is called a second time for P_B. The settings of the default torso
    /// (`conv`, `layers`, `embedding`, `identity`, `degrees`, `closed_walks`, `norm`, `jumping`, `ablation`,
    /// `global`) are ignored.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative number of conditions, a schema that no graph can satisfy, too many
    /// slots, and layers of width below 1; [`Error::Contract`] for an initial graph that violates the schema;
    /// [`Error::Device`] for a device that isn't available.
    pub fn with_torso<T: Torso + Send + 'static>(
        env: &GraphEnv,
        mut torso: impl FnMut(&mut Scope<'_>) -> T,
        config: GraphNetConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        let schema = env.schema();
        config.estimators.check()?;
        if !(config.unit > 0.0 && config.unit.is_finite()) {
            return Err(Error::config("unit", config.unit, "a positive number"));
        }
        let config = GraphNetConfig { symmetry: config.symmetry.resolve(env)?, ..config };
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let mut torso = |scope: &mut Scope<'_>| -> Box<dyn ErasedTorso> { Box::new(torso(scope)) };
        let forward = torso(&mut scope.sub("torso"));
        let heads = |scope: &mut Scope<'_>, direction, torso: &dyn ErasedTorso| {
            let (width, graph_width) = torso.widths();
            Heads::new(scope, env, direction, width, graph_width, &config)
        };
        let pf = heads(&mut scope.sub("pf"), Direction::Forward, forward.as_ref());
        let is_pb_learned = config.backward != BackwardPolicy::Uniform;
        let backward = (config.backward == BackwardPolicy::Separate).then(|| torso(&mut scope.sub("backward_torso")));
        let pb_torso = backward.as_ref().unwrap_or(&forward).as_ref();
        let pb = is_pb_learned.then(|| heads(&mut scope.sub("pb"), Direction::Backward, pb_torso));
        let (width, graph_width) = forward.widths();
        let hidden = MlpConfig { hidden: vec![width], ..MlpConfig::default() };
        let flow = config.estimators.flow.then(|| Mlp::new(&mut scope.sub("flow"), graph_width, 1, &hidden));
        if let Some(flow) = &flow {
            flow.scale_output(initial_scale(schema));
        }
        let estimators = Estimators::new(&mut scope, &config.estimators, Some(&hidden))?;
        let symmetry = config.symmetry.count().map(|_| SymmetryLayer::new(&mut scope.sub("symmetry"), graph_width));
        parameters.check()?;
        let expected_graphs = ExpectedGraphs { schema: schema.clone(), n_labels: None, labels: Labels::default() };
        Ok(Self {
            config,
            expected_graphs,
            has_custom_torso: true,
            forward,
            pf,
            backward,
            pb,
            flow,
            symmetry,
            estimators,
            parameters,
        })
    }

    /// The network's configuration, with [`ConvKind::Auto`] (of the default torso) and [`Symmetry::Auto`]
    /// resolved.
    #[must_use]
    pub fn config(&self) -> &GraphNetConfig {
        &self.config
    }

    /// Adds the symmetry of graphs to the embeddings of a torso, if the network reads it.
    fn with_symmetry<E: Engine>(
        &self,
        engine: &E,
        embedded: Embedded<E::Rows>,
        direction: Direction,
    ) -> Result<Embedded<E::Rows>> {
        match &self.symmetry {
            Some(layer) => layer.add_to(engine, direction, embedded),
            None => Ok(embedded),
        }
    }

    /// Computes the blocks of logits of the heads of one direction.
    fn blocks<E: Engine>(
        &self,
        heads: &Heads,
        engine: &E,
        embedded: &Embedded<E::Rows>,
        direction: Direction,
    ) -> Result<Vec<E::Rows>> {
        let pairs = self.config.pair_walks.map(|walks| engine.rows(&pair_features(engine.arrays(), walks), 1 + walks));
        let symmetries =
            self.symmetry.as_ref().map(|_| require_symmetries(engine.symmetries(direction))).transpose()?;
        heads.forward(engine, embedded, pairs.as_ref(), symmetries)
    }

    /// Computes the blocks of logits of one direction on the host.
    pub(super) fn host_blocks(&self, graphs: &HostGraphs<'_>, direction: Direction) -> Result<Vec<HostRows>> {
        let (torso, heads) = match (direction, &self.pb) {
            (Direction::Backward, Some(pb)) => (self.backward.as_ref().unwrap_or(&self.forward), pb),
            _ => (&self.forward, &self.pf),
        };
        let embedded = self.with_symmetry(graphs, torso.embed_host(graphs)?, direction)?;
        let mut blocks = self.blocks(heads, graphs, &embedded, direction)?;
        if self.config.unit != 1.0 {
            let unit = self.config.unit as f32;
            blocks.iter_mut().flat_map(|block| &mut block.values).for_each(|logit| *logit *= unit);
        }
        Ok(blocks)
    }
}

impl GraphNetwork for GraphNet {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        self.expected_graphs.check(batch)?;
        let engine = TensorGraphs::new(batch, self.parameters.kind());
        let needs_pf = wants.has(Quantity::LogPf);
        let needs_pb = wants.has(Quantity::LogPb) && self.pb.is_some();
        let needs_shared_pb = needs_pb && self.backward.is_none();
        let flow = self.flow.as_ref().filter(|_| wants.has(Quantity::LogFlow));
        let needs_forward = needs_pf || wants.has(Quantity::LogFlow);
        let separate_torso = self.backward.as_ref().filter(|_| needs_pb);
        let conditions = if needs_forward || needs_pb {
            checked_conditions(batch, self.config.estimators.n_conditions, self.parameters.kind())?
        } else {
            None
        };
        let embed = |torso: &dyn ErasedTorso, direction| {
            self.with_symmetry(&engine, torso.embed_tensors(&engine, conditions.as_ref())?, direction)
        };
        // A policy counts symmetries for the requested directions only.
        let direction = if needs_forward { Direction::Forward } else { Direction::Backward };
        let needs_shared = needs_forward || needs_shared_pb;
        let shared = needs_shared.then(|| embed(self.forward.as_ref(), direction)).transpose()?;
        let separate = separate_torso.map(|torso| embed(torso.as_ref(), Direction::Backward)).transpose()?;
        let blocks = |heads: Option<&Heads>, embedded: Option<&Embedded>, direction| {
            let blocks = heads.zip(embedded).map(|(heads, embedded)| self.blocks(heads, &engine, embedded, direction));
            blocks.transpose()
        };
        let log_flow = flow.zip(shared.as_ref());
        let log_flow = log_flow.map(|(flow, embedded)| (Quantity::LogFlow, flow.forward(&embedded.graphs).view(-1)));
        let scale_blocks = |blocks: Option<Vec<Tensor>>| match blocks {
            Some(blocks) if self.config.unit != 1.0 => {
                Some(blocks.into_iter().map(|block| block * self.config.unit).collect())
            }
            blocks => blocks,
        };
        let log_flow = log_flow.map(|(quantity, log_flow)| match self.config.unit {
            1.0 => (quantity, log_flow),
            unit => (quantity, log_flow * unit),
        });
        let pf = blocks(Some(&self.pf).filter(|_| needs_pf), shared.as_ref(), Direction::Forward)?;
        let pb =
            blocks(self.pb.as_ref().filter(|_| needs_pb), separate.as_ref().or(shared.as_ref()), Direction::Backward)?;
        // The conditions were checked above if there are logits of P_F.
        let pf_scale = pf.as_ref().and_then(|_| self.estimators.pf_scale(batch.conditions.as_ref()));
        let values = log_flow.into_iter().collect();
        Ok(NetworkOutput { pf: scale_blocks(pf), pb: scale_blocks(pb), values, pf_scale })
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<GraphEnv> + '_>> {
        let is_on_host_in_f32 = self.parameters.kind() == Kind::Float && self.parameters.device() == Device::Cpu;
        let is_learned = direction == Direction::Forward || self.pb.is_some();
        let has_conditions = self.config.estimators.n_conditions != 0;
        if is_on_host_in_f32 && is_learned && !has_conditions && self.forward.on_host() {
            Some(Box::new(HostGraphNet::new(self, direction)))
        } else {
            None
        }
    }

    fn sees_symmetry(&self, direction: Direction) -> Option<SymmetryCount> {
        self.config.symmetry.count().filter(|_| direction == Direction::Forward || self.pb.is_some())
    }

    fn sees_labels(&self) -> bool {
        self.has_custom_torso || self.expected_graphs.labels.classes() > 0
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
