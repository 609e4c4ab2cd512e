//! Drawings of graphs.

mod edges;
mod layout;
mod sheet;

pub use layout::{Layout, majorise};
pub use sheet::{GraphSheet, NodeLabels};
