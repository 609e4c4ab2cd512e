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

mod distances;
mod exact;
mod pareto;
mod sampled;

pub use distances::{Distances, modes_covered, modes_found};
pub use exact::{ExactFlows, ExactPolicy, PrunedDistribution, Target, TerminatingDistribution, pruned_distribution};
pub use pareto::{
    focus_accuracy, hypervolume, inverted_generational_distance, pareto_front, r2_indicator, simplex_grid,
};
pub use sampled::{
    Correlation, Estimate, LogZEstimate, ModeCount, ModeTracker, NoiseFloor, TopK, estimate_log_probs, estimate_log_z,
    eubo, importance_log_z, maximum_mean_discrepancy, wasserstein2,
};
