//! Objectives whose residual vanishes where forward and backward flows agree: of whole trajectories, parts of them, single steps or
//! states.

mod augmented;
mod flow_matching;
mod subtb;
mod trajectory;
mod transition;

pub use augmented::{AugmentedDetailedBalance, AugmentedTrajectoryBalance};
pub use flow_matching::FlowMatching;
pub use subtb::{SubTrajectoryBalance, Weighting};
pub use trajectory::{
    LogPartitionVariance, RelativeLogPartitionVariance, RelativeTrajectoryBalance, TrajectoryBalance, TrustPcl,
};
pub use transition::{DetailedBalance, ModifiedDetailedBalance, NextExit, StateFlow};
