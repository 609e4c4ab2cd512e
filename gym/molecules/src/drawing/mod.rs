//! Drawings of molecules: coordinates, molfiles, skeletal formulas.

mod layout;
mod molfile;
mod place;
mod sketch;
mod wedges;
