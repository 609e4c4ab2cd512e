//! Certificates: what can be said of a policy where its states can't be listed, at which confidence, and what can't.
//!
//! [`certify`] samples a policy, goes back from objects of several sources, and puts together bounds on log Z, on the total variation to
//! the target, and flow consistency. `reproduce certify` holds each of its intervals against the truth of spaces whose states are listed.

mod certificate;
mod certify;
mod consistency;
mod interval;
mod judge;
mod log_prob;

pub use certificate::{Certificate, Finding, LogZBounds, Probe, ProbeSource, TvBounds, UpperBound};
pub use certify::{Budget, certify};
pub use consistency::{FlowConsistency, subset_distance};
pub use interval::Interval;
pub use judge::{Judgement, Missing};
pub use log_prob::{LogProb, log_probs};
