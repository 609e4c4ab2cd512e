//! Molecules fragment by fragment: junction trees of rings and groups, joined at their attachment points.
//!
//! | item | is |
//! |---|---|
//! | [`Fragment`], [`Stem`] | a molecule, its attachment points, and its symmetries |
//! | [`FragmentLibrary`] | the fragments to build with: a standard set, or a file; trees as molecules |
//! | [`FragmentLibrary::trees`] | molecules as trees of fragments, all of them |
//! | [`Vocabulary`], [`FragmentLibrary::from_data`] | fragments of one's own: the pieces that a data set falls into, with their numbers |
//! | [`Fragments`] | growth by attaching fragments, up to isomorphism and the fragments' own symmetries |
//! | [`FragmentReward`] | any [`MoleculeScore`](crate::MoleculeScore) as its reward |
//!
//! The idea is that of recursionpharma/gflownet's `FragMolBuildingEnvContext`. There, a fragment comes first and the atoms that it is
//! attached by are set in two further moves, so that most states can't be finished, and equivalent atoms make different states.
//! Here a fragment comes with its bond, every state is a molecule, and symmetries are exact ([`Fragments`]).

mod action;
mod decompose;
mod env;
mod fragment;
mod library;
mod marked;
mod normal;
mod reward;
mod symmetry;
mod tree;
mod vocabulary;

pub use env::Fragments;
pub use fragment::{Fragment, FragmentError, Stem};
pub use library::FragmentLibrary;
pub use reward::FragmentReward;
pub use vocabulary::{CountedFragment, Vocabulary};
