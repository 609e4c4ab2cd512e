//! Defines a custom torso, GraphSAGE with the maximum over neighbours (Hamilton et al., *Inductive
//! Representation Learning on Large Graphs*, 2017), and trains it on rings. The library adds the heads and
//! log Z.

use gfn::prelude::*;
use gfn_gym::ring::{Ring, RingReward};

const N: i64 = 4; // The number of nodes of each graph.
const WIDTH: i64 = 64; // The width of the embedding of a node.

/// GraphSAGE on labelled nodes. A layer adds a linear map of each node's embedding and a linear map of the
/// maximum over its neighbours.
#[derive(Debug)]
struct Sage {
    labels: Tensor,
    layers: [[Linear; 2]; 2],
}

/// Builds the layers in a scope, which names their parameters for checkpoints.
fn sage(scope: &mut Scope<'_>) -> Sage {
    let labels = scope.normal("labels", &[N, WIDTH], 1.0);
    let mut linear = |name| Linear::new(&mut scope.sub(name), WIDTH, WIDTH);
    Sage { labels, layers: [["own0", "near0"], ["own1", "near1"]].map(|names| names.map(&mut linear)) }
}

impl Torso for Sage {
    fn widths(&self) -> (i64, i64) {
        (WIDTH, 2 * WIDTH)
    }
    fn embed<E: Engine>(&self, engine: &E, _: Option<&E::Rows>) -> gfn::Result<Embeddings<E::Rows>> {
        let labels: Vec<i64> = engine.arrays().labels.iter().map(|&label| i64::from(label)).collect();
        let mut nodes = engine.look_up(&self.labels, &labels, 1);
        for [own, near] in &self.layers {
            let most = engine.max_over_neighbours(&nodes);
            nodes = engine.relu(engine.add(engine.linear(own, &nodes), &engine.linear(near, &most)));
        }
        let graphs = engine.pool(&nodes);
        Ok(Embeddings { nodes, graphs })
    }
}

fn main() -> gfn::Result<()> {
    let mut rng = Rng::seeded(0);
    let env = Ring::new(N as usize, GraphKind::Undirected)?.into_env();
    let config = GraphNetConfig::default();
    let net = GraphNet::with_torso(&env, sage, config, Device::Cpu, Kind::Float, &mut rng)?;
    let lr_scale = Schedule::Linear { from: 1.0, to: 0.0, steps: 500 };
    let config = TrainerConfig { lr_scale, ..TrainerConfig::default() };
    let reward = RingReward::new(100.0, 1.0)?;
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng)?;
    Fit::new(500).run(&mut trainer)?;
    let exact = Trained::new(trainer).exact(64)?;
    println!("Total variation {:.4} over {} graphs.", exact.distances.tv, exact.space.len());
    Ok(())
}
