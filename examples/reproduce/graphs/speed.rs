//! The time of a training step compared with the time of the network's matrix products alone.

use crate::prelude::*;

/// Compare the time of training with the time of its matrix products, on graphs that grow to a fixed number
/// of nodes. Nearly all states are distinct, and matrix products are counted for each node separately
#[derive(Args)]
pub(crate) struct Speed {
    /// Number of nodes to which every graph grows
    #[arg(long, default_value_t = 30)]
    nodes: usize,
    #[command(flatten)]
    common: Common,
}

/// The rules of connected graphs with nodes of two classes. Each new node is attached by one edge, further
/// edges may be added, and a graph is finished when it has `nodes` nodes.
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

impl Task for Speed {
    fn run(&self) -> Result<()> {
        refuse_replay()?;
        refuse_validation()?;
        let recipe =
            Recipe { steps: 12, epsilon: 0.0, lr: 0.0, log_z_lr: 0.0, lr_end: 1.0, ..Recipe::default() };
        let run = Run::begin(&self.common, recipe)?;
        let network = GraphNetConfig {
            conv: ConvKind::Gin,
            ..self.common.graph_net(2, 128, BackwardPolicy::default())
        };
        let reward =
            |graphs: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; graphs.len()]) };
        let task = json!({ "nodes": self.nodes });
        let trainer = run.graph_trainer(Growth::env(self.nodes)?, reward, network.clone(), task)?;
        run.finish(trainer, unmeasured, Vec::new(), |trainer, report| {
            let floor = floor(trainer, run.config.batch, &network, run.device)?;
            let share = 1.0 / report.stats.its_per_s() / floor;
            report.extend(json!({ "products_s": floor, "iteration_over_products": share }));
            Ok(())
        })
    }
}

/// Returns the seconds that the matrix products of one iteration take if each node is evaluated separately.
/// The products are a forward pass at each step of sampling, and then a forward and a backward pass on all
/// visited states at once. An iteration of training may take less time than these products, because the
/// network evaluates equal nodes once, and evaluates states on the host while it samples.
fn floor(trainer: &Trainer<GraphEnv>, batch: usize, config: &GraphNetConfig, device: Device) -> Result<f64> {
    let sampler = Sampler::new(trainer.env(), trainer.policy());
    let trajectories = sampler.forward(batch, &mut trainer.evaluation_rng())?;
    let sizes: Vec<i64> = trajectories.states().graphs().iter().map(|graph| graph.n_nodes() as i64).collect();
    let lengths: Vec<usize> = trajectories.offsets().windows(2).map(|w| w[1] - w[0]).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut total = products(&sizes, config, 3, device);
    for level in 0..longest {
        let live = (0..batch).filter(|&i| lengths[i] > level);
        let rows: Vec<i64> = live.map(|i| sizes[trajectories.offsets()[i] + level]).collect();
        total += products(&rows, config, 1, device);
    }
    Ok(total)
}

/// Returns the seconds that the network's matrix products take on a batch of graphs. `sizes` holds the number
/// of nodes of each graph. The time of a single pass is multiplied by `times`: 1 for a forward pass, 3 for a
/// forward and a backward pass.
fn products(sizes: &[i64], config: &GraphNetConfig, times: usize, device: Device) -> f64 {
    let nodes = sizes.iter().sum::<i64>();
    let graphs = sizes.len() as i64;
    let width = config.embedding;
    if nodes == 0 {
        return 0.0;
    }
    // Each node needs two linear maps per layer, the node head, and the maps to query and key. The first
    // linear map is a table lookup, and therefore isn't counted. Each graph needs the map of its pooled
    // embedding and the exit head. Each pair of nodes needs a product of query and key.
    let per_node = 2 * config.layers as i64 - 1 + 1 + 2;
    let mut by_size: BTreeMap<i64, i64> = BTreeMap::new();
    for &n in sizes.iter().filter(|n| **n > 0) {
        *by_size.entry(n).or_default() += 1;
    }
    let mut seconds = seconds(&[nodes, width], &[width, width], device) * per_node as f64;
    seconds += 2.0 * self::seconds(&[graphs, 2 * width], &[2 * width, width], device);
    for (n, count) in by_size {
        seconds += self::seconds(&[count, n, width], &[count, width, n], device);
    }
    seconds * times as f64
}

/// Returns the median time in seconds of multiplying two matrices of ones with the shapes `a` and `b`.
fn seconds(a: &[i64], b: &[i64], device: Device) -> f64 {
    let a = Tensor::ones(a, (Kind::Float, device));
    let b = Tensor::ones(b, (Kind::Float, device));
    let time = |_| {
        let started = Instant::now();
        let _ = a.matmul(&b);
        started.elapsed().as_secs_f64()
    };
    let mut seconds: Vec<f64> = (0..7).map(time).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[3]
}
