//! Molecules: atom by atom, fragment by fragment, as strings of blocks, under several rewards, scored by a program.

mod atoms;
pub(crate) mod draw_molecules;
pub(crate) mod fragments;
pub(crate) mod molecule;
pub(crate) mod molecule_external;
pub(crate) mod molecule_multi_objective;
pub(crate) mod qm9str;
mod run;
pub(crate) mod scorer_overhead;
