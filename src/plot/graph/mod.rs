//! Drawings of graphs.

mod edges;
mod layout;
mod sheet;

pub use layout::Layout;
pub(in crate::plot) use layout::gap;
pub use sheet::{GraphSheet, NodeLabels};
