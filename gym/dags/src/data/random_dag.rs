use gfn::graph::GraphState;
use gfn::{Error, Result, Rng};

use crate::env::{acyclic, check_size};

/// A distribution of random acyclic graphs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum GraphLaw {
    /// Erdos-Renyi graphs. Each pair of nodes has an edge with the same probability. The edge goes from the
    /// earlier node to the later node in a random order of the nodes.
    ErdosRenyi {
        /// The expected number of edges, at most `n (n - 1) / 2`.
        edges: f64,
    },
    /// Graphs by preferential attachment (Barabasi and Albert 1999). The nodes are visited in a random order,
    /// and each gets edges from earlier nodes. An earlier node is sampled with a probability that is
    /// proportional to 1 + its degree. A few nodes end up with many children.
    ScaleFree {
        /// The number of edges into each node. If there are fewer earlier nodes, the node gets an edge from
        /// each of them.
        edges_per_node: usize,
    },
}

impl GraphLaw {
    /// Samples a graph of `n` nodes from this distribution.
    ///
    /// ```
    /// use gfn::Rng;
    /// use gfn_dags::GraphLaw;
    /// let law = GraphLaw::ScaleFree { edges_per_node: 2 };
    /// assert_eq!(law.draw(10, &mut Rng::seeded(0))?.n_edges(), 1 + 8 * 2);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for 0 nodes, for more than 200 nodes, and for more edges than there are pairs of
    /// nodes.
    pub fn draw(self, n: usize, rng: &mut Rng) -> Result<GraphState> {
        let order = permutation(check_size(n)?, rng);
        let mut edges: Vec<(u32, u32)> = Vec::new();
        match self {
            Self::ErdosRenyi { edges: expected } => {
                let pairs = (n * (n - 1)) as f64 / 2.0;
                if !(0.0..=pairs).contains(&expected) {
                    let got = format!("{expected} between {n} nodes");
                    return Err(Error::config("edges", got, "from 0 to n (n - 1) / 2 edges"));
                }
                for (i, j) in (0..n).flat_map(|j| (0..j).map(move |i| (i, j))) {
                    if rng.uniform() * pairs < expected {
                        edges.push((order[i], order[j]));
                    }
                }
            }
            Self::ScaleFree { edges_per_node } => {
                let mut degree = vec![0usize; n];
                for j in 1..n {
                    let mut weights: Vec<f64> =
                        degree[..j].iter().map(|&degree| degree as f64 + 1.0).collect();
                    for _ in 0..edges_per_node.min(j) {
                        let i = pick(&weights, rng);
                        weights[i] = 0.0;
                        edges.push((order[i], order[j]));
                        degree[i] += 1;
                        degree[j] += 1;
                    }
                }
            }
        }
        acyclic(n, &edges)
    }
}

fn permutation(n: usize, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        order.swap(i, rng.below(i + 1));
    }
    order
}

/// Samples an index of `weights`. The probability of an index is proportional to its weight.
pub(super) fn pick(weights: &[f64], rng: &mut Rng) -> usize {
    let mut rest = rng.uniform() * weights.iter().sum::<f64>();
    let mut last = 0;
    for (i, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        last = i;
        if rest < weight {
            return i;
        }
        rest -= weight;
    }
    // Rounding may leave `rest` above 0 after the last weight was subtracted. The last index with a positive
    // weight is returned then.
    last
}
