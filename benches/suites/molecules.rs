//! Benchmarks of molecules with about 20 heavy atoms: forward and backward masks, encoding of states as
//! tensors, and conversion of states to molecules.

use criterion::{BenchmarkId, Criterion};
use gfn::Rng;
use gfn::env::{Direction, DiscreteEnv};
use gfn::graph::{GraphArrays, GraphBatch, GraphStates};
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn_molecules::{Molecule, MoleculeConfig, MoleculeEnv};

use super::{elements, group};

/// The number of molecules in a batch.
const BATCH: usize = 1024;
const ATOMS: usize = 20;

pub(crate) fn bench(criterion: &mut Criterion) {
    let molecules = MoleculeEnv::new(MoleculeConfig::new(ATOMS)).expect("a molecule environment");
    let env = molecules.env().clone();
    let mut rng = Rng::seeded(0);
    let mut graphs = Vec::new();
    while graphs.len() < BATCH {
        let walks = Sampler::new(&env, &UniformPolicy).forward(BATCH, &mut rng).expect("random walks");
        let large = walks.terminal_states().graphs().iter().filter(|graph| graph.n_nodes() + 2 >= ATOMS);
        graphs.extend(large.take(BATCH - graphs.len()).cloned());
    }
    let states = GraphStates::from(graphs);
    let mut group = group(criterion, "molecules");
    elements(&mut group, BATCH);
    for direction in [Direction::Forward, Direction::Backward] {
        group.bench_function(BenchmarkId::new(format!("masks_{direction}"), BATCH), |bencher| {
            bencher.iter(|| env.masks(direction, &states));
        });
    }
    group.bench_function(BenchmarkId::new("encode", BATCH), |bencher| {
        bencher.iter(|| {
            let arrays = GraphArrays::from_graphs(states.graphs());
            let batch = GraphBatch::new(env.schema(), &arrays, None, tch::Device::Cpu);
            batch.map(|batch| batch.edge_index().size())
        });
    });
    let read = || -> Vec<Molecule> {
        let graphs = states.graphs().iter();
        graphs.map(|graph| molecules.codec().molecule(graph).expect("a molecule")).collect()
    };
    group.bench_function(BenchmarkId::new("read", BATCH), |bencher| bencher.iter(read));
    let molecules = read();
    group.bench_function(BenchmarkId::new("smiles", BATCH), |bencher| {
        bencher.iter(|| molecules.iter().map(Molecule::smiles).collect::<Vec<_>>());
    });
    group.finish();
}
