//! Tasks on real vectors: the unit box, the line, and sampling from densities by diffusion.

pub(crate) mod boxes;
pub(crate) mod diffusion;
