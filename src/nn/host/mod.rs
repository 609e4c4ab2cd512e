//! Copies of layers on the host, for the small batches of a roll-out.

mod linear;
mod mlp;
mod packed;

pub use linear::HostLinear;
pub(crate) use linear::floats;
pub use mlp::{HostMlp, HostNorm};
pub(in crate::nn) use packed::Packed;
