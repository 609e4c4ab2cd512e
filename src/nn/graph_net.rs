use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::heads::Heads;
use super::pairs::pair_features;
use super::torso::Torso;
use super::{Activation, ConvKind, FrozenGraphNet, LogZ, LogitScale, Mlp, MlpConfig, Parameters};
use crate::env::Direction;
use crate::graph::{GraphBatch, GraphEnv};
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
    /// Rounds of message passing; layers of a transformer.
    pub layers: usize,
    /// Width of node embeddings and of the heads' hidden layers.
    pub embedding: i64,
    /// Whether a node's label enters: only where nodes are distinguishable.
    pub identity: bool,
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
            conv: ConvKind::Gin,
            layers: 2,
            embedding: 128,
            identity: false,
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
    scale: Option<LogitScale>,
    log_z: LogZ,
    parameters: Parameters,
}

impl GraphNet {
    /// A network for the graphs and actions of an environment, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for an embedding below 1, heads of attention that don't share it out, a negative number of conditions,
    /// and an environment whose schema no graph can keep to ([`GraphSchema::check`](crate::graph::GraphSchema::check)) or whose slots are too many.
    pub fn new<E: GraphEnv>(
        env: &E,
        config: GraphNetConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        config.check()?;
        crate::graph::check_settings(env)?;
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let forward = Torso::new(&mut scope.sub("torso"), env.schema(), &config);
        let pf = Heads::new(&mut scope.sub("pf"), env.actions(), Direction::Forward, &config);
        let learned = config.backward != BackwardPolicy::Uniform;
        let backward = (config.backward == BackwardPolicy::Separate)
            .then(|| Torso::new(&mut scope.sub("backward_torso"), env.schema(), &config));
        let pb = learned.then(|| Heads::new(&mut scope.sub("pb"), env.actions(), Direction::Backward, &config));
        let hidden =
            MlpConfig { hidden: vec![config.embedding], activation: Activation::Relu, layer_norm: false, noise: None };
        let flow = config.flow.then(|| Mlp::new(&mut scope.sub("flow"), 2 * config.embedding, 1, &hidden));
        let log_z = match config.n_conditions {
            0 => LogZ::scalar(&mut scope, config.initial_log_z),
            n => LogZ::conditional(&mut scope, n, &hidden),
        };
        let scale = config.logit_scale.then(|| LogitScale::new(&mut scope, config.n_conditions, &hidden));
        parameters.check()?;
        Ok(Self { config, forward, pf, backward, pb, flow, scale, log_z, parameters })
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
        // The torso has checked the conditions wherever there are logits of P_F.
        let scale = self.scale.as_ref().filter(|_| pf.is_some()).zip(batch.conditions.as_ref());
        Ok(GraphOutput { pf, pb, log_flow, pf_scale: scale.map(|(scale, conditions)| scale.forward(conditions)) })
    }

    fn frozen(&self, direction: Direction) -> Option<FrozenGraphNet> {
        let (torso, heads) = match direction {
            Direction::Forward => (&self.forward, &self.pf),
            Direction::Backward => (self.backward.as_ref().unwrap_or(&self.forward), self.pb.as_ref()?),
        };
        torso.frozen(heads, self.config.pair_walks)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.log_z.forward(conditions, n)
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
