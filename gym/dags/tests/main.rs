//! All tests of structures of Bayesian networks in one program: linked once, not once per file. `cargo test --test main NAME::` runs those of one file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use gfn::graph::GraphStates;
use gfn_dags::acyclic;

mod bayesian_data;
mod bayesian_posterior;
mod bayesian_scores;
mod bayesian_structure;
mod bayesian_training;
mod edge_transformer;

/// Acyclic graphs of these edges.
fn graphs(n: usize, edges: &[&[(u32, u32)]]) -> GraphStates {
    edges.iter().map(|edges| acyclic(n, edges).unwrap()).collect::<Vec<_>>().into()
}
