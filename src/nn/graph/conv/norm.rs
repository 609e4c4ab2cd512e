//! Norms of rounds of messages. None looks at batch mates.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::nn::graph::engine::Engine;
use crate::nn::{LayerNorm, Scope};

/// The norm after each round of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum NormKind {
    /// A [`LayerNorm`] of each node by itself. The default.
    #[default]
    Layer,
    /// A [`GraphNorm`] of each graph over its own nodes. Equal nodes of different graphs are then different,
    /// so that each is computed.
    Graph,
    /// No norm. Sums over many neighbours then grow from round to round, and an untrained policy on dense
    /// graphs is far from the uniform one.
    None,
}

/// Graph norm (Cai et al., *GraphNorm: A Principled Approach to Accelerating Graph Neural Network Training*,
/// 2021, eq. 4): each number of a node, less a learned share of its mean over the nodes of the same graph, to
/// variance 1 over them; then a learned scale and shift.
#[derive(Debug)]
pub struct GraphNorm {
    pub(in crate::nn) weight: Tensor,
    pub(in crate::nn) bias: Tensor,
    pub(in crate::nn) mean_scale: Tensor,
}

impl GraphNorm {
    /// The first share of the mean that is taken away. PyTorch Geometric and the paper begin with all of it,
    /// 1; then the mean of a graph's nodes, which heads read, would at first be the same for all graphs.
    const MEAN_SCALE: f64 = 0.5;

    /// Added to the variance before its root, as in PyTorch Geometric.
    pub(in crate::nn) const EPS: f64 = 1e-5;

    /// A graph norm with a learned `weight` (starts at 1), `bias` (at 0) and `mean_scale` (at 1/2), all
    /// `[width]`.
    pub fn new(scope: &mut Scope<'_>, width: i64) -> Self {
        Self {
            weight: scope.constant("weight", &[width], 1.0),
            bias: scope.constant("bias", &[width], 0.0),
            mean_scale: scope.constant("mean_scale", &[width], Self::MEAN_SCALE),
        }
    }
}

/// A norm of nodes' rows.
#[derive(Debug)]
pub(super) enum Norm {
    Layer(LayerNorm),
    Graph(GraphNorm),
    None,
}

impl Norm {
    pub(super) fn new(scope: &mut Scope<'_>, kind: NormKind, width: i64) -> Self {
        match kind {
            NormKind::Layer => Self::Layer(LayerNorm::new(scope, width)),
            NormKind::Graph => Self::Graph(GraphNorm::new(scope, width)),
            NormKind::None => Self::None,
        }
    }

    /// The rows `[R, D]` after the norm; for a graph norm a row for each node.
    pub(super) fn forward<E: Engine>(&self, engine: &E, rows: E::Rows) -> E::Rows {
        match self {
            Self::Layer(norm) => engine.norm(norm, rows),
            Self::Graph(norm) => engine.graph_norm(norm, rows),
            Self::None => rows,
        }
    }
}
