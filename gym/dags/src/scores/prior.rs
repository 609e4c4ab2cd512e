use gfn::{Error, Result};
use libm::lgamma;
use serde::Deserialize;

use super::check_positive;

/// A prior over the structures of a network, which depends on the number of parents of each node. The prior
/// isn't normalised over acyclic graphs, because sampling doesn't need that.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum StructurePrior {
    /// The uniform prior over acyclic graphs: the term of every node is 0.
    #[default]
    Uniform,
    /// A prior of independent edges. The term of a node with `l` parents is `l log p + (n - 1 - l) log(1 -
    /// p)`, where the edge probability is `p = edges_per_node n / (n (n - 1) / 2)`.
    ///
    /// torchgfn and jax-dag-gflownet use the same p. If p is 1, torchgfn fails, and this library returns an
    /// error.
    ErdosRenyi {
        /// The expected number of edges per node, which is often 1 in the literature.
        edges_per_node: f64,
    },
    /// A penalty for edges. The term of a node with l parents is `l log beta`. If beta is below 1, each
    /// edge lowers the prior.
    EdgePenalty {
        /// The factor beta by which each edge multiplies the prior. It must be above 0.
        beta: f64,
    },
    /// The fair prior. The term of a node with l parents is `-log C(n, l)`. The weights of all parent sets of
    /// one size sum to about the same number for every size.
    ///
    /// The number n is the number of nodes, as in torchgfn and jax-dag-gflownet. A node has only n - 1
    /// possible parents, so the weights of its sets of l parents sum to (n - l) / n instead of 1.
    Fair,
}

impl StructurePrior {
    /// Returns the term of a node in a graph of `n` nodes, indexed by the number of the node's parents.
    ///
    /// ```
    /// use gfn_dags::StructurePrior;
    /// let terms = StructurePrior::EdgePenalty { beta: 0.5 }.terms(3)?;
    /// assert!((terms[2] + 2.0 * 2f64.ln()).abs() < 1e-15);
    /// assert!(StructurePrior::ErdosRenyi { edges_per_node: 1.0 }.terms(3).is_err());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] unless the edge probability is between 0 and 1 (both excluded) and beta is above 0.
    pub fn terms(self, n: usize) -> Result<Vec<f64>> {
        let nodes = n as f64;
        let p = match self {
            Self::ErdosRenyi { edges_per_node } => edges_per_node * nodes / (nodes * (nodes - 1.0) / 2.0),
            _ => 0.5,
        };
        if !(p > 0.0 && p < 1.0) {
            let expected = "a number of edges per node for which the edge probability is above 0 and below 1";
            return Err(Error::config(
                "edges_per_node",
                format!("an edge probability of {p} between {n} nodes"),
                expected,
            ));
        }
        let term = |l: f64| match self {
            Self::Uniform => 0.0,
            Self::ErdosRenyi { .. } => l * p.ln() + (nodes - 1.0 - l) * (-p).ln_1p(),
            Self::EdgePenalty { beta } => l * beta.ln(),
            Self::Fair => lgamma(nodes - l + 1.0) + lgamma(l + 1.0) - lgamma(nodes + 1.0),
        };
        if let Self::EdgePenalty { beta } = self {
            check_positive("beta", beta)?;
        }
        Ok((0..n).map(|l| term(l as f64)).collect())
    }
}
