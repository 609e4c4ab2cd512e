//! Drawings of graphs.

mod drawing;
mod edges;
mod layout;

pub use drawing::{GraphDrawing, NodeLabels};
pub use layout::Layout;
