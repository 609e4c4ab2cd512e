//! Trains a custom torso with custom node features on directed rings. The library adds heads and log Z.

use gfn::env::StateGraph;
use gfn::graph::{GraphArrays, GraphKind};
use gfn::metrics::Distances;
use gfn::nn::{Embeddings, Engine, GraphNet, GraphNetConfig, Linear, Mlp, MlpConfig, Scope, Torso};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::run::Fit;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::tch::Kind;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::ring::{Ring, RingReward};

const N: usize = 3; // The number of nodes of each graph.
const WIDTH: usize = 64; // The width of all embeddings.

/// A torso of two perceptrons. The first one embeds the features of each node. The second one embeds the sum
/// of a node's first embedding and a linear map of the graph's pooled embeddings.
#[derive(Debug)]
struct MyTorso {
    features: Mlp,
    pooled: Linear,
    mixed: Mlp,
}

/// Returns the features of each node, of shape `[nodes, 3 N]`. The features are three vectors of zeros and
/// ones, which mark the node itself, the nodes that it points to, and the nodes that point to it.
fn features(arrays: &GraphArrays) -> Vec<f64> {
    let mut rows = vec![[[0.0; N]; 3]; arrays.nodes.len()];
    for (g, nodes) in rows.chunks_exact_mut(N).enumerate() {
        for (label, node) in nodes.iter_mut().enumerate() {
            node[0][label] = 1.0;
        }
        for (a, b, _) in arrays.edges_of(g) {
            (nodes[a][1][b], nodes[b][2][a]) = (1.0, 1.0);
        }
    }
    rows.concat().concat()
}

fn my_torso(scope: &mut Scope<'_>) -> MyTorso {
    let width = WIDTH as i64;
    let config = MlpConfig::default();
    MyTorso {
        features: Mlp::new(&mut scope.sub("own"), 3 * N as i64, width, &config),
        pooled: Linear::new(&mut scope.sub("pooled"), 2 * width, width),
        mixed: Mlp::new(&mut scope.sub("mixed"), width, width, &config),
    }
}

impl Torso for MyTorso {
    fn widths(&self) -> (i64, i64) {
        (WIDTH as i64, 2 * WIDTH as i64)
    }
    fn embed<E: Engine>(&self, engine: &E, _: Option<&E::Rows>) -> Result<Embeddings<E::Rows>> {
        let own = engine.mlp(&self.features, &engine.rows(&features(engine.arrays()), 3 * N));
        let graphs = engine.pool(&own);
        let mixed = engine.add_to_nodes(own, &engine.linear(&self.pooled, &graphs));
        Ok(Embeddings { nodes: engine.mlp(&self.mixed, &engine.relu(mixed)), graphs })
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let env = Ring::new(N, GraphKind::Directed)?.into_env();
    let reward = RingReward::new(100.0, 1.0)?;
    let mut rng = Rng::seeded(0);
    let space = StateGraph::build(&env, 64)?;
    let target = space.target_distribution(&reward, None)?;
    let net = GraphNet::with_torso(
        &env,
        my_torso,
        GraphNetConfig::default(),
        runtime.device(),
        Kind::Float,
        &mut rng,
    )?;
    let mut trainer =
        Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, TrainerConfig::default(), rng)?;
    for steps in [0, 500, 1_000, 1_500] {
        Fit::new(steps).run(&mut trainer)?;
        let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
        println!(
            "{steps:5} steps: total variation {:.4}",
            Distances::between(&learned.probs, &target.probs)?.tv
        );
    }
    Ok(())
}
