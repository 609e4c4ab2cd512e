//! Certificates: bounds and estimates of a policy whose states can't be listed, and the reasons why some are
//! missing.
//!
//! [`certify`] samples a policy, goes back from objects of several sources, and puts together bounds on log Z
//! and on the total variation to the target, and an estimate of flow consistency. `reproduce certificates`
//! compares each of them with the truth of spaces whose states are listed.

mod certificate;
mod certify;
mod consistency;
mod found_objects;
mod interval;
mod judge;
mod log_prob;

pub use certificate::{Certificate, Finding, Limit, LogZBounds, Probe, ProbeSource, TvBounds};
pub use certify::{Budget, certify};
pub use consistency::{FlowConsistency, subset_distance};
pub use interval::Interval;
pub use judge::{Judgement, Missing};
pub use log_prob::{LogProb, log_probs};
