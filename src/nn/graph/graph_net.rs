use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

use super::engine::{Engine, HeadEngine, HostGraphs, HostRows, TensorGraphs};
use super::expected_graphs::ExpectedGraphs;
use super::features::Labels;
use super::heads::{Heads, SymmetryLayer, initial_scale, pair_features, require_symmetries};
use super::network::HostGraphNet;
use super::torso::{Embeddings, ErasedTorso, HostTorso, InTensors, TensorTorso, Torso, checked_conditions};
use super::transformer::TransformerTorso;
use super::{BackwardPolicy, ConvKind, GraphNetConfig, GraphNetwork, MessagePassing};
use crate::env::{Direction, HostPolicy};
use crate::graph::{GraphBatch, GraphEnv, MoveSymmetries, Semantics, SymmetryCount};
use crate::nn::host::Mirror;
use crate::nn::{Estimators, Mlp, MlpConfig, NetworkOutput, Parameters, Scope};
use crate::quantity::{Quantities, Quantity};
use crate::{Error, Result, Rng};

/// A graph network, which consists of a torso (by default [`MessagePassing`]), a head for each action type, a
/// head for the state flow, and log Z.
///
/// The network is built from the environment's schema. By default its input is everything that distinguishes
/// graphs: labels that have a meaning, classes, attributes and the direction of edges. An untrained network
/// is close to the uniform policy for graphs of any size.
///
/// ```
/// use gfn::{env::Env, nn::{GraphNet, GraphNetConfig}, objective::Quantities, policy::{GraphPolicy, Policy}};
/// use gfn::{Rng, examples::Triangles};
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
    /// `true` if the torso is custom. The network then counts as using node labels, because a custom torso
    /// may use them.
    has_custom_torso: bool,
    /// The torso of P_F and log F. This torso is also the torso of P_B unless `backward` is set.
    forward: Box<dyn ErasedTorso>,
    pf: Heads,
    /// The torso of P_B if the setting is [`BackwardPolicy::Separate`]; otherwise `None`.
    backward: Option<Box<dyn ErasedTorso>>,
    pb: Option<Heads>,
    flow: Option<Mlp>,
    symmetry: Option<SymmetryLayer>,
    estimators: Estimators,
    parameters: Parameters,
}

/// The largest `unit`, and the largest initial bias divided by `unit`, so that a logit times `unit` is finite
/// in single precision.
const MAX_LOGIT: f64 = 1e30;

impl GraphNet {
    /// Builds a network for the graphs and actions of an environment, with initial weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for an embedding below 1, `closed_walks` of 0, attention heads that don't divide the
    /// embedding, a transformer with a norm or a jumping knowledge other than the default, a negative number
    /// of conditions, a convolution that can't use all edge features of the environment, a `unit` or an
    /// `initial_exit_bias` outside of its bounds ([`GraphNetConfig`]), numbers of automorphisms as input in
    /// an environment of labelled graphs, a schema that no graph can satisfy
    /// ([`GraphSchema::check`](crate::graph::GraphSchema::check)), and too many slots; [`Error::Contract`]
    /// for an initial graph that violates the schema; [`Error::Device`] for a device that isn't available.
    pub fn new(
        env: &GraphEnv,
        config: GraphNetConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        Self::with_parameters(env, config, Parameters::new(device, kind), rng)
    }

