//! One head per action type, at its anchor.

mod edge;
mod pairs;
mod symmetry;

pub(in crate::nn) use pairs::{PairHead, SIZE_STEP, edge_pairs, host_pair_features, pair_features};

use tch::Tensor;

use crate::Result;
use crate::env::Direction;
use crate::graph::{Anchor, GraphArrays, GraphBatch, GraphEnv, GraphRules, GraphSchema, MoveSymmetries};
use crate::nn::graph::GraphNetConfig;
use crate::nn::graph::torso::{Embedded, HostEmbedded};
use crate::nn::host::HostPairHead;
use crate::nn::{Activation, HostMlp, Mlp, MlpConfig, Scope};
use edge::{EdgeHead, HostEdgeHead};
pub use symmetry::Symmetry;
use symmetry::{Gate, HostGate};
pub(in crate::nn) use symmetry::{HostSymmetry, SymmetryLayer, counted};

/// Largest number of nodes for which logits start unscaled. A graph's embedding sums over its nodes and so grows with
/// their number; logits of node pairs grow with its square.
const SMALL: f64 = 8.0;

/// Factor on the initial logits for graphs of a schema. It keeps an untrained policy about equally close to the uniform
/// one for graphs of any size.
pub(in crate::nn) fn start_scale(schema: &GraphSchema) -> f64 {
    (SMALL / schema.max_nodes.max(1) as f64).min(1.0)
}

/// The heads of one direction: one block of logits for each action type, in the set's order.
#[derive(Debug)]
pub(crate) struct Heads(Vec<(AnchorHead, Option<Gate>)>);

#[derive(Debug)]
enum AnchorHead {
    Graph(Mlp),
    Node(Mlp),
    Edge(EdgeHead),
    NodePair(PairHead),
}

impl Heads {
    /// Heads on embeddings of nodes and of graphs with the given widths.
    pub(crate) fn new<R: GraphRules>(
        scope: &mut Scope<'_>,
        env: &GraphEnv<R>,
        direction: Direction,
        (width, of_graph): (i64, i64),
        config: &GraphNetConfig,
    ) -> Self {
        let (schema, scale) = (env.schema(), start_scale(env.schema()));
        let hidden = MlpConfig { hidden: vec![width], activation: Activation::Relu, layer_norm: false, noise: None };
        let n_features = config.pair_walks.map_or(0, |walks| 1 + walks as i64);
        let heads = env.actions().heads(direction).map(|(kind, action_type, head)| {
            let mut scope = scope.sub(&format!("{}_{}", kind.0, action_type.name()));
            let columns = head.width as i64;
            let head_of_type = match head.anchor {
                Anchor::Graph => {
                    let mlp = Mlp::new(&mut scope, of_graph, columns, &hidden);
                    mlp.scale_output(scale);
                    if action_type.is_exit() {
                        mlp.fill_output_bias(config.initial_exit_bias);
                    }
                    AnchorHead::Graph(mlp)
                }
                Anchor::Node => {
                    let mlp = Mlp::new(&mut scope, width, columns, &hidden);
                    mlp.scale_output(scale);
                    AnchorHead::Node(mlp)
                }
                Anchor::Edge => {
                    let head = EdgeHead::new(&mut scope, schema, (width, columns), n_features);
                    head.scale(scale);
                    AnchorHead::Edge(head)
                }
                Anchor::NodePair => {
                    let head = PairHead::new(&mut scope, width, columns, n_features);
                    head.scale(scale);
                    AnchorHead::NodePair(head)
                }
            };
            let gated = config.symmetry == Symmetry::Seen && !action_type.is_exit();
            (head_of_type, gated.then(|| Gate::new(&mut scope.sub("gate"), of_graph, scale)))
        });
        Self(heads.collect())
    }

    /// The blocks of logits, given pair features, and what moves do to symmetry if gates are there to read it.
    pub(crate) fn forward(
        &self,
        batch: &GraphBatch<'_>,
        embedded: &Embedded,
        pairs: Option<&Tensor>,
        symmetries: Option<&MoveSymmetries>,
    ) -> Result<Vec<Tensor>> {
        let block = |head: &AnchorHead| match head {
            AnchorHead::Graph(mlp) => mlp.forward(&embedded.graphs),
            AnchorHead::Node(mlp) => mlp.forward(&embedded.nodes),
            AnchorHead::Edge(head) => head.forward(batch, &embedded.nodes, pairs),
            AnchorHead::NodePair(head) => head.all_pairs(batch, &embedded.nodes, pairs),
        };
        let heads = self.0.iter().enumerate();
        let gated = heads.map(|(k, (head, gate))| match (gate, symmetries) {
            (Some(gate), Some(symmetries)) => gate.forward(&block(head), k, symmetries, &embedded.graphs),
            _ => Ok(block(head)),
        });
        gated.collect()
    }

    /// A copy of the heads on the host.
    pub(crate) fn on_host(&self) -> Option<HostHeads> {
        let on_host = |head: &AnchorHead| {
            Some(match head {
                AnchorHead::Graph(mlp) => HostHead::Graph(HostMlp::new(mlp)?),
                AnchorHead::Node(mlp) => HostHead::Node(HostMlp::new(mlp)?),
                AnchorHead::Edge(head) => HostHead::Edge(head.on_host()),
                AnchorHead::NodePair(head) => HostHead::NodePair(head.on_host()),
            })
        };
        let heads = self.0.iter();
        let copies = heads.map(|(head, gate)| Some((on_host(head)?, gate.as_ref().map(Gate::on_host))));
        copies.collect::<Option<_>>().map(HostHeads)
    }
}

/// A copy of [`Heads`] on the host.
#[derive(Debug)]
pub(crate) struct HostHeads(Vec<(HostHead, Option<HostGate>)>);

impl HostHeads {
    /// The blocks of logits, each `[rows, width]` row by row: see [`Heads::forward`].
    pub(in crate::nn) fn forward(
        &self,
        arrays: &GraphArrays,
        embedded: &HostEmbedded,
        pairs: Option<&[f64]>,
        symmetries: Option<&MoveSymmetries>,
    ) -> Result<Vec<Vec<f32>>> {
        let heads = self.0.iter().enumerate();
        let blocks = heads.map(|(k, (head, gate))| {
            let mut block = head.forward(arrays, embedded, pairs);
            if let (Some(gate), Some(symmetries)) = (gate, symmetries) {
                gate.add_to(&mut block, k, symmetries, &embedded.graphs)?;
            }
            Ok(block)
        });
        blocks.collect()
    }
}

/// A copy of an action type's head on the host.
#[derive(Debug)]
enum HostHead {
    Graph(HostMlp),
    Node(HostMlp),
    Edge(HostEdgeHead),
    NodePair(HostPairHead),
}

impl HostHead {
    /// The block of logits, `[rows, width]`, given pair features of `[sum of n * n, features]`.
    fn forward(&self, arrays: &GraphArrays, embedded: &HostEmbedded, pairs: Option<&[f64]>) -> Vec<f32> {
        match self {
            Self::Graph(mlp) => mlp.forward(embedded.graphs.clone(), arrays.len()),
            Self::Node(mlp) => mlp.forward(embedded.nodes.clone(), arrays.nodes.len()),
            Self::Edge(head) => head.forward(arrays, &embedded.nodes, pairs),
            Self::NodePair(head) => head.all_pairs(arrays, &embedded.nodes, pairs),
        }
    }
}
