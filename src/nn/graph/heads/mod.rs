//! The heads of a graph network. Each action type has one head. The anchor of an action type says what its
//! slots belong to: the graph, a node, an edge, or a pair of nodes. The head computes a row of logits for
//! each of these.

mod edge;
mod pair_features;
mod pairs;
mod symmetry;

pub(in crate::nn) use pair_features::pair_features;
pub(in crate::nn) use pairs::{
    GRAPHS_PER_THREAD, dot, edge_pairs, host_scores_of_pairs, host_weighted_features, scores_of_pairs,
    size_groups, weighted_features,
};

use crate::Result;
use crate::env::Direction;
use crate::graph::{Anchor, GraphEnv, GraphSchema, MoveSymmetries};
use crate::nn::graph::GraphNetConfig;
use crate::nn::graph::engine::HeadEngine;
use crate::nn::graph::torso::Embeddings;
use crate::nn::{Mlp, MlpConfig, Scope};
use edge::EdgeHead;
use pairs::PairHead;
use symmetry::Gate;
pub use symmetry::SymmetryInput;
pub(in crate::nn) use symmetry::{SymmetryLayer, require_symmetries};

/// The largest number of nodes for which initial logits aren't scaled down. Larger graphs need smaller
/// factors, because the embedding of a graph sums over its nodes and grows with their number, and logits of
/// node pairs grow with the square of the number.
const MAX_NODES_UNSCALED: f64 = 8.0;

/// Returns the factor on the initial outputs of heads for graphs of a schema. With this factor an untrained
/// policy is about equally close to the uniform policy for graphs of any size, and for any factor `unit` by
/// which the outputs are multiplied later.
pub(in crate::nn) fn initial_scale(schema: &GraphSchema, unit: f64) -> f64 {
    (MAX_NODES_UNSCALED / schema.max_nodes.max(1) as f64).min(1.0) / unit
}

/// The heads of one direction: one for each action type, in the action set's order. A head may have a gate,
/// which adds to each move's logit the change of ln |Aut| by the move, times a learned weight.
#[derive(Debug)]
pub(crate) struct Heads(Vec<(AnchorHead, Option<Gate>)>);

/// A head of an action type. The variant depends on what the slots of the action type belong to: the graph, a
/// node, an edge, or a pair of nodes.
#[derive(Debug)]
enum AnchorHead {
    Graph(Mlp),
    Node(Mlp),
    Edge(EdgeHead),
    NodePair(PairHead),
}

impl Heads {
    /// Builds heads for embeddings of nodes of width `width` and embeddings of graphs of width `graph_width`.
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        env: &GraphEnv,
        direction: Direction,
        width: i64,
        graph_width: i64,
        config: &GraphNetConfig,
    ) -> Self {
        let schema = env.schema();
        let scale = initial_scale(schema, config.unit);
        let hidden = MlpConfig { hidden: vec![width], ..MlpConfig::default() };
        let n_features = config.pair_walks.map_or(0, |walks| 1 + walks as i64);
        let heads = env.actions().heads(direction).map(|(kind, action_type, head)| {
            let mut scope = scope.sub(&format!("{}_{}", kind.0, action_type.name()));
            let columns = head.width as i64;
            let head_of_type = match head.anchor {
                Anchor::Graph => {
                    let mlp = Mlp::new(&mut scope, graph_width, columns, &hidden);
                    mlp.scale_output(scale);
                    if action_type.is_exit() {
                        mlp.fill_output_bias(config.initial_exit_bias / config.unit);
                    }
                    AnchorHead::Graph(mlp)
                }
                Anchor::Node => {
                    let mlp = Mlp::new(&mut scope, width, columns, &hidden);
                    mlp.scale_output(scale);
                    AnchorHead::Node(mlp)
                }
                Anchor::Edge => {
                    let head = EdgeHead::new(&mut scope, schema, width, columns, n_features);
                    head.scale(scale);
                    AnchorHead::Edge(head)
                }
                Anchor::NodePair => {
                    let head = PairHead::new(&mut scope, width, columns, n_features);
                    head.scale(scale);
                    AnchorHead::NodePair(head)
                }
            };
            let gated = config.symmetry.count().is_some() && !action_type.is_exit();
            (head_of_type, gated.then(|| Gate::new(&mut scope.sub("gate"), graph_width, scale)))
        });
        Self(heads.collect())
    }

    /// Computes the logits of all heads, one block per action type. `pairs` holds the features of node pairs.
    /// `symmetries` must be given if heads have gates. A gate adds to each move's logit the change of ln
    /// |Aut| by the move, times a learned weight.
    pub(crate) fn forward<E: HeadEngine>(
        &self,
        engine: &E,
        embeddings: &Embeddings<E::Rows>,
        pairs: Option<&E::Rows>,
        symmetries: Option<&MoveSymmetries>,
    ) -> Result<Vec<E::Rows>> {
        let block = |head: &AnchorHead| match head {
            AnchorHead::Graph(mlp) => engine.mlp(mlp, &embeddings.graphs),
            AnchorHead::Node(mlp) => engine.mlp(mlp, &embeddings.nodes),
            AnchorHead::Edge(head) => head.forward(engine, &embeddings.nodes, pairs),
            AnchorHead::NodePair(head) => head.forward(engine, &embeddings.nodes, pairs),
        };
        let heads = self.0.iter().enumerate();
        let gated = heads.map(|(k, (head, gate))| match (gate, symmetries) {
            (Some(gate), Some(symmetries)) => {
                gate.add_to(engine, block(head), k, symmetries, &embeddings.graphs)
            }
            _ => Ok(block(head)),
        });
        gated.collect()
    }
}
