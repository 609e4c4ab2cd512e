//! Posteriors over graphs: exact ones, marginals of edges, paths and Markov blankets, and comparisons.

mod compare;
mod enumeration;
mod inclusion_exclusion;
mod marginals;
mod pairs;
mod wide;

pub use compare::{expected_shd, held_out_log_likelihoods, log_model_average, most_probable};
pub use enumeration::ExactPosterior;
pub use inclusion_exclusion::{EdgeMarginals, MAX_SUMMED_NODES};
pub use marginals::Marginals;
pub use pairs::{Detection, PairMatrix};

use gfn::env::Rows;
use gfn::{Error, Result};

use crate::DagStates;

/// Weights divided by their sum, after a check that there is one for each graph and none is negative. Without weights all are equal.
fn shares(states: &DagStates, weights: Option<&[f64]>) -> Result<Vec<f64>> {
    let n = states.len();
    let weights = weights.map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
    if weights.len() != n {
        return Err(Error::shape(
            "weights of graphs",
            [n as i64],
            [weights.len() as i64],
            "give one weight for each graph",
        ));
    }
    let sum: f64 = weights.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) || weights.iter().any(|weight| *weight < 0.0) {
        return Err(Error::config(
            "weights of graphs",
            format!("{n} weights that sum to {sum}"),
            "at least one graph, and weights of at least 0 of which one isn't",
        ));
    }
    Ok(weights.into_iter().map(|weight| weight / sum).collect())
}
