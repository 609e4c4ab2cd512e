//! What is known exactly where the states can be listed: distributions, flows and targets.

mod equivariance;
mod evaluate;
mod flows;
mod policy;
mod pruned;
mod target;
mod terminating;

pub use flows::ExactFlows;
pub use policy::ExactPolicy;
pub use pruned::{PrunedDistribution, pruned_distribution};
pub use target::Target;
pub use terminating::TerminatingDistribution;
