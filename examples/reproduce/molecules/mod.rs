//! Molecules atom by atom and fragment by fragment.

pub(crate) mod atoms;
pub(crate) mod fragments;
pub(crate) mod molecule_multi_objective;
mod outputs;
pub(crate) mod seh_frag;
mod train;
