//! The kinds of message passing.

use serde::{Deserialize, Serialize};

use crate::graph::{GraphKind, GraphSchema};

/// The kind of message passing in a graph network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ConvKind {
    /// Chooses a kind that uses all edge features of the environment (the default): [`Gine`](Self::Gine) if
    /// edges have several classes or attributes, otherwise [`Directed`](Self::Directed) if they have a
    /// direction, otherwise [`Gin`](Self::Gin).
    #[default]
    Auto,
    /// Graph isomorphism network: `MLP((1 + eps) h_i + sum_j h_j)` over neighbours in both directions (Xu et
    /// al., *How Powerful are GNNs?*, 2019, eq. 4.1).
    Gin,
    /// [`Gin`](Self::Gin) with a virtual node: each round adds `W [mean h, sum h / sqrt(n)]` of the whole
    /// graph to the messages of a node (Gilmer et al., *Neural Message Passing for Quantum Chemistry*, 2017,
    /// section 5.2; Hu et al., *Open Graph Benchmark*, 2020).
    ///
    /// Use this kind for rewards that depend on distant nodes, or on nodes without an edge. This kind is
    /// slower, because nodes that have the same neighbourhood in different graphs then have different values,
    /// so each node is computed separately.
    GinVirtual,
    /// Graph isomorphism network with edge features: `MLP((1 + eps) h_i + sum_j relu(h_j + e_ij))` over
    /// neighbours in both directions. The vector `e_ij` encodes edge classes and attributes (Hu et al. 2020)
    /// and, in directed graphs, the direction of the edge.
    Gine,
    /// Separate sums over in-neighbours and out-neighbours: `W2 relu(W h_i + W_in sum_in h_j + W_out sum_out
    /// h_j)`.
    ///
    /// The formula resembles a GCN without normalisation. Dividing by degrees would hide the degrees. A GCN
    /// without self-loops would also drop messages between nodes of in-degree 0.
    Directed,
    /// GATv2 (Brody et al., *How Attentive are Graph Attention Networks?*, 2022, eq. 7): a node receives
    /// `sum_j softmax_j(a . leaky_relu(W_to h_i + W_from h_j + e_ij)) W_from h_j`, head by head, over
    /// neighbours in both directions and itself. The vector `e_ij` encodes edge classes and attributes, the
    /// direction of the edge in directed graphs, and whether `i` is `j`.
    ///
    /// The attention averages over neighbours, so it can't count neighbours. Set
    /// [`degrees`](crate::nn::GraphNetConfig::degrees) to give the network the number of neighbours.
    Gat {
        /// The number of attention heads, which must divide the embedding width.
        heads: i64,
    },
    /// A GPS layer (Rampášek et al., *Recipe for a General, Powerful, Scalable Graph Transformer*, 2022,
    /// section 3.1): messages along edges as in [`Auto`](Self::Auto), and attention of each node to all nodes
    /// of its graph. A perceptron is applied to the sum of messages and attention. Messages, attention and
    /// perceptron each have a residual connection and a norm, as in PyTorch Geometric's `GPSConv`.
    ///
    /// A layer needs memory in proportion to the number of heads times the number of pairs of nodes of each
    /// graph.
    Gps {
        /// The number of attention heads, which must divide the embedding width.
        heads: i64,
    },
    /// Attention along edges in both directions, and to and from a virtual node of each graph. The virtual
    /// node holds the condition. The attention depends on edge classes and attributes. The design is that of
    /// `GraphTransformer` in the repository recursionpharma/gflownet, with a norm before each attention and
    /// each perceptron.
    ///
    /// Use this kind for graphs of up to a few hundred nodes. For each pair of nodes, a layer needs memory
    /// for a few numbers per head, and for a count of each edge class, each attribute value and each relation
    /// between the two (such as a node and itself, or a node and the virtual node).
    Transformer {
        /// The number of attention heads, which must divide the embedding width.
        heads: i64,
    },
}

impl ConvKind {
    /// Replaces [`Auto`](Self::Auto) by the kind that it chooses for graphs of a schema.
    pub(in crate::nn) fn resolve(self, schema: &GraphSchema) -> Self {
        match self {
            Self::Auto if schema.tells_edges_apart() => Self::Gine,
            Self::Auto if schema.kind == GraphKind::Directed => Self::Directed,
            Self::Auto => Self::Gin,
            kind => kind,
        }
    }

    /// Describes the edge features that graphs of a schema have and this kind doesn't use; `None` if this
    /// kind uses all of them.
    pub(in crate::nn) fn missing_features(self, schema: &GraphSchema) -> Option<&'static str> {
        match self {
            Self::Gin | Self::GinVirtual | Self::Directed if schema.tells_edges_apart() => {
                Some("the classes and attributes of edges")
            }
            Self::Gin | Self::GinVirtual if schema.kind == GraphKind::Directed => {
                Some("the directions of edges")
            }
            _ => None,
        }
    }
}
