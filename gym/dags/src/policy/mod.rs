//! Networks over acyclic graphs beside those for all graphs: features of a perceptron, attention between pairs of nodes.

mod edge_transformer;
mod features;

pub use edge_transformer::{EdgeTransformer, EdgeTransformerConfig};
pub use features::AdjacencyFeatures;
