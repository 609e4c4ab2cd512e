//! Networks as they are now, on the host: what a roll-out asks, whose batches are too small for tensor operations.

mod graph_net;
mod mlp;
mod pairs;

pub use graph_net::FrozenGraphNet;
pub(in crate::nn) use graph_net::{HostEmbedded, Parts};
pub use mlp::FrozenMlp;
pub(crate) use mlp::floats;
pub(in crate::nn) use mlp::{FrozenLinear, FrozenNorm};
pub(in crate::nn) use pairs::{FrozenPairHead, placed};
