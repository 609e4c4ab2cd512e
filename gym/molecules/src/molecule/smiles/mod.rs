//! SMILES: a reader and a canonical writer.
//!
//! No crate can be used instead: `smiles-rs` 0.2 needs a newer compiler than this project, and like
//! `chematic`, `purr`, `chemcore` and `smiles-parser` it has its own graphs and canonical order. Keys,
//! symmetries and Kekule forms, which must agree with the environments, would have to be computed here in any
//! case.

mod build;
mod directions;
mod marks;
mod read;
mod tree;
mod write;

pub use read::LeftOut;
pub(crate) use tree::TextTree;
