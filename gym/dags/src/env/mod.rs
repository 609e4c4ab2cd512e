//! Acyclic graphs on labelled nodes that are built edge by edge: action type, environment, expert knowledge
//! and ancestry.

mod add_arc;
mod ancestry;
mod config;
mod node_set;
mod structure;

pub use add_arc::AddArc;
pub(crate) use ancestry::parent_sets;
pub use ancestry::{Ancestry, MAX_NODES, acyclic};
pub use config::StructureConfig;
pub use node_set::NodeSet;
pub use structure::BayesianStructure;

use gfn::{Error, Result};

/// Checks that a number of nodes is 1 to 200, and returns it.
pub(crate) fn check_size(n: usize) -> Result<usize> {
    if (1..=MAX_NODES).contains(&n) { Ok(n) } else { Err(Error::config("nodes", n, "1 to 200 nodes")) }
}
