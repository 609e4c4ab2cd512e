//! Drawings of graphs.

mod edges;
mod layout;
mod sheet;

pub(in crate::plot) use layout::gap;
pub use layout::{Layout, majorise};
pub use sheet::{GraphSheet, NodeLabels};
