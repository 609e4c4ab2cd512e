//! Networks: the parameters that are trained, the layers that estimators are built from, and the graph networks.

mod activation;
mod attention_tables;
mod average;
mod causal;
mod conv;
mod edge_mlp;
mod frozen;
mod graph_net;
mod heads;

mod layers;
mod log_z;
mod logit_scale;
mod node_values;
mod noise;
mod pairs;
mod parameters;
mod recurrent;
mod scope;
mod sequence;
mod torso;
mod transformer;

pub use activation::Activation;
pub use average::Average;
pub use conv::ConvKind;
pub use edge_mlp::{EdgeMlp, EdgeMlpConfig};
pub use frozen::FrozenMlp;
pub(crate) use frozen::floats;
pub use graph_net::{BackwardPolicy, GraphNet, GraphNetConfig};
pub use layers::{Embedding, LayerNorm, Linear, Mlp, MlpConfig};
pub use log_z::LogZ;
pub use logit_scale::LogitScale;
pub(crate) use noise::WeightNoise;
pub(crate) use parameters::Changes;
pub use parameters::{Group, Parameter, Parameters};
pub use scope::Scope;
pub(crate) use sequence::SequenceNet;
pub use sequence::{SequenceKind, SequenceNetConfig};
