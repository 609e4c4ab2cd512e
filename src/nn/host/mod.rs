//! Copies of networks on the host for roll-outs, whose batches are too small for tensor operations.

mod graph_net;
mod linear;
mod mlp;
mod pairs;

pub use graph_net::HostGraphNet;
pub(in crate::nn) use graph_net::{HostEmbedded, HostParts};
pub use linear::HostLinear;
pub(crate) use linear::floats;
pub use mlp::{HostMlp, HostNorm};
pub(in crate::nn) use pairs::{HostPairHead, placed};
