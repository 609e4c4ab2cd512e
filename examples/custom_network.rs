//! A network of your own: layers of `tch::nn` on the edges and labels of a batch of graphs, trained on directed rings.

use gfn::env::StateGraph;
use gfn::graph::{GraphBatch, GraphKind};
use gfn::metrics::Distances;
use gfn::nn::{GraphNetwork, Group, NetworkOutput, Parameters};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::quantity::{Quantities, Quantity};
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Fit, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::ring::{Ring, RingReward};
use tch::nn::{self, Module};
use tch::{Device, Kind, Tensor};

/// Edges into a perceptron, a logit per pair of nodes and one for the exit out of it.
///
/// `AddEdge` has a row of logits per ordered pair of nodes, the exit one per graph. Without logits of P_B, P_B is uniform.
#[derive(Debug)]
struct MyNetwork {
    nodes: i64,
    body: nn::Sequential,
    log_z: Tensor,
    parameters: Parameters,
}

impl MyNetwork {
    fn new(nodes: i64, width: i64, device: Device, seed: u64) -> Result<Self> {
        // tch draws initial values from its own generator.
        tch::manual_seed(seed as i64);
        let store = nn::VarStore::new(device);
        let linear = |k, inputs, outputs| nn::linear(store.root() / k, inputs, outputs, nn::LinearConfig::default());
        let body = nn::seq().add(linear(0, nodes * nodes, width)).add_fn(Tensor::relu);
        let body = body.add(linear(1, width, width)).add_fn(Tensor::relu).add(linear(2, width, nodes * nodes + 1));
        let mut parameters = Parameters::new(device, Kind::Float);
        parameters.extend_from_var_store("mine", &store)?;
        let log_z = parameters.scope(&mut Rng::seeded(seed)).group(Group::LogZ).constant("log_z", &[1], 0.0);
        Ok(Self { nodes, body, log_z, parameters })
    }
}

impl GraphNetwork for MyNetwork {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        if !wants.has(Quantity::LogPf) {
            return Ok(NetworkOutput::default());
        }
        let (graphs, n) = (batch.len() as i64, self.nodes);
        // Nodes are numbered through the batch, and each graph has n of them: the flat place of an edge in `[graphs, n, n]`.
        let places = batch.edge_index().get(0) * n + batch.edge_index().get(1).remainder(n);
        let ones = Tensor::ones_like(&places).to_kind(Kind::Float);
        let empty = Tensor::zeros([graphs * n * n], (Kind::Float, batch.device()));
        let logits = self.body.forward(&empty.index_add(0, &places, &ones).view([graphs, n * n]));
        let (add_edge, exit) = (logits.narrow(1, 0, n * n).reshape([-1, 1]), logits.narrow(1, n * n, 1));
        Ok(NetworkOutput { pf: Some(vec![add_edge, exit]), ..NetworkOutput::default() })
    }
    fn log_z(&self, _: Option<&Tensor>, n: usize) -> Option<Tensor> {
        Some(self.log_z.expand([n as i64], false))
    }
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let (env, reward) = (Ring::new(3, GraphKind::Directed)?, RingReward::new(100.0, 1.0)?);
    let space = StateGraph::build(&env, 64)?;
    let target = space.target_distribution(&reward, None)?;
    let policy = GraphPolicy(MyNetwork::new(3, 256, runtime.device(), 0)?);
    let config = TrainerConfig::default();
    let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(0))?;
    for steps in [0, 500, 1_000, 1_500] {
        Fit::new(steps).run(&mut trainer)?;
        let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
        println!("{steps:5} steps: total variation {:.4}", Distances::between(&learned.probs, &target.probs)?.tv);
    }
    Ok(())
}
