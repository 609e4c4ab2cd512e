use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::fits::Fits;
use super::heads::{Heads, pair_features, start_scale};
use super::torso::Torso;
use super::{ConvKind, GraphNetwork, GraphOutput};
use crate::env::Direction;
use crate::graph::{GraphBatch, GraphEnv, GraphRules, GraphSchema, Semantics};
use crate::nn::{Activation, HostGraphNet, LogZ, LogitScale, Mlp, MlpConfig, Parameters, Wants};
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
    /// How nodes exchange messages; by default chosen for what edges of the environment say. One that can't see it is refused, but for
    /// an [`ablation`](Self::ablation).
    pub conv: ConvKind,
    /// MessageRounds of message passing; layers of a transformer.
    pub layers: usize,
    /// Width of node embeddings and of the heads' hidden layers.
    pub embedding: i64,
    /// Whether a node's label enters where it means something: everywhere in labelled environments; up to isomorphism at the nodes of
    /// the initial graph, which are told apart, and at no other. Without it a network for labelled graphs can't tell nodes apart that
    /// are alike but for their labels.
    pub identity: bool,
    /// Whether `conv` may be one that can't see all that edges of the environment say: their classes and attributes, their direction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ablation: bool,
    /// Lengths of walks counted as pair features beyond the edge back; `None` for no pair features at all.
    pub pair_walks: Option<usize>,
    /// Whether heads of nodes, edges and pairs see the whole graph, not only the neighbourhood that messages reach. With
    /// conditions they always do: that is how a condition reaches them.
    pub global: bool,
    /// What P_B is.
    pub backward: BackwardPolicy,
    /// Whether there is a state-flow head, for DB and SubTB.
    pub flow: bool,
    /// Width of the condition vectors; 0 for none.
    pub n_conditions: i64,
    /// Whether the logits of P_F are multiplied by a function of the conditions, too ([`LogitScale`]).
    #[serde(default)]
    pub logit_scale: bool,
    /// Where log Z starts.
    pub initial_log_z: f64,
    /// Where the bias of the exit action's logit starts. At 0 an untrained policy takes each legal action about equally often,
    /// so its trajectories are as long as there is much to do; above, they are shorter, and so are the first steps of training.
    pub initial_exit_bias: f64,
}

impl Default for GraphNetConfig {
    fn default() -> Self {
        Self {
            conv: ConvKind::Auto,
            layers: 2,
            embedding: 128,
            identity: true,
            ablation: false,
            pair_walks: None,
            global: true,
            backward: BackwardPolicy::Uniform,
            flow: false,
            n_conditions: 0,
            logit_scale: false,
            initial_log_z: 0.0,
            initial_exit_bias: 0.0,
        }
    }
}

impl GraphNetConfig {
    fn check(&self) -> Result<()> {
        let refuse = |setting, got: i64, expected| Err(Error::Config { setting, got: got.to_string(), expected });
        match self.conv {
            _ if self.embedding < 1 => refuse("embedding", self.embedding, "at least 1"),
            _ if self.n_conditions < 0 => {
                refuse("n_conditions", self.n_conditions, "0 for none, or the width of the condition vectors")
            }
            _ if self.logit_scale && self.n_conditions == 0 => {
                refuse("n_conditions", 0, "the width of the condition vectors that `logit_scale` takes")
            }
            ConvKind::Transformer { heads } if heads < 1 || self.embedding % heads != 0 => {
                refuse("heads", heads, "a number of heads that divides the embedding")
            }
            _ => Ok(()),
        }
    }

    /// Checks that nothing that tells graphs of an environment apart is hidden unawares.
    fn check_sight(&self, schema: &GraphSchema) -> Result<()> {
        match self.conv.misses(schema) {
            Some(what) if !self.ablation => Err(Error::Config {
                setting: "conv",
                got: format!("{:?}, which can't see {what} that this environment has", self.conv),
                expected: "a convolution that can: `Auto`, `Gine` or `Transformer`; or `ablation: true`, to leave it out on purpose",
            }),
            _ => Ok(()),
        }
    }

    /// How many labels are told apart: all of labelled graphs; up to isomorphism those of the initial graph, and one for all other nodes.
    fn n_labels<R: GraphRules>(&self, env: &GraphEnv<R>) -> usize {
        let most = env.schema().max_nodes;
        match (env.actions().semantics(), env.initial_graph().n_nodes()) {
            _ if !self.identity => 0,
            (Semantics::Labelled, _) => most,
            (Semantics::UpToIsomorphism, 0) => 0,
            (Semantics::UpToIsomorphism, fixed) => most.min(fixed + 1),
        }
    }
}

