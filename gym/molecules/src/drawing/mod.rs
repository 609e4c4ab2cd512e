//! Molecules on paper: places of their atoms, molfiles, skeletal formulas.

mod block;
mod clashes;
mod label;
mod layout;
mod molfile;
mod place;
mod rings;
mod sketch;
mod strain;
mod wedges;

pub(crate) use rings::smallest_rings;
