//! Networks: the parameters that are trained, and the layers that estimators are built from.

mod layers;
mod parameters;
mod scope;

pub use layers::{Activation, Embedding, LayerNorm, Linear, Mlp, MlpConfig};
pub use parameters::{Group, Parameter, Parameters};
pub use scope::Scope;
