//! Judges policies of [`gfn`], and samples from any program. Some results are bounds, which hold without
//! assumptions. Other results are estimates, and their documentation states the assumptions.
//!
//! | question | answer | needs |
//! |---|---|---|
//! | what is known about a policy whose states can't be listed? | [`certify`], a [`Certificate`] | an environment of one instance |
//! | how far are samples of any library from the target? | [`Judgement`] | the target's probabilities |
//! | how probable is an object, and how certain is that? | [`log_probs`] | any environment |
//! | do learned and target masses agree within small subsets? | [`subset_distance`], [`FlowConsistency`] | log-probabilities and log-rewards |
//! | what is a lower bound on a mean with a heavy tail? | [`log_mean_at_least`] | independent draws of 0 or more |
//! | what is a lower bound on an event's probability? | [`probability_at_least`] | independent draws |
//!
//! [`certify`] samples a policy, and draws backward trajectories from objects that the policy, random
//! trajectories and local search found. It returns bounds on log Z and on the total variation between policy
//! and target, and an estimate of flow consistency. The task `certificates` of `reproduce` compares these
//! numbers with exact values.

mod certificate;
mod certify;
mod consistency;
mod found_objects;
mod interval;
mod judgement;
mod log_prob;

pub use certificate::{Certificate, Finding, Limit, LogZBounds, Probe, ProbeSource, TvBounds};
pub use certify::{Budget, certify};
pub use consistency::{FlowConsistency, subset_distance};
pub use interval::{Interval, log_mean_at_least, probability_at_least};
pub use judgement::{Judgement, Missing};
pub use log_prob::{LogProb, log_probs};
