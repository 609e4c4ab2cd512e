//! Policies over acyclic graphs: features of a perceptron, any graph network, attention among nodes or pairs of nodes.

mod edge_transformer;
mod features;
mod graph_policy;
mod node_attention;
mod pair_policy;

pub use edge_transformer::{EdgeTransformer, EdgeTransformerConfig, EdgeTransformerNetwork};
pub use features::AdjacencyFeatures;
pub use graph_policy::DagPolicy;
pub use node_attention::{NodeAttention, NodeAttentionConfig, NodeAttentionNetwork};
pub use pair_policy::{HostDags, PairNetwork, PairPolicy};
