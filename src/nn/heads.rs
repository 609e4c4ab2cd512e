//! A head per action type, at its anchor.

use tch::Tensor;

use super::frozen_graph::HostEmbedded;
use super::frozen_pairs::FrozenPairHead;
use super::pairs::PairHead;
use super::torso::Embedded;
use super::{Activation, FrozenMlp, GraphNetConfig, Mlp, MlpConfig, Scope};
use crate::env::Direction;
use crate::graph::{ActionSet, Anchor, GraphBatch};

/// The heads of one direction: a block of logits for each action type, in the set's order.
#[derive(Debug)]
pub(crate) struct Heads(Vec<AnchorHead>);

#[derive(Debug)]
enum AnchorHead {
    Graph(Mlp),
    Node(Mlp),
    Edge(PairHead),
    NodePair(PairHead),
}

impl Heads {
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        actions: &ActionSet,
        direction: Direction,
        config: &GraphNetConfig,
    ) -> Self {
        let width = config.embedding;
        let hidden = MlpConfig { hidden: vec![width], activation: Activation::Relu, layer_norm: false, noise: None };
        let n_features = config.pair_walks.map_or(0, |walks| 1 + walks as i64);
        let heads = actions.heads(direction).map(|(kind, action_type, head)| {
            let mut scope = scope.sub(&format!("{}_{}", kind.0, action_type.name()));
            let columns = head.width as i64;
            match head.anchor {
                Anchor::Graph => {
                    let mlp = Mlp::new(&mut scope, 2 * width, columns, &hidden);
                    if action_type.is_exit() {
                        mlp.fill_output_bias(config.initial_exit_bias);
                    }
                    AnchorHead::Graph(mlp)
                }
                Anchor::Node => AnchorHead::Node(Mlp::new(&mut scope, width, columns, &hidden)),
                Anchor::Edge => AnchorHead::Edge(PairHead::new(&mut scope, width, columns, 0)),
                Anchor::NodePair => AnchorHead::NodePair(PairHead::new(&mut scope, width, columns, n_features)),
            }
        });
        Self(heads.collect())
    }

    pub(crate) fn forward(&self, batch: &GraphBatch<'_>, embedded: &Embedded, pairs: Option<&Tensor>) -> Vec<Tensor> {
        let block = |head: &AnchorHead| match head {
            AnchorHead::Graph(mlp) => mlp.forward(&embedded.graphs),
            AnchorHead::Node(mlp) => mlp.forward(&embedded.nodes),
            AnchorHead::Edge(head) => head.at_edges(batch, &embedded.nodes),
            AnchorHead::NodePair(head) => head.all_pairs(batch, &embedded.nodes, pairs),
        };
        self.0.iter().map(block).collect()
    }

    /// The heads as they are now, on the host.
    pub(crate) fn frozen(&self) -> Option<Vec<FrozenHead>> {
        let frozen = |head: &AnchorHead| {
            Some(match head {
                AnchorHead::Graph(mlp) => FrozenHead::Graph(FrozenMlp::new(mlp)?),
                AnchorHead::Node(mlp) => FrozenHead::Node(FrozenMlp::new(mlp)?),
                AnchorHead::Edge(head) => FrozenHead::Edge(head.frozen()),
                AnchorHead::NodePair(head) => FrozenHead::NodePair(head.frozen()),
            })
        };
        self.0.iter().map(frozen).collect()
    }
}

/// The head of an action type on the host.
#[derive(Debug)]
pub(crate) enum FrozenHead {
    Graph(FrozenMlp),
    Node(FrozenMlp),
    Edge(FrozenPairHead),
    NodePair(FrozenPairHead),
}

impl FrozenHead {
    /// `[rows, width]`, given pair features of `[sum of n * n, features]`.
    pub(super) fn forward(&self, embedded: &HostEmbedded<'_>, pairs: Option<&[f64]>) -> Vec<f32> {
        match self {
            Self::Graph(mlp) => mlp.forward(embedded.graphs.clone(), embedded.graphs_of.len()),
            Self::Node(mlp) => mlp.forward(embedded.nodes.clone(), embedded.n_nodes()),
            Self::Edge(head) => head.at_edges(embedded),
            Self::NodePair(head) => head.all_pairs(embedded, pairs),
        }
    }
}
