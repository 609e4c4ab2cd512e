//! Metrics: the distribution of a policy, exact if states can be listed, otherwise with bounds or estimates.
//!
//! | question | answer | for |
//! |---|---|---|
//! | what is the distribution of this policy? | [`StateGraph::terminating_distribution`](crate::env::StateGraph::terminating_distribution) | spaces of up to some millions of states |
//! | the same for a policy whose probability is concentrated on few states | [`pruned_distribution`] | larger spaces; reports the dropped probability |
//! | what is the target distribution? | [`StateGraph::target_distribution`](crate::env::StateGraph::target_distribution) | enumerable spaces |
//! | what are the distances between both? | [`Distances`], [`modes_found`] | any two distributions |
//! | what is the exact policy of a reward? | [`ExactPolicy`], [`StateGraph::exact_flows`](crate::env::StateGraph::exact_flows) | tests of objectives |
//! | what is the distribution of these samples? | [`StateGraph::empirical`](crate::env::StateGraph::empirical) and its [`NoiseFloor`] | samples |
//! | is log Z right? | [`estimate_log_z`], [`eubo`] | any environment |
//! | how probable are these objects? | [`estimate_log_probs`] | any environment |
//! | does probability follow the reward? | [`Correlation`] of log p(x) and log R(x) | a test set |
//! | which modes were found, and when? | [`ModeTracker`] | training runs, samples |
//! | how good and how diverse are the best samples? | [`TopK`] | samples |
//!
//! The package `gfn-judge` computes bounds instead of estimates, and judges samples.
//!
//! Up to isomorphism a state represents its class: a policy is evaluated at one representative of each class.
//! This is correct for equivariant policies only, so other policies are refused
//! ([`StateGraph::check_equivariance`](crate::env::StateGraph::check_equivariance)).

mod distances;
mod exact;
mod sampled;

pub use distances::{Distances, modes_covered, modes_found};
pub use exact::{
    ExactFlows, ExactPolicy, PrunedDistribution, Target, TerminatingDistribution, pruned_distribution,
};
pub use sampled::{
    Correlation, Cumulative, Estimate, LogZEstimate, ModeCount, ModeTracker, NoiseFloor, TopK,
    estimate_log_probs, estimate_log_z, eubo, importance_log_z, path_log_ratios, sample_objects,
    target_log_weights,
};
