//! Posteriors over graphs: exact posteriors, marginals of edges, paths and Markov blankets, and comparisons.

mod compare;
mod enumeration;
mod inclusion_exclusion;
mod pairs;
mod sinks;
mod wide;

pub use compare::{Marginals, expected_shd, held_out_log_likelihoods, log_model_average, most_probable};
pub use enumeration::ExactPosterior;
pub use inclusion_exclusion::{EdgeMarginals, MAX_SUMMED_NODES};
pub use pairs::{Detection, PairMatrix};
