//! One head per action type, at its anchor.

mod edge;
mod pairs;
mod symmetry;

pub(in crate::nn) use pairs::{
    GRAPHS_PER_THREAD, dot, edge_pairs, host_scores_of_pairs, host_weighted_features, pair_features, scores_of_pairs,
    size_groups, weighted_features,
};

use crate::Result;
use crate::env::Direction;
use crate::graph::{Anchor, GraphEnv, GraphSchema, MoveSymmetries};
use crate::nn::graph::GraphNetConfig;
use crate::nn::graph::engine::Engine;
use crate::nn::graph::torso::Embedded;
use crate::nn::{Mlp, MlpConfig, Scope};
use edge::EdgeHead;
use pairs::PairHead;
use symmetry::Gate;
pub use symmetry::Symmetry;
pub(in crate::nn) use symmetry::{SymmetryLayer, counted};

/// Largest number of nodes for which logits start unscaled. A graph's embedding sums over its nodes and so grows with
/// their number; logits of node pairs grow with its square.
const SM f64 = 8.0;

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
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        env: &GraphEnv,
        direction: Direction,
        width: i64,
        of_graph: i64,
        config: &GraphNetConfig,
    ) -> Self {
        let (schema, scale) = (env.schema(), start_scale(env.schema()));
        let hidden = MlpConfig { hidden: vec![width], ..MlpConfig::default() };
        let n_features = config.pair_walks.map_or(0, |walks| 1 + walks as i64);
        let heads = env.actions().heads(direction).map(|(kind, action_type, head)| {
            let mut scope = scope.sub(&format!("{}_{}", kind.0, action_type.name()));
            let columns = head.width as i64;
            let head_of_type = match head.anchor {
                Anchor::Graph => {
                    let mlp = Mlp::new(&mut scope, of_graph, columns, &hidden);
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
            (head_of_type, gated.then(|| Gate::new(&mut scope.sub("gate"), of_graph, scale)))
        });
        Self(heads.collect())
    }

    /// The blocks of logits, given pair features, and what moves do to symmetry if gates are there to read it.
    pub(crate) fn forward<E: Engine>(
        &self,
        engine: &E,
        embedded: &Embedded<E::Rows>,
        pairs: Option<&E::Rows>,
        symmetries: Option<&MoveSymmetries>,
    ) -> Result<Vec<E::Rows>> {
        let block = |head: &AnchorHead| match head {
            AnchorHead::Graph(mlp) => engine.mlp(mlp, &embedded.graphs),
            AnchorHead::Node(mlp) => engine.mlp(mlp, &embedded.nodes),
            AnchorHead::Edge(head) => head.forward(engine, &embedded.nodes, pairs),
            AnchorHead::NodePair(head) => head.forward(engine, &embedded.nodes, pairs),
        };
        let heads = self.0.iter().enumerate();
        let gated = heads.map(|(k, (head, gate))| match (gate, symmetries) {
            (Some(gate), Some(symmetries)) => gate.add_to(engine, block(head), k, symmetries, &embedded.graphs),
            _ => Ok(block(head)),
        });
        gated.collect()
    }
}
