//! Benchmarks of whole roll-outs, with the uniform policy and with a graph network.

use criterion::{BenchmarkId, Criterion};
use gfn::Rng;
use gfn::distribution::Exploration;
use gfn::nn::GraphNetwork;
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;

use super::{BATCHES, EXIT_BIAS, NODES, elements, growth, network, slow_group};

pub(crate) fn bench(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "rollout");
    let exploration = Exploration::on_policy().with_exit_bias(EXIT_BIAS).expect("a finite bias");
    for n in NODES {
        let env = growth(n);
        let policy = network(&env);
        let params = policy.0.parameters().count();
        for batch in BATCHES {
            elements(&mut group, batch);
            let mut rng = Rng::seeded(0);
            let uniform = Sampler::new(&env, &UniformPolicy).exploration(exploration);
            let id = BenchmarkId::new(format!("uniform/grown_{n}_nodes"), batch);
            group.bench_function(id, |bencher| bencher.iter(|| uniform.forward(batch, &mut rng)));
            let sampler = Sampler::new(&env, &policy).exploration(exploration);
            let id = BenchmarkId::new(format!("gnn/grown_{n}_nodes/{params}_params"), batch);
            group.bench_function(id, |bencher| bencher.iter(|| sampler.forward(batch, &mut rng)));
        }
    }
    group.finish();
}
