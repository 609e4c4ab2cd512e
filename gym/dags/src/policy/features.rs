use gfn::env::Rows;
use gfn::graph::GraphStates;
use gfn::policy::{Features, StateFeatures, TensorFeatures};
use tch::{Kind, Tensor};

/// The flattened adjacency matrix as features for networks on vectors. A graph has `n * n` features, one for
/// each ordered pair of nodes. A feature is 1 if the graph has an edge between these nodes, and 0 otherwise.
///
/// ```
/// use gfn::policy::{Features, StateFeatures};
/// use gfn_dags::{AdjacencyFeatures, acyclic};
/// let graphs = vec![acyclic(2, &[(0, 1)])?].into();
/// assert_eq!(AdjacencyFeatures::new(2).encode(&graphs), Features::Dense(vec![0.0, 1.0, 0.0, 0.0]));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdjacencyFeatures {
    n: usize,
}

impl AdjacencyFeatures {
    /// Creates the features of graphs with `n` nodes.
    #[must_use]
    pub fn new(n: usize) -> Self {
        Self { n }
    }
}

impl StateFeatures<GraphStates> for AdjacencyFeatures {
    fn width(&self) -> usize {
        self.n * self.n
    }

    fn encode(&self, states: &GraphStates) -> Features {
        let mut values = Vec::with_capacity(states.len() * self.width());
        // If a graph has another number of nodes, the number of features is wrong. The network then returns
        // an error.
        for graph in states.graphs() {
            let first = values.len();
            let n = graph.n_nodes();
            values.resize(first + n * n, 0.0);
            for (a, b) in graph.edges() {
                values[first + a as usize * n + b as usize] = 1.0;
            }
        }
        Features::Dense(values)
    }

    fn encode_tensor(&self, states: &Tensor) -> Option<TensorFeatures> {
        let is_valid = states.size()[1] == self.width() as i64;
        is_valid.then(|| TensorFeatures::Dense(states.to_kind(Kind::Float)))
    }
}
