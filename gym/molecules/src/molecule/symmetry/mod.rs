//! Canonical orders and symmetry of sparse graphs, in about linear time: a molecule is a tree of ring systems and bonds, and each of
//! these small parts is searched by itself.
//!
//! The tree is rooted at its centre and numbered from its leaves on, as Aho, Hopcroft and Ullman number rooted trees; the parts are
//! searched by refinement and individualisation (McKay and Piperno, "Practical graph isomorphism, II", 2014).

mod blocks;
mod partition;
mod search;
mod tree;

pub(super) use search::Symmetry;
pub(super) use tree::Tree;
