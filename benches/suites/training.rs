//! Benchmarks of a whole training step, which consists of sampling, scoring, gradients and the update.

use criterion::{BenchmarkId, Criterion};
use gfn::Rng;
use gfn::graph::GraphState;
use gfn::graph::PerGraph;
use gfn::objective::TrajectoryBalance;
use gfn::optim::{AdamConfig, Schedule};
use gfn::train::{Trainer, TrainerConfig};

use super::{BATCHES, EXIT_BIAS, NODES, elements, growth, network, slow_group};

pub(crate) fn bench(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "training");
    for n in NODES {
        for batch in BATCHES {
            let env = growth(n);
            let policy = network(&env);
            let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64 * 0.1);
            // Learning rates are 0, so that every step does the same work.
            let config = TrainerConfig {
                batch,
                epsilon: Some(Schedule::Constant(0.0)),
                exit_bias: Schedule::Constant(EXIT_BIAS),
                adam: AdamConfig { lr: 0.0, log_z_lr: 0.0, ..AdamConfig::default() },
                ..TrainerConfig::default()
            };
            let trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(0));
            let mut trainer = trainer.expect("a trainer");
            elements(&mut group, batch);
            let id = BenchmarkId::new(format!("grown_{n}_nodes/{}_params", trainer.n_parameters()), batch);
            group.bench_function(id, |bencher| bencher.iter(|| trainer.step().expect("a step")));
        }
    }
    group.finish();
}
