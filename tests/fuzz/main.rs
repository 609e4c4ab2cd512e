//! Fuzz tests: random edits of inputs for every reader, random graph environments, and the categorical
//! distribution.
//!
//! Each target has a fixed number of executions, of about two seconds on one core. `GFN_FUZZ_EXECUTIONS=N`
//! makes N executions of each instead, `GFN_FUZZ_SEED=N` chooses other inputs, and `GFN_FUZZ_LAST=FILE` saves
//! the input before each execution, to find one that ends the process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod attack;
mod categorical;
mod environments;
mod folders;
mod readers;

/// Counts allocated memory and its peak.
#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;
