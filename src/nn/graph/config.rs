//! The settings of a graph network: architecture, size and inputs.

use serde::{Deserialize, Serialize};

use super::heads::SymmetryInput;
use super::{ConvKind, JumpingKnowledge, NormKind};
use crate::graph::GraphSchema;
use crate::nn::EstimatorsConfig;
use crate::{Error, Result};

/// The kind of backward policy of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum BackwardPolicy {
    /// A uniform distribution over legal backward actions, without parameters (the default).
    #[default]
    Uniform,
    /// A learned policy whose heads use the torso of the forward policy.
    SharedTorso,
    /// A learned policy with a separate torso.
    Separate,
}

/// The architecture and size of a [`GraphNet`](super::GraphNet).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GraphNetConfig {
    /// The kind of message passing. By default the kind is chosen so that the network uses all edge features
    /// of the environment. A kind that can't use all these features is refused, unless
    /// [`ablation`](Self::ablation) is set.
    pub conv: ConvKind,
    /// The number of rounds of message passing, or of layers of a transformer.
    pub layers: usize,
    /// The width of node embeddings and of the heads' hidden layers, at least 1.
    pub embedding: i64,
    /// `true` for a network whose input includes node labels that have a meaning. In labelled environments
    /// all labels have a meaning; in environments up to isomorphism only the labels of the nodes of the
    /// initial graph have a meaning. If this setting is `false`, a network gives equal values to nodes of a
    /// labelled graph that differ only in their label.
    pub identity: bool,
    /// `true` for a network whose input includes the degree `d` of each node and the number `n` of nodes of
    /// its graph, as `log(1 + d)`, `d / n`, `1 / (1 + d)` and `log(1 + n)`. In directed graphs the input
    /// includes the in-degree and the out-degree. Use this setting for convolutions that average over
    /// neighbours, and for graphs larger than those on which the network was trained.
    pub degrees: bool,
    /// The number of walk lengths (2, 3, ...) for which `log(1 + number of closed walks)` is an input feature
    /// of each node; at least 1, or `None`. In undirected graphs the number for length 2 is the number of
    /// neighbours, and the number for length 3 is twice the number of triangles that contain the node. In
    /// directed graphs walks follow the edges. Message passing can't count closed walks: it can't distinguish
    /// two triangles from a hexagon. The walks between all pairs of nodes of a graph are counted, in `O(n m)`
    /// operations per length.
    pub closed_walks: Option<usize>,
    /// The norm after each round of message passing.
    pub norm: NormKind,
    /// The rounds of message passing whose results determine the embeddings of nodes and graphs.
    pub jumping: JumpingKnowledge,
    /// `true` to allow a `conv` that can't use all edge features of the environment (classes, attributes,
    /// direction).
    pub ablation: bool,
    /// The number of walk lengths for which the walks between two nodes are counted as features of the pair;
    /// `None` for a network without pair features. A further feature shows if there is an edge in the
    /// opposite direction.
    pub pair_walks: Option<usize>,
    /// `true` if heads of nodes, edges and pairs use the whole graph, and not only the neighbourhood that
    /// messages reach. With conditions the heads always use the whole graph, because a condition reaches
    /// these heads only through the embedding of the graph.
    pub global: bool,
    /// The kind of backward policy: uniform, or learned with a shared or a separate torso.
    pub backward: BackwardPolicy,
    /// The setting for numbers of automorphisms as an input of the network: exact, estimated, or none.
    pub symmetry: SymmetryInput,
    /// The settings of the state-flow head, log Z, and conditions.
    pub estimators: EstimatorsConfig,
    /// The factor on all logits and on log F, above 0 and at most 1e30; 1 by default. The initial weights of
    /// the heads are divided by this factor, so it doesn't change an untrained policy, but updates change
    /// logits and log F by more. Use a larger factor if log R differs by tens or hundreds between
    /// objects, because logits and log F must then be of that size, which takes many training steps at a low
    /// learning rate.
    pub unit: f64,
    /// The initial bias of the exit action's logit. With a bias of 0 an untrained policy takes each legal
    /// action about equally often, so trajectories are long if there are many actions. A larger bias makes
    /// trajectories shorter, and so the first training steps faster. The bias divided by [`unit`](Self::unit)
    /// must be between -1e30 and 1e30.
    pub initial_exit_bias: f64,
}

impl Default for GraphNetConfig {
    /// The default settings: two rounds of message passing of width 128 that use labels and the whole graph,
    /// uniform P_B, no flow head, no conditions, and log Z from the first batch.
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
            symmetry: SymmetryInput::default(),
            estimators: EstimatorsConfig::default(),
            unit: 1.0,
            initial_exit_bias: 0.0,
        }
    }
}

impl GraphNetConfig {
    /// Checks the settings of the default torso and of the estimators.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |setting, got: i64, expected| Err(Error::config(setting, got, expected));
        match self.conv {
            _ if self.embedding < 1 => refuse("embedding", self.embedding, "at least 1"),
            _ if self.closed_walks == Some(0) => refuse("closed_walks", 0, "at least one length, or `None`"),
            ConvKind::Transformer { heads } | ConvKind::Gat { heads } | ConvKind::Gps { heads }
                if heads < 1 || self.embedding % heads != 0 =>
            {
                refuse("heads", heads, "a number of heads that divides the embedding")
            }
            ConvKind::Transformer { .. }
                if self.norm != NormKind::default() || self.jumping != JumpingKnowledge::default() =>
            {
                let got = format!("{:?} and {:?} with `conv` `Transformer`", self.norm, self.jumping);
                let expected = "`Layer` and `Last`, because a transformer has its own norms and its last \
                    layer is read; or another `conv`";
                Err(Error::config("norm and jumping", got, expected))
            }
            _ => self.estimators.check(),
        }
    }

    /// Checks that the network uses all edge features of a schema, unless [`ablation`](Self::ablation) is
    /// set.
    pub(super) fn check_edge_features(&self, schema: &GraphSchema) -> Result<()> {
        match self.conv.missing_features(schema) {
            Some(what) if !self.ablation => Err(Error::config(
                "conv",
                format!("{:?}, which doesn't read {what}, although this environment has them", self.conv),
                "a convolution that reads them (`Auto`, `Gine`, `Gat`, `Gps` or `Transformer`), or \
                 `ablation: true` to ignore them on purpose",
            )),
            _ => Ok(()),
        }
    }
}
