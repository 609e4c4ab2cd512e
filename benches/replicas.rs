//! A benchmark of replicas: copies of a model that are trained together, each on a thread and with a share of
//! the batch. It measures training steps per second for several numbers of replicas, in turn. Run
//! `cargo bench --bench replicas`, or `cargo bench --bench replicas -- 1 2 4 8` for other numbers of
//! replicas.
//!
//! Learning rates are 0, so that every step does the same work. The batch is the same for every number of
//! replicas.

#![allow(clippy::expect_used, reason = "a bench that can't be set up has nothing better to do than to stop")]

use std::time::Instant;

use gfn::env::Reward;
use gfn::graph::{GraphEnv, GraphKind, GraphStates, PerGraph};
use gfn::group::{Replica, replicate};
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig, MlpConfig};
use gfn::objective::TrajectoryBalance;
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig};
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::TrainEnv;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_dags::{
    BayesianStructure, Bge, BgeConfig, CachedScores, ContinuousData, DagReward, StructureConfig,
    StructurePrior,
};
use gfn_gym::hypergrid::{HyperGrid, RewardKind};
use gfn_gym::ring::{Ring, RingReward};
use gfn_molecules::{MoleculeConfig, MoleculeEnv};
use tch::{Device, Kind};

/// The number of training steps before the measurement starts.
const WARM: usize = 10;
/// The number of measurements for each number of replicas. The median of these measurements is reported.
const ROUNDS: usize = 7;

fn main() {
    Runtime::new(1, DeviceKind::Cpu).expect("one thread");
    let given: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let sizes = if given.is_empty() { vec![1, 2] } else { given };
    println!("{:12} {:>10} {:>10} {:>10} {:>8}", "task", "parameters", "threads", "steps/s", "ratio");
    compare("ring", 100, &sizes, ring);
    compare("structures", 60, &sizes, structures);
    compare("molecules", 20, &sizes, molecules);
    compare("grid", 200, &sizes, grid);
}

/// A function that trains on a number of replicas for a number of steps. Returns the number of trainable
/// scalars of the network, and the seconds that the steps took.
type Run = fn(usize, usize) -> Result<(i64, f64)>;

fn compare(task: &str, steps: usize, sizes: &[usize], run: Run) {
    let mut seconds = vec![Vec::new(); sizes.len()];
    let mut parameters = 0;
    for _ in 0..ROUNDS {
        for (size, seconds) in sizes.iter().zip(&mut seconds) {
            let (count, taken) = run(*size, steps).expect("a run");
            parameters = count;
            seconds.push(taken);
        }
    }
    let rates: Vec<f64> = seconds
        .iter_mut()
        .map(|seconds| {
            seconds.sort_by(f64::total_cmp);
            steps as f64 / seconds[ROUNDS / 2]
        })
        .collect();
    for (size, rate) in sizes.iter().zip(&rates) {
        println!("{task:12} {parameters:>10} {size:>10} {rate:>10.1} {:>8.2}", rate / rates[0]);
    }
}

/// Measures the seconds of `steps` training steps. `make` builds a trainer for each replica.
fn timed<E: TrainEnv + 'static>(
    replicas: usize,
    steps: usize,
    make: impl Fn() -> Result<Trainer<E>> + Sync,
) -> Result<(i64, f64)> {
    replicate(replicas, |replica: Replica| {
        let mut trainer = make()?.with_group(replica)?;
        (0..WARM).try_for_each(|_| trainer.step().map(drop))?;
        let started = Instant::now();
        (0..steps).try_for_each(|_| trainer.step().map(drop))?;
        Ok((trainer.n_parameters(), started.elapsed().as_secs_f64()))
    })
}

fn frozen(batch: usize) -> TrainerConfig {
    TrainerConfig {
        batch,
        epsilon: Some(Schedule::Constant(0.1)),
        adam: AdamConfig { lr: 0.0, log_z_lr: 0.0, ..AdamConfig::default() },
        ..TrainerConfig::default()
    }
}

fn on_graphs(
    env: GraphEnv,
    reward: impl Reward<GraphStates> + 'static,
    network: GraphNetConfig,
) -> Result<Trainer<GraphEnv>> {
    let mut rng = Rng::seeded(0);
    let net = GraphNet::new(&env, network, Device::Cpu, Kind::Float, &mut rng)?;
    Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, frozen(128), rng)
}

/// Trains on rings of five directed nodes, with the network of `reproduce ring --nodes 5`.
fn ring(threads: usize, steps: usize) -> Result<(i64, f64)> {
    timed(threads, steps, || {
        let network = GraphNetConfig {
            conv: ConvKind::Directed,
            layers: 2,
            embedding: 128,
            identity: true,
            global: false,
            backward: BackwardPolicy::Uniform,
            initial_exit_bias: 25f64.ln(),
            ..GraphNetConfig::default()
        };
        on_graphs(Ring::new(5, GraphKind::Directed)?.into_env(), RingReward::new(100.0, 1e-6)?, network)
    })
}

/// Trains on molecules of at most six atoms, with the network of `reproduce molecule --max-atoms 6`.
fn molecules(threads: usize, steps: usize) -> Result<(i64, f64)> {
    timed(threads, steps, || {
        let network = GraphNetConfig {
            layers: 3,
            embedding: 64,
            pair_walks: Some(3),
            global: true,
            backward: BackwardPolicy::SharedTorso,
            ..GraphNetConfig::default()
        };
        let env = MoleculeEnv::new(MoleculeConfig::new(6))?.into_env();
        on_graphs(env, PerGraph(|graph: &gfn::graph::GraphState| graph.n_nodes() as f64 * 0.1), network)
    })
}

/// Trains on structures of Bayesian networks (acyclic graphs) of five variables with a graph network, as
/// `reproduce bayesian-structure` does.
fn structures(threads: usize, steps: usize) -> Result<(i64, f64)> {
    timed(threads, steps, || {
        let mut rng = Rng::seeded(0);
        let rows: Vec<[f64; 5]> = (0..100).map(|_| std::array::from_fn(|_| rng.normal())).collect();
        let data = ContinuousData::from_rows(&rows)?;
        let env = BayesianStructure::new(StructureConfig::new(5))?.into_env();
        let reward = DagReward::new(
            CachedScores::new(Bge::new(&data, BgeConfig::default())?),
            StructurePrior::Uniform,
        )?;
        let config = GraphNetConfig { conv: ConvKind::Directed, ..GraphNetConfig::default() };
        let policy = GraphPolicy(GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut rng)?);
        Trainer::new(env, reward, policy, TrajectoryBalance, frozen(128), rng)
    })
}

/// Trains on a grid of 16^4 points, as `reproduce hypergrid --ndim 4 --height 16 --batch 128` does.
fn grid(threads: usize, steps: usize) -> Result<(i64, f64)> {
    timed(threads, steps, || {
        let mut rng = Rng::seeded(0);
        let grid = HyperGrid::new(4, 16)?;
        let env = grid.env();
        let config = MlpPolicyConfig {
            mlp: MlpConfig { hidden: vec![256; 2], ..MlpConfig::default() },
            backward: BackwardPolicy::SharedTorso,
            ..MlpPolicyConfig::default()
        };
        let policy = MlpPolicy::new(&env, KHot::new(4, 16), config, Device::Cpu, Kind::Float, &mut rng)?;
        let reward = RewardKind::Original.standard(&grid)?;
        Trainer::new(env, reward, policy, TrajectoryBalance, frozen(128), rng)
    })
}
