//! Molecules on paper: places of their atoms, molfiles, skeletal formulas.

mod layout;
mod molfile;
mod place;
mod sketch;
mod wedges;
