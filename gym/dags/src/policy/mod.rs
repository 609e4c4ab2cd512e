//! Networks for acyclic graphs, in addition to the networks that accept any graph: features for an MLP, and
//! a network with attention between pairs of nodes.

mod edge_transformer;
mod features;

pub use edge_transformer::{EdgeTransformer, EdgeTransformerConfig};
pub use features::AdjacencyFeatures;
