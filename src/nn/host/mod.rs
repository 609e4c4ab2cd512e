//! Copies of networks on the host for roll-outs, whose batches are too small for tensor operations.

mod graph_net;
mod message_passing;
mod mlp;
mod pairs;

pub use graph_net::HostGraphNet;
pub(in crate::nn) use message_passing::HostMessagePassing;
pub use mlp::HostMlp;
pub(crate) use mlp::floats;
pub(in crate::nn) use mlp::{HostLinear, HostNorm};
pub(in crate::nn) use pairs::HostPairHead;
