//! Benchmarks of roll-outs for problems in which each trajectory decides about the nodes of an input graph.
//! The policy's input is either the whole graph, or a reduced graph with only the nodes that matter for the
//! rest of the trajectory.

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion};
use gfn::Rng;
use gfn::graph::{GraphEnv, GraphRules, GraphState};
use gfn::nn::{GraphNet, GraphNetConfig, GraphNetwork};
use gfn::policy::GraphPolicy;
use gfn::rollout::Sampler;
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, RbModel};

use super::{elements, slow_group};

/// The number of trajectories per batch.
const BATCH: usize = 8;

/// The rules of a problem, except that they never reduce a state's graph. The policy's input is then the
/// whole graph.
struct Whole(Arc<dyn GraphRules>);

impl GraphRules for Whole {
    fn can_exit(&self, graph: &GraphState) -> bool {
        self.0.can_exit(graph)
    }
    fn is_reachable(&self, graph: &GraphState) -> bool {
        self.0.is_reachable(graph)
    }
}

pub(crate) fn bench(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "graph_problems");
    for model in [RbModel::nodes_50_to_100(), RbModel::nodes_200_to_300(), RbModel::nodes_800_to_1200()] {
        let graph = model.draw(&mut Rng::seeded(0)).expect("a graph of the model");
        let n = graph.n_nodes();
        let graphs = Instances::new(vec![graph]).expect("a plain graph");
        let env = GraphProblem::for_size(Problem::IndependentSet, &graphs).expect("one graph").into_env();
        let config =
            GraphNetConfig { layers: 5, embedding: 64, identity: false, ..GraphNetConfig::default() };
        let net = GraphNet::new(&env, config, tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0));
        let policy = GraphPolicy(net.expect("a network"));
        let params = policy.0.parameters().count();
        let drawn = Sampler::new(&env, &policy).forward(BATCH, &mut Rng::seeded(0)).expect("legal moves");
        let reduced = drawn
            .states()
            .graphs()
            .iter()
            .filter_map(|state| Some(env.rules().reduced(state)?.nodes().len()));
        let states = drawn.n_transitions();
        let rows = reduced.sum::<usize>() as f64 / states as f64;
        elements(&mut group, states);
        let whole: GraphEnv = env.clone().with_rules(Whole);
        group.bench_function(
            BenchmarkId::new(format!("whole, {n} nodes a state"), format!("{params} params")),
            |bencher| {
                bencher.iter(|| {
                    Sampler::new(&whole, &policy).forward(BATCH, &mut Rng::seeded(0)).expect("legal moves")
                });
            },
        );
        group.bench_function(
            BenchmarkId::new(format!("{rows:.0} of {n} nodes a state"), format!("{params} params")),
            |bencher| {
                bencher.iter(|| {
                    Sampler::new(&env, &policy).forward(BATCH, &mut Rng::seeded(0)).expect("legal moves")
                });
            },
        );
    }
    group.finish();
}
