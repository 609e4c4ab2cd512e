//! Benchmarks of directed acyclic graphs: environment steps with masks, scores of sets of parents, and
//! marginal probabilities of edges.

use criterion::{BenchmarkId, Criterion};
use gfn::Rng;
use gfn::env::{Direction, DiscreteEnv, Rows, Slots};
use gfn_dags::{
    BayesianStructure, Bge, BgeConfig, CachedScores, DagReward, EdgeMarginals, GraphLaw, LocalScore, NodeSet,
    Sem, SemConfig, StructureConfig, StructurePrior,
};

use super::{elements, group};

const BATCH: usize = 256;

pub(crate) fn bench(criterion: &mut Criterion) {
    let mut group = group(criterion, "dags");
    elements(&mut group, BATCH);
    for nodes in [5, 10, 20, 100, 200] {
        let env = BayesianStructure::new(StructureConfig::new(nodes)).expect("an environment").into_env();
        let id = BenchmarkId::new(format!("step_and_masks/{nodes}_nodes"), BATCH);
        group.bench_function(id, |bencher| walk(bencher, &env, nodes));
        let id = BenchmarkId::new(format!("step_back_and_masks/{nodes}_nodes"), BATCH);
        group.bench_function(id, |bencher| walk_back(bencher, &env, nodes));
    }
    group.finish();
}

/// Draws a random legal action other than the exit for each state in each of `length` steps, and returns the
/// actions of each step.
fn recorded<E: DiscreteEnv>(env: &E, length: usize) -> Vec<Slots> {
    let mut rng = Rng::seeded(0);
    let mut states = env.initial(&vec![0; BATCH]);
    let mut out = Vec::new();
    for _ in 0..length {
        let masks = env.masks(Direction::Forward, &states);
        let slot = |row| {
            let legal: Vec<u32> = masks.legal_slots(row).collect();
            legal[rng.below(legal.len() - 1)]
        };
        let slots = Slots((0..BATCH).map(slot).collect());
        env.step(Direction::Forward, &mut states, &slots).expect("a legal step");
        out.push(slots);
    }
    out
}

fn walk<E: DiscreteEnv>(bencher: &mut criterion::Bencher<'_>, env: &E, length: usize) {
    let moves = recorded(env, length);
    let mut states = env.initial(&vec![0; BATCH]);
    let mut k = 0;
    bencher.iter(|| {
        if k == length {
            (states, k) = (env.initial(&vec![0; BATCH]), 0);
        }
        env.step(Direction::Forward, &mut states, &moves[k]).expect("a legal step");
        k += 1;
        env.masks(Direction::Forward, &states)
    });
}

fn walk_back<E: DiscreteEnv>(bencher: &mut criterion::Bencher<'_>, env: &E, length: usize) {
    let moves = recorded(env, length);
    let mut built = env.initial(&vec![0; BATCH]);
    for slots in &moves {
        env.step(Direction::Forward, &mut built, slots).expect("a legal step");
    }
    let all: Vec<usize> = (0..BATCH).collect();
    let mut states = built.clone();
    let mut k = length;
    bencher.iter(|| {
        if k == 0 {
            (states, k) = (built.select(&all), length);
        }
        k -= 1;
        // The edges are removed in the order in which they were added. A removed edge is then often part of
        // longer paths, which the step has to remove from the transitive closure.
        env.step(Direction::Backward, &mut states, &moves[length - 1 - k]).expect("a legal step back");
        env.masks(Direction::Forward, &states)
    });
}

/// Measures BGe scores of random sets of at most 5 parents in data of 20 nodes, and the exact edge
/// probabilities of networks of 14 nodes.
pub(crate) fn scores(criterion: &mut Criterion) {
    let mut rng = Rng::seeded(0);
    let mut data = |nodes: usize| {
        let dag = GraphLaw::ErdosRenyi { edges: 2.0 * nodes as f64 }.draw(nodes, &mut rng).expect("a graph");
        let sem = Sem::draw(dag, SemConfig::Linear, 0.1, &mut rng).expect("a model");
        Bge::new(&sem.sample(100, &mut rng).expect("observations"), BgeConfig::default()).expect("scores")
    };
    let bge = data(20);
    let small = data(14);
    let family = |_: usize| {
        let node = rng.below(20);
        let size = rng.below(6);
        let mut parents = NodeSet::EMPTY;
        while parents.len() < size {
            parents = parents.with(rng.below(20)).without(node);
        }
        (node, parents)
    };
    let families: Vec<(usize, NodeSet)> = (0..1000).map(family).collect();
    let mut group = group(criterion, "dag_scores");
    elements(&mut group, families.len());
    let sum = |score: &dyn LocalScore| {
        families.iter().map(|(node, parents)| score.local_score(*node, parents)).sum::<f64>()
    };
    group.bench_function("bge/20_nodes_5_parents", |bencher| bencher.iter(|| sum(&bge)));
    let cached = CachedScores::new(&bge);
    group.bench_function("bge_cached/20_nodes_5_parents", |bencher| bencher.iter(|| sum(&cached)));
    elements(&mut group, 1);
    group.sample_size(10);
    let env = BayesianStructure::new(StructureConfig::new(14)).expect("an environment");
    let ahead = CachedScores::ahead(small, None).expect("scores");
    let reward = DagReward::new(ahead, StructurePrior::Uniform).expect("a reward");
    group.bench_function("edge_marginals/14_nodes", |bencher| {
        bencher.iter(|| EdgeMarginals::sum(&env, &reward).expect("marginals"));
    });
    group.finish();
}
