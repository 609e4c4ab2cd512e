//! Molecules that are built fragment by fragment. States are junction trees of rings and groups that are
//! joined at their attachment points.
//!
//! | item | description |
//! |---|---|
//! | [`Fragment`], [`Stem`] | a molecule, its attachment points, and its symmetries |
//! | [`FragmentLibrary`] | the fragments to build with: a standard set, or a file; conversion of trees into molecules |
//! | [`FragmentLibrary::trees`] | all decompositions of a molecule into a tree of fragments |
//! | [`Vocabulary`], [`FragmentLibrary::from_data`] | custom fragments: the pieces of a data set's molecules, with their counts |
//! | [`Fragments`] | growth by attaching fragments, up to isomorphism and the fragments' own symmetries |
//! | [`FragmentReward`] | any [`MoleculeScore`](crate::MoleculeScore) as the environment's reward |
//!
//! The idea is that of the class `FragMolBuildingEnvContext` of recursionpharma/gflownet. There, an action
//! adds a fragment, and two further actions choose the attachment atoms of its bond. Most states can
//! therefore not be finished, and equivalent atoms lead to different states. In this module, an action adds
//! a fragment together with its bond. Every state but the empty graph is a molecule, and symmetries are
//! exact ([`Fragments`]).

mod action;
mod decompose;
mod env;
mod fragment;
mod library;
mod marked_graph;
mod normal;
mod symmetry;
mod tree;
mod vocabulary;

pub use env::Fragments;
pub use fragment::{Fragment, FragmentError, Stem};
pub use library::FragmentLibrary;
pub use vocabulary::{CountedFragment, Vocabulary};

use crate::MoleculeReward;

/// The reward of a tree of [`Fragments`], which is the score of the molecule that the tree represents.
///
/// The target is a distribution over trees. A molecule is therefore sampled in proportion to its score
/// times the number of its trees.
///
/// ```
/// use gfn::{Rng, env::Reward, policy::UniformPolicy, rollout::Sampler};
/// use gfn_molecules::Molecule;
/// use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};
///
/// let trees = Fragments::new(&FragmentLibrary::standard()?, 5)?;
/// let reward =
///     FragmentReward::new(trees.library(), |molecule: &Molecule| 0.1 + molecule.heteroatom_share());
/// let samples = Sampler::new(trees.env(), &UniformPolicy).forward(4, &mut Rng::seeded(0))?;
/// assert!(reward.log_reward(samples.terminal_states(), None)?.iter().all(|log| log.is_finite()));
/// # Ok::<(), gfn::Error>(())
/// ```
pub type FragmentReward<S> = MoleculeReward<S, FragmentLibrary>;
