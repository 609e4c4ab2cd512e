//! Free growth of graphs: nodes, edges and attributes within limits.

mod config;
mod env;
mod reward;

pub use config::{GraphBuildingConfig, Growth};
pub use env::GraphBuilding;
pub use reward::PerGraph;
