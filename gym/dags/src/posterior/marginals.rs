use gfn::Result;
use gfn::env::Rows;

use super::{PairMatrix, shares};
use crate::DagStates;

/// Marginals of a distribution over graphs, for each pair of nodes.
///
/// ```
/// use gfn_dags::{DagStates, Marginals};
/// let dags = DagStates::from_edges(3, [[(0, 2), (1, 2)].as_slice(), &[(0, 1), (1, 2)]])?;
/// let marginals = Marginals::of(&dags, None)?;
/// assert_eq!((marginals.edge.get(0, 2), marginals.path.get(0, 2)), (0.5, 1.0));
/// // Parents of one child are in each other's blanket.
/// assert_eq!(marginals.markov_blanket.get(1, 0), 1.0);
/// assert_eq!(marginals.expected_edges, 2.0);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Marginals {
    /// The probability of an edge from source to target.
    pub edge: PairMatrix,
    /// The probability of a directed path from source to target.
    pub path: PairMatrix,
    /// The probability that the first is in the Markov blanket of the second, and the second in that of the first.
    pub markov_blanket: PairMatrix,
    /// The expected number of edges.
    pub expected_edges: f64,
}

impl Marginals {
    /// The marginals of graphs with these weights, or of samples, which all weigh the same.
    ///
    /// # Errors
    /// [`Error::Shape`](gfn::Error::Shape) unless there is one weight for each graph; [`Error::Config`](gfn::Error::Config) for no graph,
    /// and for weights below 0 or of sum 0.
    pub fn of(states: &DagStates, weights: Option<&[f64]>) -> Result<Self> {
        let n = states.n_nodes();
        let shares = shares(states, weights)?;
        let mut out = Self {
            edge: PairMatrix::zeros(n),
            path: PairMatrix::zeros(n),
            markov_blanket: PairMatrix::zeros(n),
            expected_edges: 0.0,
        };
        // Samples repeat: each distinct graph is looked at once.
        let grouping = states.group();
        let mut of_group = vec![0.0; grouping.first.len()];
        grouping.of.iter().zip(shares).for_each(|(&group, share)| of_group[group] += share);
        for (&row, share) in grouping.first.iter().zip(of_group) {
            let dag = states.dag(row);
            for b in 0..n {
                dag.parents(b).iter().for_each(|a| out.edge.add(a, b, share));
                (0..n).filter(|&a| dag.has_path(a, b)).for_each(|a| out.path.add(a, b, share));
                dag.markov_blanket(b).iter().for_each(|a| out.markov_blanket.add(a, b, share));
            }
            out.expected_edges += share * dag.n_edges() as f64;
        }
        Ok(out)
    }
}
