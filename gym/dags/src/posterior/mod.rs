//! Posteriors over graphs: exact posteriors, marginals of edges, paths and Markov blankets, and comparisons.

mod compare;
mod cpdag;
mod enumeration;
mod inclusion_exclusion;
mod known_edges;
mod pairs;
mod sinks;
mod wide;

pub use compare::{Marginals, held_out_log_likelihoods, log_model_average, most_probable};
pub use cpdag::{cpdag, cpdags};
pub use enumeration::ExactPosterior;
pub use inclusion_exclusion::{EdgeMarginals, MAX_SUMMED_NODES};
pub use known_edges::EdgeComparison;
pub use pairs::{Detection, PairMatrix};
