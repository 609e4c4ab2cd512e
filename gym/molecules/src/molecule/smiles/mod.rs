//! SMILES: a reader and a canonical writer.
//!
//! No crate does this for us: `smiles-rs` 0.2 needs a newer compiler than this project's and, as `chematic`,
//! `purr`, `chemcore` and `smiles-parser` do, brings graphs and a canonical order of its own. Keys, symmetry
//! and Kekule forms, which must agree with the environments, would be done here in any case.

mod build;
mod directions;
mod marks;
mod read;
mod tree;
mod write;

pub use read::LeftOut;
pub(crate) use tree::TextTree;
