//! Scores of graphs that are sums over nodes. The term of a node measures how well the node's parents
//! explain its data.
//!
//! | score | data | interventions | equal for Markov-equivalent graphs |
//! |---|---|---|---|
//! | [`Bge`] | continuous, linear Gaussian | yes | yes, of observational data |
//! | [`LinearGaussianBic`] | continuous, linear Gaussian | yes | yes, of observational data |
//! | [`Bde`] | discrete | yes | yes, of observational data |

mod bde;
mod bge;
mod cache;
mod linear_gaussian;
mod prior;
mod scatter;

pub use bde::{Bde, BdeConfig, CellPrior};
pub use bge::{Bge, BgeConfig};
pub use cache::CachedScores;
use gfn::{Error, Result};
pub use linear_gaussian::LinearGaussianBic;
pub use prior::StructurePrior;

use gfn::graph::GraphState;

use crate::NodeSet;
use crate::env::parent_sets;
use crate::reward::check_nodes;

/// A score of graphs that is a sum over nodes. The term of a node is a logarithm that measures how well the
/// node's parents explain the data of the node.
///
/// Implement this trait for a custom score. [`CachedScores`] caches its results.
pub trait LocalScore: Send + Sync {
    /// Returns the number of nodes of the graphs that this score applies to.
    fn n_nodes(&self) -> usize;

    /// Computes the term of a node with these parents, as a natural logarithm. `parents` must not contain
    /// the node itself.
    fn local_score(&self, node: usize, parents: &NodeSet) -> f64;

    /// Computes the score of a graph, which is the sum of the terms of its nodes.
    ///
    /// # Errors
    /// [`Error::Shape`] for a graph whose number of nodes differs from that of this score.
    fn graph_score(&self, graph: &GraphState) -> Result<f64> {
        check_nodes(self, graph)?;
        Ok(parent_sets(graph).iter().enumerate().map(|(node, parents)| self.local_score(node, parents)).sum())
    }
}

/// References, boxes and shared pointers to a score are scores, too.
impl<P: std::ops::Deref<Target: LocalScore> + Send + Sync> LocalScore for P {
    fn n_nodes(&self) -> usize {
        (**self).n_nodes()
    }
    fn local_score(&self, node: usize, parents: &NodeSet) -> f64 {
        (**self).local_score(node, parents)
    }
}

/// Returns the distinct sets of data rows that count for the score of a node, and for each node the index of
/// its set. A row counts for a node if it has no intervention on the node.
fn rows_of_nodes(
    n_nodes: usize,
    n_rows: usize,
    targets: Option<&[NodeSet]>,
) -> (Vec<Vec<usize>>, Vec<usize>) {
    let Some(targets) = targets else {
        return (vec![(0..n_rows).collect()], vec![0; n_nodes]);
    };
    let mut sets: Vec<Vec<usize>> = Vec::new();
    let of_node = (0..n_nodes).map(|node| {
        let rows: Vec<usize> = (0..n_rows).filter(|&row| !targets[row].contains(node)).collect();
        sets.iter().position(|set| *set == rows).unwrap_or_else(|| {
            sets.push(rows);
            sets.len() - 1
        })
    });
    let of_node = of_node.collect();
    (sets, of_node)
}

fn check_positive(setting: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(Error::config(setting, value, "a number above 0"))
    }
}

/// Returns an error if a node has fewer observations than there are variables, unless `allow_few` is `true`.
/// `sets` has the rows of the data that count for each node.
fn check_observations(sets: &[Vec<usize>], n_nodes: usize, allow_few: bool) -> Result<()> {
    match sets.iter().map(Vec::len).min() {
        Some(fewest) if fewest < n_nodes && !allow_few => Err(Error::config(
            "the number of observations",
            format!("{fewest} for {n_nodes} variables"),
            "at least as many observations as variables, not counting for each variable those with an \
             intervention on it (`allow_few_observations` lets the prior decide instead)",
        )),
        _ => Ok(()),
    }
}
