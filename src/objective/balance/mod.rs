//! Balance objectives. Their residuals vanish if forward and backward flows are equal: along whole
//! trajectories, along parts of trajectories, along transitions, or in states.

mod augmented;
mod flow_matching;
mod subtb;
mod trajectory;
mod transition;

pub use augmented::{AugmentedDetailedBalance, AugmentedTrajectoryBalance};
pub use flow_matching::FlowMatching;
pub use subtb::{SubTrajectoryBalance, Weighting};
pub use trajectory::{
    LogPartitionDeviation, LogPartitionVariance, RelativeLogPartitionVariance, RelativeTrajectoryBalance,
    TrajectoryBalance, TrustPcl,
};
pub use transition::{DetailedBalance, ModifiedDetailedBalance, NextExit, StateFlow};
