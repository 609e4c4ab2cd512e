//! Data sets: files of trajectories. Every action is checked when a data set is loaded.

mod data;
mod fingerprint;
mod saved;
mod walk_tensors;

pub(in crate::rollout) use fingerprint::fingerprint;
pub(crate) use saved::{conditions_of, with_conditions};
pub(crate) use walk_tensors::{ReadWalks, read_walks, write_walks};
