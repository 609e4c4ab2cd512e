//! Comparison of distributions over graphs: probabilities of edges and paths, and distances from known
//! edges.

use gfn::env::Rows;
use gfn::graph::{GraphState, GraphStates};
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};

use super::PairMatrix;
use crate::{Ancestry, LocalScore};

/// The marginals of a distribution over graphs: for each pair of nodes, the probability that a relation
/// holds between them.
///
/// ```
/// use gfn_dags::{Marginals, acyclic};
/// let graphs = vec![acyclic(3, &[(0, 2), (1, 2)])?, acyclic(3, &[(0, 1), (1, 2)])?].into();
/// let marginals = Marginals::from_graphs(&graphs, None)?;
/// assert_eq!((marginals.edge.get(0, 2), marginals.path.get(0, 2)), (0.5, 1.0));
/// // Two nodes with a common child are in each other's Markov blanket.
/// assert_eq!(marginals.markov_blanket.get(1, 0), 1.0);
/// assert_eq!(marginals.expected_edges, 2.0);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Marginals {
    /// The probability of an edge from the first node of a pair to the second.
    pub edge: PairMatrix,
    /// The probability of a directed path from the first node of a pair to the second.
    pub path: PairMatrix,
    /// The probability that each of two nodes is in the Markov blanket of the other. This matrix is
    /// symmetric.
    pub markov_blanket: PairMatrix,
    /// The expected number of edges of a graph.
    pub expected_edges: f64,
}

impl Marginals {
    /// Computes the marginals of graphs with the given weights. Without weights, all graphs (for example,
    /// samples) count equally.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one weight for each graph, and all graphs have the same number of
    /// nodes; [`Error::Config`] for an empty list of graphs, and for weights that are negative or sum to 0;
    /// [`Error::Contract`] for a graph with a cycle.
    pub fn from_graphs(states: &GraphStates, weights: Option<&[f64]>) -> Result<Self> {
        // Samples repeat, so equal graphs are evaluated only once.
        let distinct = most_probable(states, weights, usize::MAX)?;
        let n = states.graphs()[distinct[0].0].n_nodes();
        let zeros = PairMatrix::zeros(n);
        let edge = zeros.clone();
        let path = zeros.clone();
        let markov_blanket = zeros;
        let mut out = Self { edge, path, markov_blanket, expected_edges: 0.0 };
        for (row, share) in distinct {
            let graph = same_nodes(&states.graphs()[row], n)?;
            let ancestry = Ancestry::from_graph(graph)?;
            for b in 0..n {
                for a in ancestry.parents(b).iter() {
                    out.edge.add(a, b, share);
                }
                for a in (0..n).filter(|&a| ancestry.has_path(a, b)) {
                    out.path.add(a, b, share);
                }
                for a in ancestry.markov_blanket(b).iter() {
                    out.markov_blanket.add(a, b, share);
                }
            }
            out.expected_edges += share * graph.n_edges() as f64;
        }
        Ok(out)
    }
}

pub(super) fn same_nodes(graph: &GraphState, n: usize) -> Result<&GraphState> {
    let remedy = "give graphs with the same nodes";
    let other = || Error::shape("graphs of one distribution", [n as i64], [graph.n_nodes() as i64], remedy);
    (graph.n_nodes() == n).then_some(graph).ok_or_else(other)
}

/// Returns the weights divided by their sum, or equal shares if `weights` is `None`. Returns an error unless
/// there is one weight for each graph, no weight is negative, and their sum is above 0.
pub(super) fn shares(states: &GraphStates, weights: Option<&[f64]>) -> Result<Vec<f64>> {
    let n = states.len();
    let weights = weights.map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
    if weights.len() != n {
        let remedy = "give one weight for each graph";
        return Err(Error::shape("weights of graphs", [n as i64], [weights.len() as i64], remedy));
    }
    let sum: f64 = weights.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) || weights.iter().any(|weight| *weight < 0.0) {
        let expected = "at least one graph, and weights of at least 0 of which at least one is positive";
        return Err(Error::config("weights of graphs", format!("{n} weights that sum to {sum}"), expected));
    }
    Ok(weights.into_iter().map(|weight| weight / sum).collect())
}

/// Returns the `k` most probable graphs, with the most probable first. Each entry has an index at which
/// `states` holds the graph, and the graph's probability. Equal graphs count as one.
///
/// ```
/// use gfn_dags::{acyclic, most_probable};
/// let samples = vec![acyclic(2, &[])?, acyclic(2, &[(0, 1)])?, acyclic(2, &[(0, 1)])?].into();
/// let top = most_probable(&samples, None, 1)?;
/// assert_eq!(top[0].0, 1);
/// assert!((top[0].1 - 2.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] unless there is one weight for each graph; [`Error::Config`] for an empty list of
/// graphs, and for weights that are negative or sum to 0.
pub fn most_probable(states: &GraphStates, weights: Option<&[f64]>, k: usize) -> Result<Vec<(usize, f64)>> {
    let shares = shares(states, weights)?;
    let grouping = states.group();
    let mut probs = vec![0.0; grouping.first.len()];
    for (&group, share) in grouping.group_of.iter().zip(shares) {
        probs[group] += share;
    }
    let mut out: Vec<(usize, f64)> = grouping.first.into_iter().zip(probs).collect();
    // Graphs of equal probability are sorted by their index in `states`, so that the result is deterministic.
    out.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    out.truncate(k);
    Ok(out)
}

/// Computes log p(held-out data | training data, graph) for each graph. This is the score of all data minus
/// the score of the training data.
///
/// Use this function with a Bayesian score such as [`Bge`](crate::Bge) or [`Bde`](crate::Bde), because only
/// differences of Bayesian scores are predictive probabilities. Both scores must have the same prior and
/// the same settings, which must not depend on the number of rows.
///
/// # Errors
/// Errors of [`LocalScore::graph_score`].
pub fn held_out_log_likelihoods(
    states: &GraphStates,
    of_training: &dyn LocalScore,
    of_all: &dyn LocalScore,
) -> Result<Vec<f64>> {
    states
        .graphs()
        .iter()
        .map(|graph| Ok(of_all.graph_score(graph)? - of_training.graph_score(graph)?))
        .collect()
}

/// Computes the log-likelihood of held-out data under the model average. This is the logarithm of the
/// weighted mean of the graphs' likelihoods: `log sum_G w(G) exp(l(G))`, with weights w that are divided by
/// their sum.
///
/// # Errors
/// Errors of [`most_probable`]; [`Error::Shape`] unless there is one log-likelihood for each graph;
/// [`Error::NonFinite`] for a log-likelihood that is NaN.
pub fn log_model_average(
    states: &GraphStates,
    weights: Option<&[f64]>,
    log_likelihoods: &[f64],
) -> Result<f64> {
    let shares = shares(states, weights)?;
    let n = shares.len();
    let got = log_likelihoods.len();
    if n != got {
        let remedy = "give one log-likelihood for each graph";
        return Err(Error::shape("log-likelihoods", [n as i64], [got as i64], remedy));
    }
    if let Some(row) = log_likelihoods.iter().position(|l| l.is_nan()) {
        let remedy = "give the log-likelihood of each graph";
        return Err(Error::non_finite("log-likelihood", row, f64::NAN, remedy));
    }
    // Graphs of weight 0 are dropped first, so that they can't determine the maximum that `log_sum_exp`
    // subtracts.
    let terms = shares.iter().zip(log_likelihoods).filter(|(share, _)| **share > 0.0);
    Ok(log_sum_exp(terms.map(|(share, l)| share.ln() + l)))
}