    /// Builds a network as [`new`](Self::new) does, in an empty list of parameters.
    pub(crate) fn with_parameters(
        env: &GraphEnv,
        config: GraphNetConfig,
        parameters: Parameters,
        rng: &mut Rng,
    ) -> Result<Self> {
        let schema = env.schema();
        config.check()?;
        config.check_edge_features(schema)?;
        let config = GraphNetConfig { conv: config.conv.resolve(schema), ..config };
        let labels = Labels(if config.identity { env.label_classes() } else { Vec::new() });
        let settings = config.clone();
        let torso = |scope: &mut Scope<'_>| -> Box<dyn ErasedTorso> {
            match settings.conv {
                ConvKind::Transformer { heads } => {
                    Box::new(InTensors(TransformerTorso::new(scope, schema, &labels, &settings, heads)))
                }
                _ => Box::new(MessagePassing::new(scope, schema, &labels, &settings)),
            }
        };
        let mut net = Self::build(env, torso, config, parameters, rng)?;
        let is_labelled = env.actions().semantics() == Semantics::Labelled;
        net.expected_graphs.n_labels = (is_labelled && labels.classes() > 0).then(|| labels.classes());
        net.expected_graphs.labels = labels;
        net.has_custom_torso = false;
        Ok(net)
    }

    /// Builds a network with a custom torso. The function `torso` builds the torso in the scope that it
    /// receives. With [`BackwardPolicy::Separate`] `torso` is called a second time for P_B. The settings of
    /// the default torso (`conv`, `layers`, `embedding`, `identity`, `degrees`, `closed_walks`, `norm`,
    /// `jumping`, `ablation`, `global`) are ignored.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative number of conditions, a `unit` or an `initial_exit_bias` outside of
    /// its bounds ([`GraphNetConfig`]), numbers of automorphisms as input in an environment of labelled
    /// graphs, a schema that no graph can satisfy, too many slots, and layers of width below 1;
    /// [`Error::Contract`] for an initial graph that violates the schema; [`Error::Device`] for a device that
    /// isn't available.
    pub fn with_torso<T: Torso + Send + 'static>(
        env: &GraphEnv,
        mut torso: impl FnMut(&mut Scope<'_>) -> T,
        config: GraphNetConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        Self::build(env, |scope| Box::new(torso(scope)), config, Parameters::new(device, kind), rng)
    }

    /// Builds a network with a custom torso that computes on tensors. Use [`with_torso`](Self::with_torso)
    /// for a [`Torso`] instead.
    ///
    /// # Errors
    /// Returns the errors of [`with_torso`](Self::with_torso).
    pub fn with_tensor_torso<T: TensorTorso + Send + 'static>(
        env: &GraphEnv,
        mut torso: impl FnMut(&mut Scope<'_>) -> T,
        config: GraphNetConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        let parameters = Parameters::new(device, kind);
        Self::build(env, |scope| Box::new(InTensors(torso(scope))), config, parameters, rng)
    }

    /// Builds a network with the torsos that the function `torso` returns.
    fn build(
        env: &GraphEnv,
        mut torso: impl FnMut(&mut Scope<'_>) -> Box<dyn ErasedTorso>,
        config: GraphNetConfig,
        mut parameters: Parameters,
        rng: &mut Rng,
    ) -> Result<Self> {
        let schema = env.schema();
        config.estimators.check()?;
        if !(config.unit > 0.0 && config.unit <= MAX_LOGIT) {
            return Err(Error::config("unit", config.unit, "a positive number of at most 1e30"));
        }
        let bias = config.initial_exit_bias;
        if !(bias / config.unit).is_finite() || (bias / config.unit).abs() > MAX_LOGIT {
            let expected = "a number that is at most 1e30 after division by `unit`";
            return Err(Error::config("initial_exit_bias", bias, expected));
        }
        let config = GraphNetConfig { symmetry: config.symmetry.resolve(env)?, ..config };
        let mut scope = parameters.scope(rng);
        let forward = torso(&mut scope.sub("torso"));
        let heads = |scope: &mut Scope<'_>, direction, torso: &dyn ErasedTorso| {
            let (width, graph_width) = torso.widths();
            Heads::new(scope, env, direction, width, graph_width, &config)
        };
        let pf = heads(&mut scope.sub("pf"), Direction::Forward, forward.as_ref());
        let is_pb_learned = config.backward != BackwardPolicy::Uniform;
        let backward =
            (config.backward == BackwardPolicy::Separate).then(|| torso(&mut scope.sub("backward_torso")));
        let pb_torso = backward.as_ref().unwrap_or(&forward).as_ref();
        let pb = is_pb_learned.then(|| heads(&mut scope.sub("pb"), Direction::Backward, pb_torso));
        let (width, graph_width) = forward.widths();
        let hidden = MlpConfig { hidden: vec![width], ..MlpConfig::default() };
        let flow = config.estimators.flow.then(|| Mlp::new(&mut scope.sub("flow"), graph_width, 1, &hidden));
        if let Some(flow) = &flow {
            flow.scale_output(initial_scale(schema, config.unit));
        }
        let estimators = Estimators::new(&mut scope, &config.estimators, Some(&hidden))?;
        let symmetry =
            config.symmetry.count().map(|_| SymmetryLayer::new(&mut scope.sub("symmetry"), graph_width));
        parameters.check()?;
        let expected_graphs =
            ExpectedGraphs { schema: schema.clone(), n_labels: None, labels: Labels::default() };
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

    /// The network's configuration, in which the automatic choices [`ConvKind::Auto`](super::ConvKind::Auto)
    /// (of the default torso) and [`SymmetryInput::Auto`](super::SymmetryInput::Auto) are replaced by the
    /// kind and the setting that were chosen.
    #[must_use]
    pub fn config(&self) -> &GraphNetConfig {
        &self.config
    }

    /// Adds the numbers of automorphisms of the graphs to the embeddings of a torso, if the network uses
    /// them.
    fn add_symmetry<E: Engine>(
        &self,
        engine: &E,
        embeddings: Embeddings<E::Rows>,
        symmetries: Option<&MoveSymmetries>,
    ) -> Result<Embeddings<E::Rows>> {
        match &self.symmetry {
            Some(layer) => layer.add_to(engine, symmetries, embeddings),
            None => Ok(embeddings),
        }
    }

    /// Computes the logits of one direction by its heads: a matrix of logits (block) per action type.
    /// `symmetries` must belong to the moves of the same direction.
    fn blocks<E: HeadEngine>(
        &self,
        heads: &Heads,
        engine: &E,
        embeddings: &Embeddings<E::Rows>,
        symmetries: Option<&MoveSymmetries>,
    ) -> Result<Vec<E::Rows>> {
        let pairs = self
            .config
            .pair_walks
            .map(|walks| engine.rows(&pair_features(engine.arrays(), walks), 1 + walks));
        let symmetries = self.symmetry.as_ref().map(|_| require_symmetries(symmetries)).transpose()?;
        heads.forward(engine, embeddings, pairs.as_ref(), symmetries)
    }

    /// Returns the torso and the heads of one direction.
    pub(super) fn torso_and_heads(&self, direction: Direction) -> (&dyn ErasedTorso, &Heads) {
        match (direction, &self.pb) {
            (Direction::Backward, Some(pb)) => (self.backward.as_ref().unwrap_or(&self.forward).as_ref(), pb),
            _ => (self.forward.as_ref(), &self.pf),
        }
    }

    /// Computes the blocks of logits of one direction, one per action type, on the host. `torso` is the torso
    /// of that direction.
    pub(super) fn host_blocks(
        &self,
        torso: &dyn HostTorso,
        graphs: &HostGraphs<'_>,
        symmetries: Option<&MoveSymmetries>,
        direction: Direction,
    ) -> Result<Vec<HostRows>> {
        let (_, heads) = self.torso_and_heads(direction);
        let embeddings = self.add_symmetry(graphs, torso.embed_host(graphs)?, symmetries)?;
        let mut blocks = self.blocks(heads, graphs, &embeddings, symmetries)?;
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
            let embeddings = torso.embed_tensors(&engine, conditions.as_ref())?;
            self.add_symmetry(&engine, embeddings, batch.symmetries(direction))
        };
        // Automorphisms were counted only for the requested policies (P_F, P_B or both). A torso that P_F and
        // P_B share needs only the number |Aut| of each graph, which is the same for both, so the counts for
        // either are used.
        let direction = if needs_forward { Direction::Forward } else { Direction::Backward };
        let needs_shared = needs_forward || needs_shared_pb;
        let shared = needs_shared.then(|| embed(self.forward.as_ref(), direction)).transpose()?;
        let separate = separate_torso.map(|torso| embed(torso.as_ref(), Direction::Backward)).transpose()?;
        let blocks =
            |heads: Option<&Heads>, embeddings: Option<&Embeddings>, direction| match heads.zip(embeddings) {
                Some((heads, embeddings)) => {
                    self.blocks(heads, &engine, embeddings, batch.symmetries(direction)).map(Some)
                }
                None => Ok(None),
            };
        let log_flow = flow.zip(shared.as_ref());
        let log_flow =
            log_flow.map(|(flow, embeddings)| (Quantity::LogFlow, flow.forward(&embeddings.graphs).view(-1)));
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
        let pb = blocks(
            self.pb.as_ref().filter(|_| needs_pb),
            separate.as_ref().or(shared.as_ref()),
            Direction::Backward,
        )?;
        // The factor on the logits of P_F is computed only if these logits exist. In that case the
        // conditions, on which the factor depends, were checked above.
        let pf_scale = pf.as_ref().and_then(|_| self.estimators.pf_scale(batch.conditions.as_ref()));
        let values = log_flow.into_iter().collect();
        Ok(NetworkOutput { pf: scale_blocks(pf), pb: scale_blocks(pb), values, pf_scale })
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<GraphEnv> + '_>> {
        let is_learned = direction == Direction::Forward || self.pb.is_some();
        let has_conditions = self.config.estimators.n_conditions != 0;
        if self.parameters.kind() != Kind::Float || !is_learned || has_conditions {
            return None;
        }
        let torso = self.torso_and_heads(direction).0.on_host()?;
        let mirror = Mirror::from_device(&self.parameters);
        Some(Box::new(HostGraphNet::new(self, torso, direction, mirror)))
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

    fn settings(&self) -> Value {
        if self.has_custom_torso { Value::Null } else { json!({ "GraphNet": self.config }) }
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
