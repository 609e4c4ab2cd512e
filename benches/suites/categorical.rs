//! Benchmarks of the categorical distribution over all legal slots of a graph: building it from logits,
//! sampling, and computing the log-probability and its gradient.

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion};
use gfn::Rng;
use gfn::distribution::{Distribution, Exploration, GraphActionCategorical};
use gfn::env::{Direction, DiscreteEnv, Masks};
use gfn::graph::{GraphKind, GraphStates};
use tch::{Kind, Tensor};

use super::{BATCHES, NODES, elements, fixed_nodes, group, random_graph, random_graphs};

/// Draws a tensor of standard normal logits for each block of the masks. A block holds the slots of one
/// action type in all states. The tensors are leaves that require a gradient.
fn logits(masks: &Masks) -> Vec<Tensor> {
    let mut rng = Rng::seeded(2);
    let blocks = masks.blocks.iter().map(|block| {
        let values: Vec<f32> = (0..block.rows() * block.width).map(|_| rng.normal() as f32).collect();
        let size = [block.rows() as i64, block.width as i64];
        Tensor::from_slice(&values).view(size).set_requires_grad(true)
    });
    blocks.collect()
}

/// Builds the distribution, draws an action for each state, and returns the gradients of the summed
/// log-probabilities with respect to the logits.
fn round(masks: Masks, blocks: &[Tensor], rng: &mut Rng) -> Vec<Tensor> {
    let rows: Vec<usize> = (0..masks.len()).collect();
    let dist = GraphActionCategorical::new(masks, blocks).expect("blocks that fit");
    let actions = dist.sample(&rows, &Exploration::on_policy(), rng).expect("finite logits");
    let loss = dist.log_prob(&rows, &actions).expect("legal actions").sum(Kind::Float);
    Tensor::run_backward(&[loss], blocks, false, false)
}

fn bench_states(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    env: &impl DiscreteEnv<States = GraphStates>,
    states: &GraphStates,
) {
    let masks = env.masks(Direction::Forward, states);
    let blocks = logits(&masks);
    let legal: usize = (0..masks.len()).map(|row| masks.n_legal(row)).sum();
    elements(group, legal);
    let mut rng = Rng::seeded(3);
    let id = BenchmarkId::new(
        format!("{name}/{legal}_legal_of_{}_logits", masks.legal.len()),
        states.graphs().len(),
    );
    group.bench_function(id, |bencher| {
        bencher.iter_batched(
            || masks.clone(),
            |masks| round(masks, &blocks, &mut rng),
            BatchSize::SmallInput,
        );
    });
}

pub(crate) fn bench(criterion: &mut Criterion) {
    let mut group = group(criterion, "categorical");
    // These graphs have 10 to 30 nodes, and most of their actions add an edge between two nodes.
    // docs/decisions.md compares the time of this case with that of recursionpharma's class
    // `GraphActionCategorical`.
    let mut rng = Rng::seeded(0);
    let mixed = (0..64).map(|k| random_graph(GraphKind::Directed, 10 + k * 21 / 64, 0.12, &mut rng));
    bench_states(
        &mut group,
        "10_to_30_nodes",
        &fixed_nodes(GraphKind::Directed, 30),
        &mixed.collect::<Vec<_>>().into(),
    );
    for n in NODES {
        for batch in BATCHES {
            let env = fixed_nodes(GraphKind::Directed, n);
            let states = random_graphs(GraphKind::Directed, batch, n, 0.5);
            bench_states(&mut group, &format!("directed_{n}_nodes"), &env, &states);
        }
    }
    group.finish();
}
