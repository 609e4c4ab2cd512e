use gfn::env::Rows;
use gfn::policy::{Features, StateFeatures};

use crate::DagStates;

/// The adjacency matrix, row by row, for networks that take vectors: `n * n` numbers, 1 where there is an edge.
///
/// ```
/// use gfn::policy::{Features, StateFeatures};
/// use gfn_dags::{AdjacencyFeatures, DagStates};
/// let dags = DagStates::from_edges(2, [[(0, 1)].as_slice()])?;
/// assert_eq!(AdjacencyFeatures::new(2).encode(&dags), Features::Dense(vec![0.0, 1.0, 0.0, 0.0]));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdjacencyFeatures {
    n: usize,
}

impl AdjacencyFeatures {
    /// Of graphs of `n` nodes.
    #[must_use]
    pub fn new(n: usize) -> Self {
        Self { n }
    }
}

impl StateFeatures<DagStates> for AdjacencyFeatures {
    fn width(&self) -> usize {
        self.n * self.n
    }

    fn encode(&self, states: &DagStates) -> Features {
        Features::Dense(adjacency(states))
    }
}

/// The adjacency matrices of all graphs, row by row.
pub(super) fn adjacency(states: &DagStates) -> Vec<f32> {
    let n = states.n_nodes();
    let mut values = vec![0.0; states.len() * n * n];
    for (dag, matrix) in states.dags().zip(values.chunks_exact_mut((n * n).max(1))) {
        dag.edges().for_each(|(a, b)| matrix[a as usize * n + b as usize] = 1.0);
    }
    values
}
