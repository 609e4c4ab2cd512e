//! Metrics that are computed from samples, for environments whose states can't be listed.

mod correlation;
mod empirical;
mod log_probs;
mod log_z;
mod modes;
mod objects;
mod top_k;

pub use correlation::Correlation;
pub use empirical::{Cumulative, NoiseFloor};
pub use log_probs::{estimate_log_probs, path_log_ratios};
pub use log_z::{Estimate, LogZEstimate, estimate_log_z, eubo, importance_log_z, target_log_weights};
pub use modes::{ModeCount, ModeTracker};
pub use objects::sample_objects;
pub use top_k::TopK;
