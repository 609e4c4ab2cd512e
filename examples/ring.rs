//! Trains a graph network to sample the six rings (directed cycles) through four nodes equally often.

use std::{error::Error, fs};

use gfn::prelude::*;
use gfn_gym::ring::{Ring, RingReward};
use gfn_plot::{GraphDrawing, Layout, PictureSheet, Table};

const STEPS: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let mut rng = Rng::seeded(0);
    // Graphs are built edge by edge. A ring has the reward 100, and any other graph 1e-6.
    let ring = Ring::new(4, GraphKind::Directed)?;
    let reward = RingReward::new(100.0, 1e-6)?;

    let network = GraphNetConfig {
        conv: ConvKind::Directed,
        layers: 1,
        embedding: 128,
        // The network distinguishes nodes by their number. P_B is uniform over the edges that can be removed.
        identity: true,
        backward: BackwardPolicy::Uniform,
        // With this bias an untrained policy exits about as often as it adds an edge.
        initial_exit_bias: 16f64.ln(),
        ..GraphNetConfig::default()
    };
    let net = GraphNet::new(ring.env(), network, runtime.device(), Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 128,
        // Random actions keep the policy from concentrating on only a few of the rings.
        epsilon: Some(Schedule::Linear { from: 0.2, to: 0.0, steps: STEPS / 2 }),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: STEPS },
        ..TrainerConfig::default()
    };
    let best = ReplayConfig {
        capacity: 10_000,
        eviction: Eviction::BestReward,
        draw: Draw::RewardPrioritised { exponent: 1.0 },
    };
    let mut trainer =
        Trainer::new(ring.env().clone(), reward, GraphPolicy(net), TrajectoryBalance, config, rng)?
            .with_replay(ReplayBuffer::distinct(best)?);

    trainer.prefill(60_000)?; // Uniform random trajectories reach all six rings.
    Fit::new(STEPS).run(&mut trainer)?;

    let env = trainer.env();
    let policy = trainer.policy();
    let space = StateGraph::build(env, 4_096)?; // All graphs are listed, so the distance is exact.
    let target = space.target_distribution(&reward, None)?;
    let learned = space.terminating_distribution(env, policy, None)?;
    let distance = Distances::between(&learned.probs, &target.probs)?;

    let mut order: Vec<usize> = (0..space.len()).collect();
    order.sort_by(|&a, &b| learned.probs[b].total_cmp(&learned.probs[a]));
    let mut table = Table::new(["most probable graphs: edges", "is a ring", "learned", "target"]);
    let drawing = GraphDrawing { layout: Layout::Circle, ..GraphDrawing::default() };
    let mut sheet = PictureSheet::new("most probable graphs", drawing.side);
    for &k in order.iter().take(8) {
        let graph = &space.states().graphs()[k];
        let p = learned.probs[k];
        let t = target.probs[k];
        let edges = graph.edges().map(|(a, b)| format!("{a}-{b}")).collect::<Vec<_>>().join(" ");
        table.push([edges.into(), if ring.is_ring(graph) { "yes" } else { "no" }.into(), p.into(), t.into()]);
        sheet = sheet.cell(drawing.draw(graph), [format!("p = {p:.4}"), format!("target {t:.4}")]);
    }
    fs::create_dir_all("out")?;
    sheet.write("out/ring.svg")?;
    println!("{table}\nTotal variation {:.4}, drawn in out/ring.svg.", distance.tv);
    Ok(())
}
