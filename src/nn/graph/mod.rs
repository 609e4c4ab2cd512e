//! Networks over graphs: message passing and attention over a [`GraphBatch`](crate::graph::GraphBatch), and one head of
//! logits per action type.

mod attention_tables;
mod conv;
mod edge_features;
mod edge_mlp;
mod fits;
mod graph_net;
mod heads;
mod message_passing;
mod network;
mod node_features;
mod torso;
mod transformer;

pub use conv::ConvKind;
pub(in crate::nn) use conv::pooling::{add_to_nodes, host_pool};
pub(in crate::nn) use conv::{Conv, HostConv};
pub(in crate::nn) use conv::{MessageKind, MessageRounds};
pub use edge_mlp::{EdgeMlp, EdgeMlpConfig};
pub(in crate::nn) use fits::Fits;
pub use graph_net::{BackwardPolicy, GraphNet, GraphNetConfig};
pub use heads::Symmetry;
pub(in crate::nn) use heads::{HostHeads, HostSymmetry, PairHead, host_pair_features};
pub use message_passing::MessagePassing;
pub use network::GraphNetwork;
pub(in crate::nn) use node_features::{HostFeatures, NodeFeatures};
pub use torso::{Embedded, HostEmbedded, HostTorso, Torso};
