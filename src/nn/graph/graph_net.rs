use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::engine::{Engine, HostGraphs, HostRows, TensorGraphs};
use super::features::Labels;
use super::fits::Fits;
use super::heads::{Heads, Symmetry, SymmetryLayer, counted, pair_features, start_scale};
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
    /// Uniform over legal backward actions; nothing is trained.
    #[default]
    Uniform,
    /// Learned, by heads on the torso of the forward policy.
    SharedTorso,
    /// Learned, by a network of its own.
    Separate,
}

/// The architecture and size of a [`GraphNet`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GraphNetConfig {
    /// The kind of message passing; by default chosen to see all edge features of the environment. One that
    /// can't see them is refused, unless it is an [`ablation`](Self::ablation).
    pub conv: ConvKind,
    /// Rounds of message passing; for a transformer, layers.
    pub layers: usize,
    /// Width of node embeddings and of the heads' hidden layers.
    pub embedding: i64,
    /// `true` for a network that sees node labels where they mean something: everywhere in labelled
    /// environments; up to isomorphism only at the nodes of the initial graph, which are told apart. Without
    /// labels a network can't tell apart the nodes of a labelled graph that differ only in their label.
    pub identity: bool,
    /// `true` for a network that is told each node's degree `d` among the `n` nodes of its graph, as
    /// `log(1 + d)`, `d / n` and `1 / (1 + d)`, in directed graphs of both in- and out-degree, and
    /// `log(1 + n)`. For convolutions that average, and for graphs larger than those that it was trained on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub degrees: bool,
    /// The number of lengths of closed walks whose numbers a network is told at each node, as
    /// `log(1 + number)` for lengths 2, 3, ... Those of length 2 are the node's neighbours, of length 3 twice
    /// its triangles; in directed graphs walks go along the edges. Message passing can't count them, and
    /// takes two triangles for a hexagon. It costs the walks between all pairs of nodes of a graph.
    #[serde(default, skip_serializing_if = "is_default")]
    pub closed_walks: Option<usize>,
    /// The norm after each round of message passing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub norm: NormKind,
    /// The rounds that nodes and pooled graphs read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jumping: JumpingKnowledge,
    /// Allows a `conv` that can't see all edge features of the environment (classes, attributes, direction).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ablation: bool,
    /// Number of walk lengths that are counted as pair features, besides whether there is an edge back;
    /// `None` for no pair features at all.
    pub pair_walks: Option<usize>,
    /// `true` if heads of nodes, edges and pairs see the whole graph, not only the neighbourhood that
    /// messages reach. With conditions they always do, because a condition reaches them through the graph's
    /// embedding.
    pub global: bool,
    /// The kind of backward policy.
    pub backward: BackwardPolicy,
    /// The choice of telling the network how symmetric graphs are, and how each move changes that. Files from
    /// before this setting read as without.
    #[serde(default = "Symmetry::of_files_without", skip_serializing_if = "Symmetry::is_unseen")]
    pub symmetry: Symmetry,
    /// The state-flow head, log Z, and conditions.
    pub estimators: EstimatorsConfig,
    /// Factor of all logits and of log F, as the network computes them. A reward so sharp that log R is in
    /// the hundreds needs logits of that size; in steps of the learning rate a network takes long to get
    /// there, and log F longer. An untrained network is as much further from the uniform policy.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub unit: f64,
    /// Initial bias of the exit action's logit. At 0 an untrained policy takes each legal action about
    /// equally often, so trajectories are long where there are many actions. A larger bias makes them
    /// shorter, and the first training steps faster.
    pub initial_exit_bias: f64,
}

impl Default for GraphNetConfig {
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

/// The meaning of files from before the setting.
fn one() -> f64 {
    1.0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::float_cmp,
    reason = "serde passes a reference, and asks for this very number"
)]
fn is_one(unit: &f64) -> bool {
    *unit == 1.0
}

/// Then it isn't written, so that settings of before the setting are written as they were.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl GraphNetConfig {
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

    /// Checks that the network sees everything that distinguishes graphs of the environment, unless an
    /// ablation is asked for.
    fn check_sight(&self, schema: &GraphSchema) -> Result<()> {
        match self.conv.misses(schema) {
            Some(what) if !self.ablation => Err(Error::config(
                "conv",
                format!("{:?}, which can't see {what} that this environment has", self.conv),
                "a convolution that can: `Auto`, `Gine`, `Gat`, `Gps` or `Transformer`; or `ablation: true`, to leave it out on purpose",
            )),
            _ => Ok(()),
        }
    }
}

