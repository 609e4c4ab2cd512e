//! Exactness: what a policy samples, without sampling noise where the states can be listed, and with honest bounds where not.
//!
//! | question | answer | for |
//! |---|---|---|
//! | what does this policy sample? | [`StateGraph::terminating_distribution`] | spaces of up to some millions of states |
//! | the same, of a policy that concentrates | [`pruned_distribution`] | larger spaces; says how much mass it dropped |
//! | what should it sample? | [`StateGraph::target_distribution`] | enumerable spaces |
//! | how far apart are they? | [`Distances`], [`modes_found`] | any two distributions |
//! | what would a perfect policy be? | [`ExactPolicy`], [`StateGraph::exact_flows`] | tests of objectives |
//! | what did these samples show? | [`StateGraph::empirical`] beside its [`NoiseFloor`] | samples |
//! | is log Z right? | [`estimate_log_z`], [`eubo`] | any environment |
//! | how probable are these objects? | [`estimate_log_probs`] | any environment |
//! | does probability follow the reward? | [`Correlation`] of log p(x) and log R(x) | a test set |
//! | which modes were seen, and when? | [`ModeTracker`] | training runs, samples |
//! | how far apart are two sets of points? | [`wasserstein2`], [`maximum_mean_discrepancy`] | continuous environments |
//! | how good and how different are the best? | [`TopK`] | samples |
//! | which trade-offs between objectives were found? | [`pareto_front`], [`hypervolume`], [`inverted_generational_distance`], [`r2_indicator`] | vectors of objectives |
//! | do samples lie where they were asked for? | [`focus_accuracy`] | the same, under a focus |
//!
//! Up to isomorphism a state stands for its class: a policy is pushed through one representative of each, which is right for
//! equivariant policies only, and those that aren't are refused ([`StateGraph::check_equivariance`]).

mod correlation;
mod distances;
mod empirical;
mod evaluate;
mod equivariance;
mod exact_policy;
mod flows;
mod log_probs;
mod log_z;
mod modes;
mod moves;
mod objectives;
mod order;
mod pruned;
mod state_graph;
mod target;
mod terminating;
mod top_k;
mod transport;

pub use correlation::Correlation;
pub use distances::{Distances, modes_covered, modes_found};
pub use empirical::NoiseFloor;
pub use exact_policy::ExactPolicy;
pub use flows::ExactFlows;
pub use log_probs::estimate_log_probs;
pub use log_z::{Estimate, LogZEstimate, estimate_log_z, eubo, importance_log_z};
pub use modes::{ModeCount, ModeTracker};
pub use objectives::{
    focus_accuracy, hypervolume, inverted_generational_distance, pareto_front, r2_indicator, simplex_grid,
};
pub use pruned::{PrunedDistribution, pruned_distribution};
pub use state_graph::{Child, StateGraph};
pub use target::Target;
pub use terminating::TerminatingDistribution;
pub use top_k::TopK;
pub use transport::{maximum_mean_discrepancy, wasserstein2};

pub(crate) use evaluate::{backward_log_probs, forward_policy, log_sum_exp, repeated};
pub(crate) use moves::{CHUNK, Moves};
