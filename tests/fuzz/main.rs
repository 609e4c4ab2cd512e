//! Attacks: inputs that nobody wrote on purpose, for every reader, every kind of graph environment, and the categorical.
//!
//! Each target has a fixed number of executions, of about two seconds on one core. `GFN_FUZZ_EXECUTIONS=N` makes N executions of each instead,
//! `GFN_FUZZ_SEED=N` other inputs, and `GFN_FUZZ_LAST=FILE` keeps the input before each execution, for those that end the process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod attack;
mod categorical;
mod environments;
mod folders;
mod readers;

/// Counts what is allocated, and its peak.
#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;
