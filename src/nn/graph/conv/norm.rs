//! The norms after rounds of message passing. The result for a graph never depends on the other graphs of the
//! batch.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::nn::graph::engine::Engine;
use crate::nn::{LayerNorm, Scope};

/// The kind of norm after each round of message passing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum NormKind {
    /// A [`LayerNorm`] over the numbers of each node's embedding (the default).
    #[default]
    Layer,
    /// A [`GraphNorm`] over the nodes of each graph. This norm is slower, because nodes that have the same
    /// neighbourhood in different graphs then have different values, so each node is computed separately.
    Graph,
    /// No norm. Sums over many neighbours then grow with each round, and an untrained policy on dense graphs
    /// is far from the uniform policy.
    None,
}

/// Graph norm (Cai et al., *GraphNorm: A Principled Approach to Accelerating Graph Neural Network Training*,
/// 2021, eq. 4): it subtracts a learned share of the mean over the nodes of a graph from each number of a
/// node, normalises to variance 1 over these nodes, and applies a learned scale and shift.
#[derive(Debug)]
pub struct GraphNorm {
    pub(in crate::nn) weight: Tensor,
    pub(in crate::nn) bias: Tensor,
    pub(in crate::nn) mean_scale: Tensor,
}

impl GraphNorm {
    /// The initial share of the mean that is subtracted. PyTorch Geometric and the paper begin with 1. With 1
    /// the mean over the nodes, which heads use, would initially be the same for all graphs, so a smaller
    /// share is used.
    const MEAN_SCALE: f64 = 0.5;

    /// The number that is added to the variance before its root is taken, as in PyTorch Geometric.
    pub(in crate::nn) const EPS: f64 = 1e-5;

    /// Builds a graph norm with a learned `weight` (initially 1), `bias` (initially 0) and `mean_scale`
    /// (initially 1/2), all `[width]`.
    pub fn new(scope: &mut Scope<'_>, width: i64) -> Self {
        Self {
            weight: scope.constant("weight", &[width], 1.0),
            bias: scope.constant("bias", &[width], 0.0),
            mean_scale: scope.constant("mean_scale", &[width], Self::MEAN_SCALE),
        }
    }
}

/// A norm that is applied to node embeddings, one per row.
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

    /// Normalises rows `[R, D]`, each of which is the embedding of one node, or of several nodes with equal
    /// embeddings. A graph norm requires a row for each node, `R = N`.
    pub(super) fn forward<E: Engine>(&self, engine: &E, rows: E::Rows) -> E::Rows {
        match self {
            Self::Layer(norm) => engine.norm(norm, rows),
            Self::Graph(norm) => engine.graph_norm(norm, rows),
            Self::None => rows,
        }
    }
}
