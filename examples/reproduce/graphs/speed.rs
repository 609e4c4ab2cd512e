//! Speed: training iterations beside the matrix products of all their nodes, one by one.

use clap::Parser;
use gfn::env::Rows;
use gfn::graph::{ActionSet, AddEdge, AddNode, BackwardRule, GraphEnv, GraphRules, GraphState, GraphStates, Semantics};
use gfn::nn::{ConvKind, GraphNet, GraphNetConfig};
use gfn::policy::GraphPolicy;
use gfn::rollout::Sampler;
use gfn::train::Trainer;
use gfn::{Result, Rng};
use serde_json::json;
use tch::{Device, Kind, Tensor};

use crate::cli::products::time_of;
use crate::cli::{Common, Defaults, Report, members, train};

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
    fn env(nodes: usize) -> Result<GraphEnv<Self>> {
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
    let runtime = common.runtime()?;
    common.refuse_replay()?;
    common.refuse_validation()?;
    let defaults = Defaults { steps: 12, epsilon: 0.0, lr: 0.0, log_z_lr: 0.0, lr_end: 1.0, ..Defaults::default() };
    let config = GraphNetConfig {
        conv: ConvKind::Gin,
        layers: common.layers.unwrap_or(2),
        embedding: common.embedding.unwrap_or(128),
        backward: common.backward.map_or_else(Default::default, Into::into),
        estimators: common.objective.estimators(),
        ..GraphNetConfig::default()
    };
    let mut rng = Rng::seeded(common.seed);
    let net = GraphNet::new(&Growth::env(args.nodes)?, config.clone(), runtime.device(), Kind::Float, &mut rng)?;
    let trainer_config = common.trainer(&defaults);
    let batch = trainer_config.batch;
    let reward = |graphs: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; graphs.len()]) };
    let objective = common.objective.build()?;
    let env = Growth::env(args.nodes)?;
    let trainer = Trainer::new(env, reward, GraphPolicy(net), objective, trainer_config, rng)?;
    let trained = train(trainer, common, ("speed", &defaults), |_| Ok(None), Vec::new())?;
    // Nothing is measured but the time of products, by one member while the others rest.
    let Some((trainer, trained)) = trained.filter(|_| members::is_first()) else { return Ok(()) };
    let floor = floor(&trainer, batch, &config, runtime.device())?;
    let title = format!("growth to {} nodes", args.nodes);
    let extra = vec![("products_s", json!(floor)), ("iteration_over_products", json!(1.0 / trained.its_per_s / floor))];
    Report { title, extra, ..Report::default() }.print(common, &trained)
}

/// Seconds that the products of one iteration take by libtorch if each node is evaluated by itself (the network evaluates nodes that look
/// alike once, and roll-outs on the host, so it may take less than that): forward at each level of a roll-out, forward and backward on
/// all visited states at once.
fn floor(
    trainer: &Trainer<GraphEnv<Growth>, GraphPolicy<GraphNet>>,
    batch: usize,
    config: &GraphNetConfig,
    device: Device,
) -> Result<f64> {
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
    let mut by_size: std::collections::BTreeMap<i64, i64> = std::collections::BTreeMap::new();
    sizes.iter().filter(|n| **n > 0).for_each(|&n| *by_size.entry(n).or_default() += 1);
    let time = |a: &[i64], b: &[i64]| time_of(a, b, device);
    let mut seconds = time(&[nodes, width], &[width, width]) * per_node as f64;
    seconds += 2.0 * time(&[graphs, 2 * width], &[2 * width, width]);
    for (n, count) in by_size {
        seconds += time(&[count, n, width], &[count, width, n]);
    }
    seconds * times as f64
}
