//! All tests of the core in one program: linked once, not once per file. `cargo test --test main NAME::` runs those of one file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod adam;
mod averaged;
mod bad_checkpoints;
mod bad_input;
mod bad_metrics;
mod borders;
mod canonical_forms;
mod checkers;
mod checkpoint;
mod classes;
mod conditions;
mod config_file;
mod containers;
mod data_sets;
mod description;
mod environments;
mod exact_flows;
mod fit;
mod gallery;
mod golden_categorical;
mod golden_exact_distributions;
mod golden_isomorphism;
mod golden_objectives;
mod golden_symmetry;
mod interrupted;
mod local_search;
mod misled;
mod nets;
mod network_training;
mod networks;
mod replay;
mod replay_priorities;
mod reproducibility;
mod sampled_metrics;
mod sequence_policies;
mod spaces;
mod subtb;
mod trainers;
mod training;
mod vector_policies;
mod words;
