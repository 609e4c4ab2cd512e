use gfn::env::Rows;
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};

use super::pairs::edge_set;
use super::shares;
use crate::{Dag, DagStates, LocalScore};

/// The `k` most probable graphs: a row of each and its probability, the most probable first. Equal rows count as one graph.
///
/// ```
/// use gfn_dags::{DagStates, most_probable};
/// let samples = DagStates::from_edges(2, [[].as_slice(), &[(0, 1)], &[(0, 1)]])?;
/// let top = most_probable(&samples, None, 1)?;
/// assert_eq!(top[0].0, 1);
/// assert!((top[0].1 - 2.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// As for [`Marginals::of`](super::Marginals::of).
pub fn most_probable(states: &DagStates, weights: Option<&[f64]>, k: usize) -> Result<Vec<(usize, f64)>> {
    let shares = shares(states, weights)?;
    let grouping = states.group();
    let mut probs = vec![0.0; grouping.first.len()];
    grouping.of.iter().zip(shares).for_each(|(&group, share)| probs[group] += share);
    let mut out: Vec<(usize, f64)> = grouping.first.into_iter().zip(probs).collect();
    // Equal probabilities in the order of the rows, so that the list is always the same.
    out.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    out.truncate(k);
    Ok(out)
}

/// The expected structural Hamming distance to known edges: pairs of nodes whose edge is missing, too many, or the wrong way round,
/// each of which counts once (as in jax-dag-gflownet and torchgfn).
///
/// ```
/// use gfn_dags::{DagStates, expected_shd};
/// let dags = DagStates::from_edges(3, [[(0, 1)].as_slice(), &[(1, 0), (1, 2)]])?;
/// assert_eq!(expected_shd(&dags, None, &[(0, 1)])?, 1.0);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// As for [`Marginals::of`](super::Marginals::of); [`Error::OutOfRange`] for an edge of other nodes.
pub fn expected_shd(states: &DagStates, weights: Option<&[f64]>, truth: &[(u32, u32)]) -> Result<f64> {
    let n = states.n_nodes();
    let known = edge_set(n, truth)?;
    let shares = shares(states, weights)?;
    let distance = |dag: Dag<'_>| {
        let wrong = |a: usize, b: usize| dag.has_edge(a, b) != known[a * n + b];
        (0..n).flat_map(|b| (0..b).map(move |a| (a, b))).filter(|&(a, b)| wrong(a, b) || wrong(b, a)).count() as f64
    };
    Ok(states.dags().zip(shares).map(|(dag, share)| share * distance(dag)).sum())
}

/// log p(held-out data | training data, graph) of each graph: the score of all data less that of the training data alone.
///
/// For a Bayesian score such as [`Bge`](crate::Bge) and [`Bde`](crate::Bde), whose differences are
/// predictive probabilities. Both must have the same prior, whose settings don't depend on the number of rows.
///
/// # Errors
/// [`Error::Shape`] unless graphs and scores are of the same nodes.
pub fn held_out_log_likelihoods(
    states: &DagStates,
    of_training: &dyn LocalScore,
    of_all: &dyn LocalScore,
) -> Result<Vec<f64>> {
    let n = states.n_nodes();
    for score in [of_training, of_all] {
        if score.n_nodes() != n {
            return Err(Error::shape(
                "a score of held-out data",
                [n as i64],
                [score.n_nodes() as i64],
                "give graphs with one node for each variable of the data",
            ));
        }
    }
    Ok(states.dags().map(|dag| of_all.graph_score(&dag) - of_training.graph_score(&dag)).collect())
}

/// The logarithm of a mean of likelihoods, `log sum_G w(G) exp(l(G))` over weights that are divided by their sum: the model average of
/// held-out data.
///
/// # Errors
/// As for [`Marginals::of`](super::Marginals::of); [`Error::Shape`] unless there is a log-likelihood for each graph.
pub fn log_model_average(states: &DagStates, weights: Option<&[f64]>, log_likelihoods: &[f64]) -> Result<f64> {
    let shares = shares(states, weights)?;
    if log_likelihoods.len() != shares.len() {
        return Err(Error::shape(
            "log-likelihoods",
            [shares.len() as i64],
            [log_likelihoods.len() as i64],
            "give one log-likelihood for each graph",
        ));
    }
    if let Some(row) = log_likelihoods.iter().position(|l| l.is_nan()) {
        let remedy = "give the log-likelihood of each graph";
        return Err(Error::non_finite("log-likelihood", row, f64::NAN, remedy));
    }
    // A graph of weight 0 is left out, of the maximum that the others are scaled by as well.
    let terms = shares.iter().zip(log_likelihoods).filter(|(share, _)| **share > 0.0);
    Ok(log_sum_exp(terms.map(|(share, l)| share.ln() + l)))
}
