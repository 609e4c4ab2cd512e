//! Tests that training by each of four objectives ends near the target, as measured by exact distances. Also
//! tests that training on rings of four nodes finds every ring.

use gfn::Rng;
use gfn::env::StateGraph;
use gfn::env::{EnumerableEnv, Reward};
use gfn::examples::Triangles;
use gfn::graph::PerGraph;
use gfn::graph::{GraphEnv, GraphKind, GraphState};
use gfn::metrics::{Distances, modes_found};
use gfn::nn::{ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig, MlpConfig};
use gfn::objective::Quantity;
use gfn::objective::{
    DetailedBalance, LogPartitionVariance, Objective, SubTrajectoryBalance, TrajectoryBalance, Weighting,
};
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::train::{TrainEnv, Trainer, TrainerConfig};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use gfn_gym::ring::{Ring, RingReward};
use tch::{Device, Kind};

/// Makes libtorch use one thread, so that bits are equal on every machine and tests don't compete for cores.
fn one_thread() {
    tch::set_num_threads(1);
}

fn objectives() -> Vec<Box<dyn Objective>> {
    let subtb = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
    vec![
        Box::new(TrajectoryBalance),
        Box::new(LogPartitionVariance),
        Box::new(DetailedBalance::default()),
        Box::new(subtb),
    ]
}

/// Trains for a number of steps. Returns the distances to the target before and after training.
fn train<E, P, R>(
    env: E,
    again: &E,
    reward: R,
    policy: P,
    objective: Box<dyn Objective>,
    (steps, config): (usize, TrainerConfig),
    seed: u64,
) -> (Distances, Distances)
where
    E: EnumerableEnv + TrainEnv,
    P: Policy<E> + Send + 'static,
    R: Reward<E::States> + 'static,
{
    let graph = StateGraph::build(again, 10_000).unwrap();
    let target = graph.target_distribution(&reward, None).unwrap();
    let mut trainer = Trainer::new(env, reward, policy, objective, config, Rng::seeded(seed)).unwrap();
    let distances = |trainer: &Trainer<E>| {
        let learned = graph.terminating_distribution(again, trainer.policy(), None).unwrap();
        Distances::between(&learned.probs, &target.probs).unwrap()
    };
    let before = distances(&trainer);
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    (before, distances(&trainer))
}

fn config(steps: usize, batch: usize) -> (usize, TrainerConfig) {
    let config = TrainerConfig {
        batch,
        epsilon: Some(Schedule::Linear { from: 0.1, to: 0.0, steps: steps / 2 }),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.1, steps },
        adam: AdamConfig { lr: 5e-3, log_z_lr: 1e-1, ..AdamConfig::default() },
        ..TrainerConfig::default()
    };
    (steps, config)
}

fn check((before, after): (Distances, Distances), what: &str, objective: &str) {
    assert!(before.tv > 0.15, "{what}, {objective}: nothing to learn, {before:?}");
    assert!(after.tv <= 0.05, "{what}, {objective}: {before:?}, then {after:?}");
}

fn check_graphs(what: &str, make: impl Fn() -> GraphEnv, log_r: fn(&GraphState) -> f64, steps: usize) {
    for (k, objective) in objectives().into_iter().enumerate() {
        let env = make();
        let again = make();
        let net = GraphNetConfig {
            conv: if env.schema().kind == GraphKind::Directed { ConvKind::Directed } else { ConvKind::Gin },
            layers: 1,
            embedding: 32,
            identity: true,
            estimators: EstimatorsConfig::with_flow(objective.needs().has(Quantity::LogFlow)),
            ..GraphNetConfig::default()
        };
        let net = GraphNet::new(&env, net, Device::Cpu, Kind::Float, &mut Rng::seeded(k as u64)).unwrap();
        let name = objective.name();
        let distances =
            train(env, &again, PerGraph(log_r), GraphPolicy(net), objective, config(steps, 48), k as u64);
        check(distances, what, name);
    }
}