/// The library's graph network: message passing, then a head per action type at its anchor, a flow head and log Z.
///
/// It knows what the environment says of its graphs, and by default sees all of it that tells them apart: labels where they mean
/// something, classes, attributes and the direction of edges. Untrained it is near the uniform policy, whatever the size of graphs.
///
/// ```
/// use gfn::{env::Env, nn::{GraphNet, GraphNetConfig, Wants}, policy::{GraphPolicy, Policy}, testing::Triangles, Rng};
/// let env = Triangles::new();
/// let net = GraphNet::new(&env, GraphNetConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0))?;
/// let evaluation = GraphPolicy(net).evaluate(&env, &env.initial(2), None, Wants::PF)?;
/// assert_eq!(evaluation.pf.unwrap().len(), 2);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct GraphNet {
    config: GraphNetConfig,
    fits: Fits,
    forward: Torso,
    pf: Heads,
    backward: Option<Torso>,
    pb: Option<Heads>,
    flow: Option<Mlp>,
    scale: Option<LogitScale>,
    log_z: LogZ,
    parameters: Parameters,
}

impl GraphNet {
    /// A network for the graphs and actions of an environment, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for an embedding below 1, heads of attention that don't share it out, a negative number of conditions, a
    /// convolution that can't see what edges of the environment say, and an environment whose schema no graph can keep to
    /// ([`GraphSchema::check`]) or whose slots are too many; [`Error::Contract`] for an initial graph that isn't what the schema says;
    /// [`Error::Device`] for a device that isn't there.
    pub fn new<R: GraphRules>(
        env: &GraphEnv<R>,
        config: GraphNetConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        let schema = env.schema();
        config.check()?;
        crate::graph::check_settings(env)?;
        config.check_sight(schema)?;
        schema.check_graphs(std::slice::from_ref(env.initial_graph()))?;
        let config = GraphNetConfig { conv: config.conv.chosen(schema), ..config };
        let n_labels = config.n_labels(env);
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let forward = Torso::new(&mut scope.sub("torso"), schema, n_labels, &config);
        let pf = Heads::new(&mut scope.sub("pf"), env, Direction::Forward, &config);
        let learned = config.backward != BackwardPolicy::Uniform;
        let backward = (config.backward == BackwardPolicy::Separate)
            .then(|| Torso::new(&mut scope.sub("backward_torso"), schema, n_labels, &config));
        let pb = learned.then(|| Heads::new(&mut scope.sub("pb"), env, Direction::Backward, &config));
        let hidden =
            MlpConfig { hidden: vec![config.embedding], activation: Activation::Relu, layer_norm: false, noise: None };
        let flow = config.flow.then(|| Mlp::new(&mut scope.sub("flow"), 2 * config.embedding, 1, &hidden));
        if let Some(flow) = &flow {
            flow.scale_output(start_scale(schema));
        }
        let log_z = match config.n_conditions {
            0 => LogZ::scalar(&mut scope, config.initial_log_z),
            n => LogZ::conditional(&mut scope, n, &hidden),
        };
        let scale = config.logit_scale.then(|| LogitScale::new(&mut scope, config.n_conditions, &hidden));
        parameters.check()?;
        let labelled = env.actions().semantics() == Semantics::Labelled;
        let fits = Fits { schema: schema.clone(), n_labels: (labelled && n_labels > 0).then_some(n_labels) };
        Ok(Self { config, fits, forward, pf, backward, pb, flow, scale, log_z, parameters })
    }

    /// The make of the network, with the convolution that was chosen.
    #[must_use]
    pub fn config(&self) -> &GraphNetConfig {
        &self.config
    }
}

impl GraphNetwork for GraphNet {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Wants) -> Result<GraphOutput> {
        self.fits.check(batch)?;
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
        // The torso has checked the conditions wherever there are logits of P_F.
        let scale = self.scale.as_ref().filter(|_| pf.is_some()).zip(batch.conditions.as_ref());
        Ok(GraphOutput { pf, pb, log_flow, pf_scale: scale.map(|(scale, conditions)| scale.forward(conditions)) })
    }

    fn on_host(&self, direction: Direction) -> Option<HostGraphNet> {
        let (torso, heads) = match direction {
            Direction::Forward => (&self.forward, &self.pf),
            Direction::Backward => (self.backward.as_ref().unwrap_or(&self.forward), self.pb.as_ref()?),
        };
        torso.on_host(heads, &self.fits, self.config.pair_walks)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.log_z.forward(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
