//! Exact distributions, flows and targets, for environments whose states can be listed.

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
