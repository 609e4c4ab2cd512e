//! Copies of networks on the host for roll-outs, whose batches are too small for tensor operations.

mod graph_net;
mod linear;
mod message_passing;
mod mlp;
mod pairs;

pub use graph_net::HostGraphNet;
pub use linear::HostLinear;
pub(crate) use linear::floats;
pub(in crate::nn) use message_passing::HostMessagePassing;
pub use mlp::{HostMlp, HostNorm};
pub(in crate::nn) use pairs::HostPairHead;
