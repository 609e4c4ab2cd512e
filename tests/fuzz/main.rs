//! Fuzz tests: random edits of inputs for every reader, random graph environments, and the categorical
//! distribution.
//!
//! Each test has a fixed number of executions, which take about two seconds on one core. Three environment
//! variables change that. `GFN_FUZZ_EXECUTIONS=N` sets the number of executions of each test, and
//! `GFN_FUZZ_SEED=N` chooses other inputs. `GFN_FUZZ_LAST=FILE` saves each input before its execution, so
//! that an input that ends the process can be found.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod attack;
mod categorical;
mod environments;
mod folders;
mod readers;

/// The allocator of the test program, which counts allocated memory and its peak.
#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;
