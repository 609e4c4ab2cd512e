//! A torso of your own, with node features of your own: the library adds heads, log Z and training. On directed rings.

use gfn::env::StateGraph;
use gfn::graph::{GraphArrays, GraphBatch, GraphKind};
use gfn::metrics::Distances;
use gfn::nn::{Embedded, GraphNet, GraphNetConfig, HostEmbedded, HostMlp, HostTorso, Mlp, MlpConfig, Scope, Torso};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::tch::{Kind, Tensor};
use gfn::train::{Fit, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::ring::{Ring, RingReward};

const N: usize = 3; // nodes of each graph
const WIDTH: usize = 64; // of embeddings

/// A perceptron of each node's features, then one of that and of the sum over the graph: layers, or for roll-outs rows of numbers.
#[derive(Debug)]
struct MyTorso<P>(P, P);

/// Which node it is, whom it points to and who points to it, `[nodes, 3 N]`.
fn features(arrays: &GraphArrays) -> Vec<f32> {
    let mut rows = vec![[[0.0; N]; 3]; arrays.nodes.len()];
    for (g, nodes) in rows.chunks_exact_mut(N).enumerate() {
        nodes.iter_mut().enumerate().for_each(|(label, node)| node[0][label] = 1.0);
        arrays.edges_of(g).for_each(|(a, b, _)| (nodes[a][1][b], nodes[b][2][a]) = (1.0, 1.0));
    }
    rows.concat().concat()
}

fn my_torso(scope: &mut Scope<'_>) -> MyTorso<Mlp> {
    let mut layers = |name, n: usize| Mlp::new(&mut scope.sub(name), n as i64, WIDTH as i64, &MlpConfig::default());
    MyTorso(layers("own", 3 * N), layers("mixed", 2 * WIDTH))
}

impl Torso for MyTorso<Mlp> {
    fn widths(&self) -> (i64, i64) {
        (WIDTH as i64, WIDTH as i64)
    }
    fn embed(&self, batch: &GraphBatch<'_>, _: Option<&Tensor>) -> Result<Embedded> {
        let features = Tensor::from_slice(&features(batch.arrays)).view([-1, 3 * N as i64]);
        let own = self.0.forward(&features.to_device(batch.device()));
        let graphs = own.view([-1, N as i64, WIDTH as i64]).sum_dim_intlist(1, false, None);
        let of_nodes = graphs.index_select(0, batch.node_graph());
        Ok(Embedded { nodes: self.1.forward(&Tensor::cat(&[own, of_nodes], 1)), graphs })
    }
    fn on_host(&self) -> Option<Box<dyn HostTorso>> {
        Some(Box::new(MyTorso(HostMlp::new(&self.0)?, HostMlp::new(&self.1)?)))
    }
}

impl HostTorso for MyTorso<HostMlp> {
    fn embed(&self, arrays: &GraphArrays) -> HostEmbedded {
        let own = self.0.forward(features(arrays), arrays.nodes.len());
        let (mut graphs, mut both) = (Vec::new(), Vec::new());
        for nodes in own.chunks_exact(N * WIDTH) {
            let sum: Vec<f32> = (0..WIDTH).map(|k| nodes.iter().skip(k).step_by(WIDTH).sum()).collect();
            nodes.chunks_exact(WIDTH).for_each(|node| both.extend([node, &sum].concat()));
            graphs.extend(sum);
        }
        HostEmbedded { nodes: self.1.forward(both, arrays.nodes.len()), graphs }
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let (env, reward, mut rng) = (Ring::new(N, GraphKind::Directed)?, RingReward::new(100.0, 1.0)?, Rng::seeded(0));
    let space = StateGraph::build(&env, 64)?;
    let target = space.target_distribution(&reward, None)?;
    let net = GraphNet::with_torso(&env, my_torso, GraphNetConfig::default(), runtime.device(), Kind::Float, &mut rng)?;
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, TrainerConfig::default(), rng)?;
    for steps in [0, 500, 1_000, 1_500] {
        Fit::new(steps).run(&mut trainer)?;
        let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
        println!("{steps:5} steps: total variation {:.4}", Distances::between(&learned.probs, &target.probs)?.tv);
    }
    Ok(())
}
