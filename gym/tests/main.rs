//! All tests of the environments in one program: linked once, not once per file. `cargo test --test main NAME::` runs those of one file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod augmented;
mod backward_policies;
mod bayesian_data;
mod bayesian_posterior;
mod bayesian_scores;
mod bayesian_structure;
mod bayesian_training;
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
mod edge_transformer;
mod enumeration;
mod external_scorer;
mod fragment_library;
mod fragments;
mod hypergrid_golden;
mod hypergrid_rewards;
mod hypergrid_training;
mod molecule_drawing;
mod molecule_env;
mod molecule_proxy;
mod molecule_reading;
mod molecules;
mod node_attention;
mod objectives;
mod qm9str;
mod record;
mod vectors_golden;
mod vectors_training;
