//! The unit box: points of `[0, 1]^n`, reached from the origin in steps that never decrease a coordinate.

mod beta;
mod chart;
mod dist;
mod env;
mod heads;
mod histogram;
mod lanes;
mod log_gamma;
mod policy;
mod reward;

pub use dist::{BetaMixtures, BoxDist, Coupling};
pub use env::{BoxEnv, Geometry};
pub use histogram::GridHistogram;
pub use policy::{BoxPolicy, BoxPolicyConfig, BoxUniform};
pub use reward::BoxReward;