/// A graph network: a torso, by default the library's message passing, then one head per action type at its
/// anchor, a flow head and log Z.
///
/// It is built from the environment's schema. By default it sees everything that distinguishes graphs: labels
/// where they mean something, classes, attributes and the direction of edges. Untrained it is near the
/// uniform policy, for graphs of any size.
///
/// ```
/// use gfn::{env::Env, nn::{GraphNet, GraphNetConfig}, objective::Quantities, policy::{GraphPolicy, Policy}, testing::Triangles, Rng};
/// let env = Triangles::env();
/// let net = GraphNet::new(&env, GraphNetConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0))?;
/// let evaluation = GraphPolicy(net).evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.unwrap().len(), 2);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct GraphNet {
    config: GraphNetConfig,
    pub(super) fits: Fits,
    /// `true` for a torso that was brought, which may see labels.
    own_torso: bool,
    forward: Box<dyn ErasedTorso>,
    pf: Heads,
    backward: Option<Box<dyn ErasedTorso>>,
    pb: Option<Heads>,
    flow: Option<Mlp>,
    symmetry: Option<SymmetryLayer>,
    estimators: Estimators,
    parameters: Parameters,
}

impl GraphNet {
    /// A network for the graphs and actions of an environment, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for an embedding below 1, attention heads that don't divide it, another norm or
    /// jumping knowledge than a transformer has, a negative number of conditions, a convolution that can't
    /// see all edge features of the environment, a schema that no graph can satisfy ([`GraphSchema::check`]),
    /// and too many slots; [`Error::Contract`] for an initial graph that violates the schema;
    /// [`Error::Device`] for a device that isn't there.
    pub fn new(env: &GraphEnv, config: GraphNetConfig, device: Device, kind: Kind, rng: &mut Rng) -> Result<Self> {
        let schema = env.schema();
        config.check()?;
        config.check_sight(schema)?;
        let config = GraphNetConfig { conv: config.conv.chosen(schema), ..config };
        let labels = Labels(if config.identity { env.label_classes() } else { Vec::new() });
        let layers = config.clone();
        let torso = |scope: &mut Scope<'_>| MessagePassing::new(scope, schema, &labels, &layers);
        let mut net = Self::with_torso(env, torso, config, device, kind, rng)?;
        let labelled = env.actions().semantics() == Semantics::Labelled;
        net.fits.n_labels = (labelled && labels.classes() > 0).then(|| labels.classes());
        net.fits.labels = labels;
        net.own_torso = false;
        Ok(net)
    }

