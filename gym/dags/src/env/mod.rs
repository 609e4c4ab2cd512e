//! Acyclic graphs on labelled nodes, which are built edge by edge: the action type, the environment, expert
//! knowledge and ancestry.

mod add_arc;
mod ancestry;
mod config;
mod node_set;
mod structure;
mod tensors;

pub use add_arc::AddArc;
pub(crate) use ancestry::parent_sets;
pub use ancestry::{Ancestry, MAX_NODES, acyclic};
pub use config::StructureConfig;
pub use node_set::NodeSet;
pub(crate) use node_set::{count_subsets, subsets};
pub use structure::BayesianStructure;

use gfn::{Error, Result};

/// Returns the number of nodes `n` unchanged, or an error unless it is between 1 and 200.
pub(crate) fn check_size(n: usize) -> Result<usize> {
    if (1..=MAX_NODES).contains(&n) { Ok(n) } else { Err(Error::config("nodes", n, "1 to 200 nodes")) }
}
