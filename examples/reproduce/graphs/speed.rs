//! Speed: training iterations beside the matrix products of all their nodes, one by one.

use std::collections::BTreeMap;
use std::time::Instant;

use clap::Parser;
use gfn::Result;
use gfn::env::Rows;
use gfn::graph::{ActionSet, AddEdge, AddNode, BackwardRule, GraphEnv, GraphRules, GraphState, GraphStates, Semantics};
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig};
use gfn::policy::GraphPolicy;
use gfn::rollout::Sampler;
use gfn::train::Trainer;
use tch::{Device, Kind, Tensor};

use crate::flags::{Common, refuse_replay, refuse_validation};
use crate::run::{Recipe, Report, Run};

/// Time growth to a fixed number of nodes, where hardly a state comes twice, against the matrix products of all its nodes, one by one
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Nodes that every graph grows to
    #[arg(long, default_value_t = 30)]
    nodes: usize,
    #[command(flatten)]
    common: Common,
}

/// Two-coloured graphs that grow by attachment, with some further edges, until they have all of their nodes.
struct Growth {
    nodes: usize,
}

impl Growth {
    fn env(nodes: usize) -> Result<GraphEnv> {
        let actions = ActionSet::new(Semantics::UpToIsomorphism)
            .with(AddNode::first(2))
            .with(AddNode::attached(2, 1, nodes))
            .with(AddEdge::new(1).at_most(4 * nodes / 3).keeping_connected());
        let env = GraphEnv::new(Self { nodes }, actions, GraphState::undirected(0))?;
        Ok(env.with_backward(BackwardRule::ByType))
    }
}

impl GraphRules for Growth {
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() == self.nodes
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    refuse_replay()?;
    refuse_validation()?;
    let recipe = Recipe { steps: 12, epsilon: 0.0, lr: 0.0, log_z_lr: 0.0, lr_end: 1.0, ..Recipe::default() };
    let run = Run::begin(common, "speed", format!("growth to {} nodes", args.nodes), recipe)?;
    let network = GraphNetConfig {
        conv: ConvKind::Gin,
        layers: common.layers.unwrap_or(2),
        embedding: common.embedding.unwrap_or(128),
        backward: common.backward(BackwardPolicy::default()),
        estimators: common.objective.estimators(),
        ..GraphNetConfig::default()
    };
    let (env, mut rng) = (Growth::env(args.nodes)?, run.rng());
    let policy = GraphPolicy(GraphNet::new(&env, network.clone(), run.device, Kind::Float, &mut rng)?);
    let reward = |graphs: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; graphs.len()]) };
    let trainer = Trainer::new(env, reward, policy, run.objective()?, run.config.clone(), rng)?;
    let Some((trainer, trained)) = run.train(trainer, |_| Ok(None), Vec::new())? else { return Ok(()) };
    let floor = floor(&trainer, run.config.batch, &network, run.device)?;
    let mut report = Report::default();
    report.set("products_s", floor);
    report.set("iteration_over_products", 1.0 / trained.its_per_s() / floor);
    run.print(&trained, report)
}

/// The median time of a product of ones, warm, in seconds.
fn time_of(a: &[i64], b: &[i64], device: Device) -> f64 {
    let (a, b) = (Tensor::ones(a, (Kind::Float, device)), Tensor::ones(b, (Kind::Float, device)));
    let time = |_| {
        let started = Instant::now();
        let _ = a.matmul(&b);
        started.elapsed().as_secs_f64()
    };
    let mut seconds: Vec<f64> = (0..7).map(time).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[3]
}

/// Seconds that the products of one iteration take by libtorch if each node is evaluated by itself (the network evaluates nodes that look
/// alike once, and roll-outs on the host, so it may take less than that): forward at each level of a roll-out, forward and backward on
/// all visited states at once.
fn floor(trainer: &Trainer<GraphEnv>, batch: usize, config: &GraphNetConfig, device: Device) -> Result<f64> {
    let sampler = Sampler::new(trainer.env(), trainer.policy());
    let trajectories = sampler.forward(batch, &mut trainer.evaluation_rng())?;
    let sizes: Vec<i64> = trajectories.states().graphs().iter().map(|graph| graph.n_nodes() as i64).collect();
    let lengths: Vec<usize> = trajectories.offsets().windows(2).map(|w| w[1] - w[0]).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut total = 0.0;
    for level in 0..longest {
        let live = (0..batch).filter(|&i| lengths[i] > level);
        let rows: Vec<i64> = live.map(|i| sizes[trajectories.offsets()[i] + level]).collect();
        total += products(&rows, config, 1, device);
    }
    Ok(total + products(&sizes, config, 3, device))
}

/// Seconds of one pass over graphs of these sizes: each product `times` times (forward; and the two of its backward pass).
fn products(sizes: &[i64], config: &GraphNetConfig, times: usize, device: Device) -> f64 {
    let (nodes, graphs, width) = (sizes.iter().sum::<i64>(), sizes.len() as i64, config.embedding);
    if nodes == 0 {
        return 0.0;
    }
    // Per node: two maps a layer, less the first, which is a table's; the node head; query and key. Per graph: the map that
    // tells nodes of the whole graph, and the exit head. Per pair: query times key, at each size of its own.
    let per_node = 2 * config.layers as i64 - 1 + 1 + 2;
    let mut by_size: BTreeMap<i64, i64> = BTreeMap::new();
    sizes.iter().filter(|n| **n > 0).for_each(|&n| *by_size.entry(n).or_default() += 1);
    let time = |a: &[i64], b: &[i64]| time_of(a, b, device);
    let mut seconds = time(&[nodes, width], &[width, width]) * per_node as f64;
    seconds += 2.0 * time(&[graphs, 2 * width], &[2 * width, width]);
    for (n, count) in by_size {
        seconds += time(&[count, n, width], &[count, width, n]);
    }
    seconds * times as f64
}
