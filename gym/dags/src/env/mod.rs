//! Acyclic graphs on labelled nodes, edge by edge: states, their closures, expert knowledge.

mod bayesian_structure;
mod closure;
mod config;
mod graphs;
mod mask;
mod node_set;
mod states;

pub use bayesian_structure::BayesianStructure;
pub use config::StructureConfig;
pub use graphs::DagGraphs;
pub use node_set::NodeSet;
pub(crate) use states::check_size;
pub use states::{Dag, DagStates, MAX_NODES};
