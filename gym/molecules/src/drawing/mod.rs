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

// For `rings`, which is compiled into the tests, too.
use crate::building::Basis;

pub(crate) use rings::smallest_rings;
