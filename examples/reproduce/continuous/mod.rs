//! Real vectors: the unit box, the line, and sampling from densities by diffusion.

pub(crate) mod boxes;
mod densities;
pub(crate) mod diffusion;
pub(crate) mod diffusion_posterior;
pub(crate) mod line;
