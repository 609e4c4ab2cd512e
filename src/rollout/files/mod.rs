//! Trajectories and the other containers in files: data sets that are checked, action by action, when they are read.

mod data;
mod fingerprint;
mod saved;
mod walk_tensors;

pub(crate) use data::{Content, DataFile};
pub(in crate::rollout) use fingerprint::fingerprint;
pub(crate) use saved::{conditions_of, with_conditions};
pub(crate) use walk_tensors::{read_walks, write_walks};
