//! Tests of the package `gfn-dags`, which learns structures of Bayesian networks.

use gfn::graph::GraphStates;
use gfn_dags::acyclic;

mod ancestry;
mod bayesian_data;
mod bayesian_posterior;
mod bayesian_scores;
mod bayesian_structure;
mod bayesian_training;
mod edge_transformer;
mod search;
mod sums;
mod tensors;

/// Builds acyclic graphs of `n` nodes from the list of edges of each graph.
fn graphs(n: usize, edges: &[&[(u32, u32)]]) -> GraphStates {
    edges.iter().map(|edges| acyclic(n, edges).unwrap()).collect::<Vec<_>>().into()
}
