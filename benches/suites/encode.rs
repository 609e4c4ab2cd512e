//! Encoding a batch of graphs as one sparse edge index.

use criterion::{BenchmarkId, Criterion};
use gfn::graph::{GraphArrays, GraphBatch, GraphKind};

use super::{BATCHES, NODES, elements, fixed_nodes, group, random_graphs};

pub(crate) fn bench(criterion: &mut Criterion) {
    let mut group = group(criterion, "encode");
    for n in NODES {
        for batch in BATCHES {
            for kind in [GraphKind::Directed, GraphKind::Undirected] {
                let env = fixed_nodes(kind, n);
                let states = random_graphs(kind, batch, n, 0.5);
                elements(&mut group, batch);
                let id = BenchmarkId::new(format!("{kind:?}_{n}_nodes"), batch);
                group.bench_function(id, |bencher| {
                    bencher.iter(|| {
                        let arrays = GraphArrays::of(states.graphs());
                        let batch = GraphBatch::new(env.schema(), &arrays, None, tch::Device::Cpu);
                        batch.map(|batch| batch.edge_index().size())
                    });
                });
            }
        }
    }
    group.finish();
}
