//! Kinds of message passing.

use serde::{Deserialize, Serialize};

use crate::graph::{GraphKind, GraphSchema};

/// The kind of message passing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ConvKind {
    /// The choice that sees all edge features of the environment: [`Gine`](Self::Gine) if edges have classes
    /// or attributes, else [`Directed`](Self::Directed) if they have a direction, else [`Gin`](Self::Gin).
    #[default]
    Auto,
    /// `MLP((1 + eps) h_i + sum_j h_j)` over neighbours in both directions (Xu et al., *How Powerful are
    /// GNNs?*, 2019, eq. 4.1).
    Gin,
    /// [`Gin`](Self::Gin) with a virtual node: each round adds `W [mean h, sum h / sqrt(n)]` of the whole
    /// graph to what a node receives (Gilmer et al., *Neural Message Passing for Quantum Chemistry*, 2017,
    /// section 5.2; Hu et al., *Open Graph Benchmark*, 2020).
    ///
    /// For what depends on nodes far away, or on nodes without an edge. Equal nodes of different graphs are
    /// then different, so that each is computed.
    GinVirtual,
    /// `MLP((1 + eps) h_i + sum_j relu(h_j + e_ij))` over neighbours in both directions. `e_ij` holds edge
    /// classes and attributes (Hu et al. 2020) and, in directed graphs, the direction of the edge.
    Gine,
    /// `W2 relu(W h_i + W_in sum_in h_j + W_out sum_out h_j)`: separate sums over in-neighbours and
    /// out-neighbours.
    ///
    /// It is GCN-style but not normalised: dividing by degrees would hide them, and without self-loops it
    /// would drop messages between nodes of in-degree 0.
    Directed,
    /// GATv2 (Brody et al., *How Attentive are Graph Attention Networks?*, 2022, eq. 7): a node receives
    /// `sum_j softmax_j(a . leaky_relu(W_to h_i + W_from h_j + e_ij)) W_from h_j`, head by head, over
    /// neighbours in both directions and itself. `e_ij` holds edge classes and attributes, the direction of
    /// the edge in directed graphs, and that `i` is `j`.
    ///
    /// Attention averages, so that it can't count neighbours: [`degrees`](crate::nn::GraphNetConfig::degrees)
    /// tell it.
    Gat {
        /// Attention heads; their number divides the embedding width.
        heads: i64,
    },
    /// A GPS layer (Rampášek et al., *Recipe for a General, Powerful, Scalable Graph Transformer*, 2022,
    /// section 3.1): messages along edges as those of [`Auto`](Self::Auto), beside attention of each node to
    /// all nodes of its graph; the sum of both goes through a perceptron. Each of the three has a residual
    /// connection and a norm, as in PyTorch Geometric's `GPSConv`.
    ///
    /// A layer takes a number for each pair of nodes and head.
    Gps {
        /// Attention heads; their number divides the embedding width.
        heads: i64,
    },
    /// Attention along edges in both directions, and to and from a virtual node of each graph that holds the
    /// condition. It sees edge classes and attributes. The design is that of recursionpharma/gflownet's
    /// `GraphTransformer`, pre-norm.
    ///
    /// It is meant for graphs of up to a few hundred nodes: a layer takes memory for each pair of nodes, a
    /// few numbers per head and one per edge class, attribute value and relation.
    Transformer {
        /// Attention heads; their number divides the embedding width.
        heads: i64,
    },
}

impl ConvKind {
    /// The convolution for graphs of a schema, with [`Auto`](Self::Auto) resolved.
    pub(in crate::nn) fn chosen(self, schema: &GraphSchema) -> Self {
        match self {
            Self::Auto if schema.tells_edges_apart() => Self::Gine,
            Self::Auto if schema.kind == GraphKind::Directed => Self::Directed,
            Self::Auto => Self::Gin,
            named => named,
        }
    }

    /// The edge feature of such graphs that this convolution can't see, if any.
    pub(in crate::nn) fn misses(self, schema: &GraphSchema) -> Option<&'static str> {
        match self {
            Self::Gin | Self::GinVirtual | Self::Directed if schema.tells_edges_apart() => {
                Some("the classes and attributes of edges")
            }
            Self::Gin | Self::GinVirtual if schema.kind == GraphKind::Directed => Some("the direction of edges"),
            _ => None,
        }
    }
}
