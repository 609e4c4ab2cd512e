//! The line: trajectories take a fixed number of steps of any length along the real line. The reward is a
//! mixture of Gaussians.

mod dist;
mod env;
mod policy;
mod reward;

pub use dist::{LineDist, NormalMixtures};
pub use env::Line;
pub use policy::{LinePolicy, LinePolicyConfig, LineUniform};
pub use reward::LineReward;
