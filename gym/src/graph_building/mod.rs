//! Graphs of any kind that grow by nodes, edges and attributes within limits.

mod config;
mod env;

pub use config::{GraphBuildingConfig, Growth};
pub use env::GraphBuilding;
