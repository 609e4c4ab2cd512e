//! Benchmarks of environment steps that change states in place: an edge is added, and an edge is removed.

use criterion::{BatchSize, BenchmarkId, Criterion};
use gfn::env::{Direction, Env};
use gfn::graph::GraphKind;

use super::{BATCHES, NODES, elements, fixed_nodes, group, random_graphs, random_moves};

pub(crate) fn bench(criterion: &mut Criterion) {
    let mut group = group(criterion, "step");
    for n in NODES {
        for batch in BATCHES {
            let env = fixed_nodes(GraphKind::Directed, n);
            let states = random_graphs(GraphKind::Directed, batch, n, 0.5);
            let add = random_moves(&env, Direction::Forward, &states);
            elements(&mut group, batch);
            // The edge is added and removed once before the measurement. The memory for the edge is then
            // allocated already, as in most steps of a roll-out.
            let with_room = || {
                let mut warm = states.clone();
                let step = env.step(Direction::Forward, &mut warm, &add).expect("a legal step");
                env.step(Direction::Backward, &mut warm, &step.reverse).expect("a legal step back");
                warm
            };
            let id = BenchmarkId::new(format!("add_edge/directed_{n}_nodes"), batch);
            group.bench_function(id, |bencher| {
                let step = |states: &mut _| env.step(Direction::Forward, states, &add);
                bencher.iter_batched_ref(with_room, step, BatchSize::SmallInput);
            });
            let mut added = states.clone();
            let undo = env.step(Direction::Forward, &mut added, &add).expect("a legal step").reverse;
            let id = BenchmarkId::new(format!("remove_edge/directed_{n}_nodes"), batch);
            group.bench_function(id, |bencher| {
                let step = |states: &mut _| env.step(Direction::Backward, states, &undo);
                bencher.iter_batched_ref(|| added.clone(), step, BatchSize::SmallInput);
            });
        }
    }
    group.finish();
}