    /// The same with a torso of your own, built in the scope that `torso` gets; with
    /// [`BackwardPolicy::Separate`] a second one is built for P_B. Of the settings, those of the library's
    /// torso (`conv`, `layers`, `embedding`, `identity`, `degrees`, `closed_walks`, `norm`, `jumping`,
    /// `ablation`, `global`) don't matter.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative number of conditions, a schema that no graph can satisfy, too many
    /// slots, and layers of width below 1; [`Error::Contract`] for an initial graph that violates the schema;
    /// [`Error::Device`] for a device that isn't there.
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
        let config = GraphNetConfig { symmetry: config.symmetry.chosen(env)?, ..config };
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let mut torso = |scope: &mut Scope<'_>| -> Box<dyn ErasedTorso> { Box::new(torso(scope)) };
        let forward = torso(&mut scope.sub("torso"));
        let heads = |scope: &mut Scope<'_>, direction, torso: &dyn ErasedTorso| {
            let (width, of_graph) = torso.widths();
            Heads::new(scope, env, direction, width, of_graph, &config)
        };
        let pf = heads(&mut scope.sub("pf"), Direction::Forward, forward.as_ref());
        let learned = config.backward != BackwardPolicy::Uniform;
        let backward = (config.backward == BackwardPolicy::Separate).then(|| torso(&mut scope.sub("backward_torso")));
        let of_pb = backward.as_ref().unwrap_or(&forward).as_ref();
        let pb = learned.then(|| heads(&mut scope.sub("pb"), Direction::Backward, of_pb));
        let (width, of_graph) = forward.widths();
        let hidden = MlpConfig { hidden: vec![width], ..MlpConfig::default() };
        let flow = config.estimators.flow.then(|| Mlp::new(&mut scope.sub("flow"), of_graph, 1, &hidden));
        if let Some(flow) = &flow {
            flow.scale_output(start_scale(schema));
        }
        let estimators = Estimators::new(&mut scope, &config.estimators, Some(&hidden))?;
        let symmetry = config.symmetry.count().map(|_| SymmetryLayer::new(&mut scope.sub("symmetry"), of_graph));
        parameters.check()?;
        let fits = Fits { schema: schema.clone(), n_labels: None, labels: Labels::default() };
        Ok(Self { config, fits, own_torso: true, forward, pf, backward, pb, flow, symmetry, estimators, parameters })
    }

    /// The network's configuration, with the convolution that was chosen.
    #[must_use]
    pub fn config(&self) -> &GraphNetConfig {
        &self.config
    }

    /// Adds the symmetry of graphs to a torso's embeddings, if the network sees it.
    fn with_symmetry<E: Engine>(
        &self,
        engine: &E,
        embedded: Embedded<E::Rows>,
        direction: Direction,
    ) -> Result<Embedded<E::Rows>> {
        match &self.symmetry {
            Some(layer) => layer.tell(engine, direction, embedded),
            None => Ok(embedded),
        }
    }

    /// The blocks of logits by one direction's heads.
    fn blocks<E: Engine>(
        &self,
        heads: &Heads,
        engine: &E,
        embedded: &Embedded<E::Rows>,
        direction: Direction,
    ) -> Result<Vec<E::Rows>> {
        let pairs = self.config.pair_walks.map(|walks| engine.rows(&pair_features(engine.arrays(), walks), 1 + walks));
        let symmetries = self.symmetry.as_ref().map(|_| counted(engine.symmetries(direction))).transpose()?;
        heads.forward(engine, embedded, pairs.as_ref(), symmetries)
    }

    /// Returns the blocks of logits of one direction, computed on the host.
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
        self.fits.check(batch)?;
        let engine = TensorGraphs::new(batch, self.parameters.kind());
        let (pf, pb) = (wants.has(Quantity::LogPf), wants.has(Quantity::LogPb) && self.pb.is_some());
        let shared_pb = pb && self.backward.is_none();
        let flow = self.flow.as_ref().filter(|_| wants.has(Quantity::LogFlow));
        let alone = pf || wants.has(Quantity::LogFlow);
        let own = self.backward.as_ref().filter(|_| pb);
        let conditions = if alone || pb {
            checked_conditions(batch, self.config.estimators.n_conditions, self.parameters.kind())?
        } else {
            None
        };
        let embed = |torso: &dyn ErasedTorso, direction| {
            self.with_symmetry(&engine, torso.embed_tensors(&engine, conditions.as_ref())?, direction)
        };
        let first = if alone { Direction::Forward } else { Direction::Backward };
        let shared = (alone || shared_pb).then(|| embed(self.forward.as_ref(), first)).transpose()?;
        let own = own.map(|torso| embed(torso.as_ref(), Direction::Backward)).transpose()?;
        let blocks = |heads: Option<&Heads>, embedded: Option<&Embedded>, direction| {
            let blocks = heads.zip(embedded).map(|(heads, embedded)| self.blocks(heads, &engine, embedded, direction));
            blocks.transpose()
        };
        let log_flow = flow.zip(shared.as_ref());
        let log_flow = log_flow.map(|(flow, embedded)| (Quantity::LogFlow, flow.forward(&embedded.graphs).view(-1)));
        let in_units = |blocks: Option<Vec<Tensor>>| match blocks {
            Some(blocks) if self.config.unit != 1.0 => {
                Some(blocks.into_iter().map(|block| block * self.config.unit).collect())
            }
            blocks => blocks,
        };
        let log_flow = log_flow.map(|(quantity, log_flow)| match self.config.unit {
            1.0 => (quantity, log_flow),
            unit => (quantity, log_flow * unit),
        });
        let pf = blocks(Some(&self.pf).filter(|_| pf), shared.as_ref(), Direction::Forward)?;
        let pb = blocks(self.pb.as_ref().filter(|_| pb), own.as_ref().or(shared.as_ref()), Direction::Backward)?;
        // Conditions have been checked wherever there are logits of P_F.
        let pf_scale = pf.as_ref().and_then(|_| self.estimators.pf_scale(batch.conditions.as_ref()));
        let (pf, pb) = (in_units(pf), in_units(pb));
        Ok(NetworkOutput { pf, pb, values: log_flow.into_iter().collect(), pf_scale })
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<GraphEnv> + '_>> {
        let at_home = self.parameters.kind() == Kind::Float && self.parameters.device() == Device::Cpu;
        let learned = direction == Direction::Forward || self.pb.is_some();
        let fits = at_home && learned && self.config.estimators.n_conditions == 0 && self.forward.on_host();
        if fits { Some(Box::new(HostGraphNet::new(self, direction))) } else { None }
    }

    fn sees_symmetry(&self, direction: Direction) -> Option<SymmetryCount> {
        self.config.symmetry.count().filter(|_| direction == Direction::Forward || self.pb.is_some())
    }

    fn sees_labels(&self) -> bool {
        self.own_torso || self.fits.labels.classes() > 0
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
