//! Tasks on molecules, built atom by atom or fragment by fragment.

pub(crate) mod atoms;
mod directions;
pub(crate) mod molecule_multi_objective;
mod outputs;
pub(crate) mod seh_frag;
