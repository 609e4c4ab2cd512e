//! Networks that evaluate a [`GraphBatch`](crate::graph::GraphBatch). A torso of message passing or attention
//! computes embeddings, from which a head per action type computes logits.

mod config;
mod conv;
mod edge_mlp;
mod engine;
mod expected_graphs;
mod features;
mod graph_net;
mod heads;
mod message_passing;
mod network;
mod torso;
mod transformer;

pub use config::{BackwardPolicy, GraphNetConfig};
pub use conv::{ConvKind, GraphNorm, NormKind};
pub use edge_mlp::{EdgeMlp, EdgeMlpConfig};
pub use engine::Engine;
pub use graph_net::GraphNet;
pub use heads::SymmetryInput;
pub use message_passing::{JumpingKnowledge, MessagePassing};
pub use network::GraphNetwork;
pub(crate) use network::reduced_states;
pub use torso::{Embeddings, TensorTorso, Torso};
