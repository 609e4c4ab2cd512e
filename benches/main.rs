//! Benchmarks on one thread. `cargo bench --bench main` runs all benchmarks. `cargo bench --bench main --
//! categorical` runs the benchmarks whose id contains "categorical".
//!
//! `params` in a benchmark's id is the number of trainable scalars of the network.

#![allow(missing_docs, reason = "criterion's macros make public items without documentation")]
#![allow(clippy::expect_used, reason = "a bench that can't be set up has nothing better to do than to stop")]

mod suites;

use criterion::{criterion_group, criterion_main};
use suites::{
    categorical, dags, graph_problems, molecules, perceptron, replay, rollout, slots, step, training,
};

criterion_group!(
    benches,
    step::bench,
    dags::bench,
    dags::scores,
    slots::bench,
    graph_problems::bench,
    molecules::bench,
    categorical::bench,
    perceptron::bench,
    replay::bench,
    rollout::bench,
    training::bench
);
criterion_main!(benches);
