//! Metrics from samples, if states can't be listed.

mod correlation;
mod empirical;
mod log_probs;
mod log_z;
mod modes;
mod objects;
mod top_k;

pub use correlation::Correlation;
pub(super) use empirical::Cumulative;
pub use empirical::NoiseFloor;
pub use log_probs::estimate_log_probs;
pub(super) use log_probs::{PathRatios, path_ratios};
pub use log_z::{Estimate, LogZEstimate, estimate_log_z, eubo, importance_log_z};
pub(super) use log_z::{log_weights, target_log_weights};
pub use modes::{ModeCount, ModeTracker};
pub(super) use objects::batches;
pub use objects::sample_objects;
pub use top_k::TopK;
