//! The benchmark suites, and what they share: random graphs, an environment of growing graphs, and a network
//! for it.

pub(crate) mod categorical;
pub(crate) mod dags;
pub(crate) mod graph_problems;
pub(crate) mod molecules;
pub(crate) mod perceptron;
pub(crate) mod replay;
pub(crate) mod rollout;
pub(crate) mod slots;
pub(crate) mod step;
pub(crate) mod training;

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};
use gfn::Rng;
use gfn::env::{Direction, DiscreteEnv, Slots};
use gfn::graph::{
    ActionSet, AddEdge, BackwardRule, Edge, Free, GraphEnv, GraphKind, GraphState, GraphStates,
};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::policy::GraphPolicy;
use gfn::runtime::{DeviceKind, Runtime};
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig, Growth};

/// The batch sizes that are measured, in graphs.
pub(crate) const BATCHES: [usize; 3] = [64, 256, 1024];
/// The approximate sizes of graphs that are measured, in nodes.
pub(crate) const NODES: [usize; 2] = [10, 30];

/// Limits the process to one thread, and starts a group of benchmarks.
pub(crate) fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    Runtime::new(1, DeviceKind::Cpu).expect("one thread on the host");
    let mut group = criterion.benchmark_group(name);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2)).sample_size(30);
    group
}

/// Starts a group of slow benchmarks, which are measured only a few times.
pub(crate) fn slow_group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = group(criterion, name);
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group
}

pub(crate) fn elements(group: &mut BenchmarkGroup<'_, WallTime>, n: usize) {
    group.throughput(Throughput::Elements(n as u64));
}

/// Builds an environment with `n` labelled nodes to which edges are added in any order.
pub(crate) fn fixed_nodes(kind: GraphKind, n: usize) -> GraphEnv {
    let actions = ActionSet::new(gfn::graph::Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::new(Free, actions, GraphState::with_nodes(kind, n));
    env.expect("parts that fit").with_backward(BackwardRule::ByType)
}

/// Draws `batch` graphs of `n` nodes; each possible edge exists with probability `density`.
pub(crate) fn random_graphs(kind: GraphKind, batch: usize, n: usize, density: f64) -> GraphStates {
    let mut rng = Rng::seeded(0);
    let graphs = (0..batch).map(|_| random_graph(kind, n, density, &mut rng));
    graphs.collect::<Vec<_>>().into()
}

pub(crate) fn random_graph(kind: GraphKind, n: usize, density: f64, rng: &mut Rng) -> GraphState {
    let mut graph = GraphState::with_nodes(kind, n);
    for a in 0..n as u32 {
        for b in 0..n as u32 {
            let possible = if kind == GraphKind::Directed { a != b } else { a < b };
            if possible && rng.uniform() < density {
                graph.add_edge(a, b, Edge::default()).expect("a new edge");
            }
        }
    }
    graph
}

/// Draws a random legal action for each state. The exit is drawn only if it is the only legal action.
pub(crate) fn random_moves<E: DiscreteEnv>(env: &E, direction: Direction, states: &E::States) -> Slots {
    let masks = env.masks(direction, states);
    let mut rng = Rng::seeded(1);
    let pick = |row: usize| {
        let legal: Vec<u32> = masks.legal_slots(row).collect();
        let exits = usize::from(masks.has_exit && legal.len() > 1);
        legal[rng.below(legal.len() - exits)]
    };
    Slots((0..masks.len()).map(pick).collect())
}

/// Builds an environment of undirected graphs up to isomorphism, which grow by attaching nodes. Graphs have
/// at most `n` nodes and 3 n / 2 edges.
pub(crate) fn growth(n: usize) -> GraphEnv {
    let config = GraphBuildingConfig {
        growth: Growth::Attached,
        max_edges: Some(n + n / 2),
        node_classes: 2,
        ..GraphBuildingConfig::new(GraphKind::Undirected, n)
    };
    GraphBuilding::new(config).expect("settings that make sense").into_env()
}

/// Builds a graph network for `env` with embeddings of width 64.
pub(crate) fn network(env: &GraphEnv) -> GraphPolicy<GraphNet> {
    let config = GraphNetConfig { embedding: 64, ..GraphNetConfig::default() };
    let net = GraphNet::new(env, config, tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0));
    GraphPolicy(net.expect("a network"))
}

/// The number that is added to the exit's logit, so that trajectories end only when graphs are about as large
/// as possible.
pub(crate) const EXIT_BIAS: f64 = -10.0;
