//! Networks over acyclic graphs beside those for all graphs: features of a perceptron, attention among nodes or pairs of nodes.

mod edge_transformer;
mod features;
mod node_attention;
mod pairs;

pub use edge_transformer::{EdgeTransformer, EdgeTransformerConfig};
pub use features::AdjacencyFeatures;
pub use node_attention::{NodeAttention, NodeAttentionConfig};
