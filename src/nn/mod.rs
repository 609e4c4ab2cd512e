//! Neural networks: trained parameters, layers, estimators, and networks over graphs and sequences.

mod estimators;
mod graph;
mod host;
mod layers;
mod parameters;
mod sequence;
mod torch_script;

pub use estimators::{Estimators, EstimatorsConfig, NetworkOutput};
pub(crate) use graph::reduced_states;
pub use graph::{
    BackwardPolicy, ConvKind, EdgeMlp, EdgeMlpConfig, Embeddings, Engine, GraphNet, GraphNetConfig,
    GraphNetwork, GraphNorm, JumpingKnowledge, MessagePassing, NormKind, SymmetryInput, TensorTorso, Torso,
};
pub(crate) use host::LayerInputs;
pub use host::{HostLinear, HostMlp};
pub use layers::{Activation, Embedding, LayerNorm, Linear, Mlp, MlpConfig};
pub use parameters::{Group, Parameter, Parameters, Scope};
pub(crate) use parameters::{ParameterBackup, UNSET_LOG_Z, WeightNoise};
pub(crate) use sequence::SequenceNet;
pub use sequence::{SequenceKind, SequenceNetConfig};
pub use torch_script::load_torch_script;
