//! All tests of environments and pictures in one program, so that only one program must be linked. `cargo
//! test --test gym NAME::` runs the tests of the file `NAME`. The names `molecules::`, `dags::` and `plot::`
//! run the tests of the other packages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "../dags/tests/mod.rs"]
mod dags;
#[path = "../molecules/tests/mod.rs"]
mod molecules;
#[path = "../../plot/tests/mod.rs"]
mod plot;

mod augmented;
mod backward_policies;
mod behaviour;
mod bit_sequences;
mod box_golden;
mod box_policy;
mod colored_graphs;
mod conditional_reward;
mod continuous;
mod continuous_densities;
mod continuous_edges;
mod contract;
mod contract_vectors;
mod diffusion;
mod diffusion_kernels;
mod diffusion_targets;
mod diffusion_training;
mod ebm_policy;
mod enumeration;
mod graph_building;
mod graph_instances;
mod graph_problems;
mod graph_search;
mod hypergrid_golden;
mod hypergrid_parts;
mod hypergrid_points;
mod hypergrid_rewards;
mod hypergrid_training;
mod objectives;
mod perfect_trees;
mod phylo_trees;
mod policy_gradients;
mod reduced_graphs;
mod rings;
mod sequences;
mod sets;
mod special_functions;
mod spins;
mod tensor_forms;
mod tensor_training;
mod thompson;
mod triangles;
mod vectors_golden;
mod vectors_training;
