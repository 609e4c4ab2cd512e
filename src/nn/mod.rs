//! Networks: the parameters that are trained, the layers that estimators are built from, and the graph networks.

mod estimators;
mod graph;
mod host;
mod layers;
mod parameters;
mod sequence;

pub use estimators::{Estimators, NetworkOutput};
pub use graph::{BackwardPolicy, ConvKind, EdgeMlp, EdgeMlpConfig, GraphNet, GraphNetConfig, GraphNetwork};
pub(crate) use host::floats;
pub use host::{HostGraphNet, HostMlp};
pub use layers::{Activation, Embedding, LayerNorm, Linear, LogZ, LogitScale, Mlp, MlpConfig};
pub use parameters::{Group, Parameter, Parameters, Scope};
pub(crate) use parameters::{Restored, WeightNoise};
pub(crate) use sequence::SequenceNet;
pub use sequence::{SequenceKind, SequenceNetConfig};
