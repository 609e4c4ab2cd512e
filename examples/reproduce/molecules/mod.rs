//! Molecules atom by atom, fragment by fragment, and as strings of blocks.

pub(crate) mod atoms;
pub(crate) mod fragments;
pub(crate) mod molecule;
pub(crate) mod molecule_external;
pub(crate) mod molecule_multi_objective;
mod outputs;
pub(crate) mod qm9str;
pub(crate) mod seh_frag;
mod train;
