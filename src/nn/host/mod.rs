//! Copies of layers on the host, for the small batches of a roll-out.

mod linear;
mod mirror;
mod mlp;
mod packed;

pub use linear::HostLinear;
pub(crate) use linear::LayerInputs;
pub(in crate::nn) use mirror::Mirror;
pub use mlp::HostMlp;
pub(in crate::nn) use packed::Packed;
