//! Networks for acyclic graphs, which complement the networks for all graphs: features for an MLP, and
//! attention between pairs of nodes.

mod edge_transformer;
mod features;

pub use edge_transformer::{EdgeTransformer, EdgeTransformerConfig};
pub use features::AdjacencyFeatures;
