//! Molecules fragment by fragment: junction trees of rings and groups, joined at their attachment points.
//!
//! | item | is |
//! |---|---|
//! | [`Fragment`], [`Stem`] | a molecule, its attachment points, and its symmetries |
//! | [`FragmentLibrary`] | the fragments to build with: a standard set, or a file; trees as molecules |
//! | [`Fragments`] | growth by attaching fragments, up to isomorphism and the fragments' own symmetries |
//! | [`FragmentReward`] | any [`MoleculeScore`](crate::MoleculeScore) as its reward |
//!
//! The idea is that of recursionpharma/gflownet's `FragMolBuildingEnvContext`. There, a fragment comes first and the atoms that it is
//! attached by are set in two further moves, so that most states can't be finished, and equivalent atoms make different states.
//! Here a fragment comes with its bond, every state is a molecule, and symmetries are exact ([`Fragments`]).

mod action;
mod env;
mod fragment;
mod library;
mod normal;
mod reward;
mod symmetry;
mod tree;

pub use env::Fragments;
pub use fragment::{Fragment, FragmentError, Stem};
pub use library::FragmentLibrary;
pub use reward::FragmentReward;
