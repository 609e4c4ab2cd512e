//! SMILES: a reader and a canonical writer.
//!
//! No existing crate is used: `smiles-rs` 0.2 needs a newer compiler than this project, and like `chematic`,
//! `purr`, `chemcore` and `smiles-parser` it has separate types of graphs and another canonical order. Keys,
//! symmetries and Kekule forms must agree with the environments, so they would have to be computed here in
//! any case.

mod build;
mod directions;
mod marks;
mod read;
mod tree;
mod write;

pub use read::LeftOut;
pub(crate) use tree::TextTree;
