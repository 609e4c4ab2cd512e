//! Companions that are updated along with training: the moving average, the target network, novelty.

mod averaged;
mod distillation;
mod intrinsic;
mod target_network;

pub use averaged::AverageFor;
pub(in crate::train) use averaged::for_sampling;
pub use distillation::{DistillationConfig, RandomDistillation};
pub(in crate::train) use distillation::{load_network_state, network_state};
pub(in crate::train) use intrinsic::Intrinsic;
pub use intrinsic::{IntrinsicConfig, Novelty};
pub(in crate::train) use target_network::Lagged;
