//! The comparison of a distribution over graphs with known edges.

use gfn::graph::{GraphState, GraphStates};
use gfn::{Error, Result};

use super::compare::{same_nodes, shares};
use super::pairs::edge_set;
use super::{Detection, PairMatrix, most_probable};

/// Distances of a distribution over graphs from known edges.
///
/// The graphs may be acyclic graphs, or the [`cpdags`](crate::cpdags) of acyclic graphs together with the
/// edges of a CPDAG. An undirected edge of a CPDAG consists of two edges, one in each direction. Edge
/// probabilities, F1 and both areas treat the two as different edges. The structural Hamming distance counts
/// each pair of nodes once, whatever differs there, as in jax-dag-gflownet and torchgfn.
///
/// ```
/// use gfn_dags::{EdgeComparison, acyclic, cpdag, cpdags};
/// let graphs = vec![acyclic(3, &[(0, 1), (1, 2)])?, acyclic(3, &[(1, 0), (1, 2)])?].into();
/// let found = EdgeComparison::new(&graphs, None, &[(0, 1), (1, 2)])?;
/// assert_eq!((found.expected_shd, found.expected_f1, found.brier), (0.5, 0.75, 0.5 / 6.0));
/// // Both graphs are in the class of the known edges.
/// let class: Vec<_> = cpdag(&acyclic(3, &[(0, 1), (1, 2)])?)?.edges().collect();
/// assert_eq!(EdgeComparison::new(&cpdags(&graphs)?, None, &class)?.expected_shd, 0.0);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct EdgeComparison {
    /// The expected structural Hamming distance: the number of pairs of nodes whose edge is missing,
    /// superfluous or in another direction.
    pub expected_shd: f64,
    /// The expected F1 score of a graph's edges, from 0 to 1: twice the number of known edges in the graph
    /// divided by the sum of both numbers of edges. It is 1 if there are no edges in either.
    pub expected_f1: f64,
    /// The Brier score: the mean over ordered pairs of nodes of the squared difference between the
    /// probability of an edge, and 1 for known edges or 0 for other pairs. Some papers report the sum, which
    /// is n (n - 1) times as large.
    pub brier: f64,
    /// The areas under the curves of the edge probabilities; `None` if no pair or every pair is an edge.
    pub detection: Option<Detection>,
}

impl EdgeComparison {
    /// Compares weighted graphs with the edges `truth`. Without weights, all graphs count equally.
    ///
    /// # Errors
    /// Errors of [`most_probable`]; [`Error::Shape`] for graphs with different numbers of nodes;
    /// [`Error::OutOfRange`] for an edge with an unknown node.
    pub fn new(states: &GraphStates, weights: Option<&[f64]>, truth: &[(u32, u32)]) -> Result<Self> {
        let probs = edge_probabilities(states, weights)?;
        let n = probs.n_nodes();
        let known = edge_set(n, truth)?;
        let n_known = known.iter().filter(|edge| **edge).count();
        let f1 = |graph: &GraphState| {
            let hits = graph.edges().filter(|&(a, b)| known[a as usize * n + b as usize]).count();
            let edges = graph.n_edges() + n_known;
            if edges == 0 { 1.0 } else { 2.0 * hits as f64 / edges as f64 }
        };
        let distance = |graph: &GraphState| {
            let wrong = |a: usize, b: usize| graph.has_edge(a as u32, b as u32) != known[a * n + b];
            let pairs = (0..n).flat_map(|b| (0..b).map(move |a| (a, b)));
            pairs.filter(|&(a, b)| wrong(a, b) || wrong(b, a)).count() as f64
        };
        let shares = shares(states, weights)?;
        let graphs = || states.graphs().iter().zip(&shares);
        Ok(Self {
            expected_shd: graphs().map(|(graph, share)| share * distance(graph)).sum(),
            expected_f1: graphs().map(|(graph, share)| share * f1(graph)).sum(),
            brier: probs.brier(truth)?,
            detection: match probs.detection(truth) {
                Err(Error::Config { .. }) => None,
                found => Some(found?),
            },
        })
    }
}

/// Returns the probability of each edge. The graphs may have cycles.
fn edge_probabilities(states: &GraphStates, weights: Option<&[f64]>) -> Result<PairMatrix> {
    let distinct = most_probable(states, weights, usize::MAX)?;
    let n = states.graphs()[distinct[0].0].n_nodes();
    let mut out = PairMatrix::zeros(n);
    for (row, share) in distinct {
        for (a, b) in same_nodes(&states.graphs()[row], n)?.edges() {
            out.add(a as usize, b as usize, share);
        }
    }
    Ok(out)
}
