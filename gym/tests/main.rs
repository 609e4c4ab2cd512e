//! All tests of the environments in one program: linked once, not once per file. `cargo test --test main NAME::` runs those of one file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod augmented;
mod backward_policies;
mod behaviour;
mod box_golden;
mod box_policy;
mod conditional_reward;
mod continuous;
mod continuous_densities;
mod continuous_edges;
mod contract;
mod contract_vectors;
mod diffusion;
mod diffusion_targets;
mod diffusion_training;
mod ebm_policy;
mod enumeration;
mod graph_problems;
mod graph_search;
mod hypergrid_golden;
mod hypergrid_rewards;
mod hypergrid_training;
mod objectives;
mod vectors_golden;
mod vectors_training;