#[test]
fn every_objective_learns_triangles() {
    one_thread();
    check_graphs("triangles", Triangles::env, |graph| 1.5 * graph.n_edges() as f64, 200);
}

#[test]
fn every_objective_learns_rings_of_three() {
    one_thread();
    let make = || Ring::new(3, GraphKind::Directed).unwrap().into_env();
    check_graphs(
        "rings of three",
        make,
        |graph| {
            let ring =
                graph.n_edges() == 3 && (0..3).all(|a| graph.out_degree(a) == 1 && graph.in_degree(a) == 1);
            if ring { 20f64.ln() } else { 0.0 }
        },
        500,
    );
}

#[test]
fn every_objective_learns_a_grid() {
    one_thread();
    for (k, objective) in objectives().into_iter().enumerate() {
        let grid = HyperGrid::new(2, 4).unwrap();
        let env = grid.env();
        let reward = OriginalReward::new(&grid, 0.1, 2.0, 2.0).unwrap();
        let net = MlpPolicyConfig {
            mlp: MlpConfig { hidden: vec![64, 64], ..MlpConfig::default() },
            estimators: EstimatorsConfig::with_flow(objective.needs().has(Quantity::LogFlow)),
            ..MlpPolicyConfig::default()
        };
        let mut rng = Rng::seeded(k as u64);
        let policy = MlpPolicy::new(
            &env,
            KHot::new(grid.ndim(), grid.height()),
            net,
            Device::Cpu,
            Kind::Float,
            &mut rng,
        )
        .unwrap();
        let name = objective.name();
        let distances = train(env.clone(), &env, reward, policy, objective, config(400, 32), k as u64);
        check(distances, "grid", name);
    }
}

/// Tests a training like that of `examples/ring.rs`, with a smaller network, fewer prefilled trajectories,
/// and fewer steps.
#[test]
fn all_rings_of_four_nodes_are_found() {
    one_thread();
    let ring = Ring::new(4, GraphKind::Directed).unwrap();
    let env = ring.env().clone();
    let reward = RingReward::default();
    let graph = StateGraph::build(&env, 4096).unwrap();
    let target = graph.target_distribution(&reward, None).unwrap();
    let is_ring: Vec<bool> = graph.states().graphs().iter().map(|graph| ring.is_ring(graph)).collect();
    let mut rng = Rng::seeded(0);
    let net = GraphNetConfig {
        conv: ConvKind::Directed,
        layers: 1,
        embedding: 64,
        identity: true,
        global: false,
        ..GraphNetConfig::default()
    };
    let net = GraphNet::new(&env, net, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let steps = 400;
    let config = TrainerConfig {
        batch: 128,
        epsilon: Some(Schedule::Linear { from: 0.1, to: 0.0, steps: steps / 2 }),
        adam: AdamConfig { lr: 1e-3, log_z_lr: 1e-1, ..AdamConfig::default() },
        ..TrainerConfig::default()
    };
    let replay = ReplayConfig {
        capacity: 10_000,
        eviction: Eviction::BestReward,
        draw: Draw::RewardPrioritised { exponent: 1.0 },
    };
    let trainer =
        Trainer::new(env.clone(), reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
    let mut trainer = trainer.with_replay(ReplayBuffer::distinct(replay).unwrap());
    trainer.prefill(20_000).unwrap();
    let mut log_z = 0.0;
    for _ in 0..steps {
        log_z = trainer.step().unwrap().log_z;
    }
    let learned = graph.terminating_distribution(&env, trainer.policy(), None).unwrap();
    let distances = Distances::between(&learned.probs, &target.probs).unwrap();
    assert_eq!(modes_found(&learned.probs, &is_ring, 6).unwrap(), 6);
    assert!(distances.jsd <= 0.01, "{distances:?}");
    assert!((log_z - reward.log_z(&ring)).abs() < 0.1, "{log_z}");
}
