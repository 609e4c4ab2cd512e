//! How good a policy of [`gfn`] or a set of samples is, by bounds that hold and by estimates that say what they suppose.
//!
//! | question | answer | needs |
//! |---|---|---|
//! | what can be said of a policy whose states can't be listed? | [`certify`], a [`Certificate`] | an environment of one instance |
//! | how far are samples of any library from the target? | [`Judgement`] | the target's probabilities |
//! | how probable is an object, and how certain is that? | [`log_probs`] | any environment |
//! | are learned and target masses alike among few objects? | [`subset_distance`], [`FlowConsistency`] | log-probabilities and log-rewards |
//! | what is the mean of draws with a heavy tail at least? | [`log_mean_at_least`] | independent draws of 0 or more |
//! | what is the probability of an event at least? | [`probability_at_least`] | independent draws |
//!
//! [`certify`] samples a policy, draws backward trajectories from objects of several sources, and puts together bounds on log Z
//! and on the total variation to the target, and an estimate of flow consistency. The task `certificates` of `reproduce`
//! compares each of them with the truth of spaces whose states are listed.

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
