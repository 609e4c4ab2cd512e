//! Benchmarks of computing forward and backward masks.

use criterion::{BenchmarkId, Criterion};
use gfn::Rng;
use gfn::distribution::Exploration;
use gfn::env::{Direction, DiscreteEnv};
use gfn::graph::GraphKind;
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;

use super::{BATCHES, EXIT_BIAS, NODES, elements, fixed_nodes, group, growth, random_graphs};

pub(crate) fn bench(criterion: &mut Criterion) {
    let mut group = group(criterion, "slots");
    for n in NODES {
        for batch in BATCHES {
            elements(&mut group, batch);
            let fixed = fixed_nodes(GraphKind::Directed, n);
            let dense = random_graphs(GraphKind::Directed, batch, n, 0.5);
            let growing = growth(n);
            let exploration = Exploration::on_policy().with_exit_bias(EXIT_BIAS).expect("a finite bias");
            let sampler = Sampler::new(&growing, &UniformPolicy).exploration(exploration);
            let grown = sampler.walks(batch, &mut Rng::seeded(0)).expect("walks").terminal;
            for direction in [Direction::Forward, Direction::Backward] {
                let id = BenchmarkId::new(format!("{direction}/directed_{n}_nodes"), batch);
                group.bench_function(id, |bencher| bencher.iter(|| fixed.masks(direction, &dense)));
                // Backward masks of graphs that must stay connected take longer, because bridges have to be
                // found: an edge that is a bridge can't be removed.
                let id = BenchmarkId::new(format!("{direction}/grown_{n}_nodes"), batch);
                group.bench_function(id, |bencher| bencher.iter(|| growing.masks(direction, &grown)));
            }
        }
    }
    group.finish();
}
