//! SMILES: a reader of SMILES texts, and a writer of canonical SMILES.
//!
//! No existing crate is used for that. `smiles-rs` 0.2 needs a newer compiler than this project.
//! `smiles-rs`, `chematic`, `purr`, `chemcore` and `smiles-parser` have their own types of graphs and other
//! canonical orders. Keys, symmetries and Kekule forms must agree with the environments, so they would have
//! to be computed here in any case.

mod build;
mod directions;
mod marks;
mod read;
mod tree;
mod write;

pub use read::LeftOut;
pub(crate) use tree::TextTree;
