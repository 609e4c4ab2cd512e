//! Small trainers that several tests share, and temporary folders for their checkpoints.

use std::fs;
use std::path::{Path, PathBuf};

use gfn::Rng;
use gfn::env::VectorEnv;
use gfn::graph::PerGraph;
use gfn::graph::{GraphEnv, GraphKind, GraphState};
use gfn::nn::{BackwardPolicy, ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig, MlpConfig};
use gfn::objective::{DetailedBalance, SubTrajectoryBalance, TrajectoryBalance, Weighting};
use gfn::optim::Schedule;
use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::train::{ReplayPath, StepStats, TrainEnv, Trainer, TrainerConfig};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use gfn_gym::ring::Ring;
use tch::{Device, Kind};

pub(crate) type RingTrainer = Trainer<GraphEnv>;
pub(crate) type ColoredTrainer = Trainer<GraphEnv>;
pub(crate) type GridTrainer = Trainer<VectorEnv>;

/// A temporary folder, which is empty at first and is removed when the `Folder` is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gfn-{name}-{}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Returns the contents of the two files of the checkpoint at this path.
pub(crate) fn files(path: &Path) -> [Vec<u8>; 2] {
    ["manifest.json", "model.safetensors"].map(|name| fs::read(path.join(name)).unwrap())
}

/// Returns the contents of the checkpoint at this path, without the id of the run and the checksum that
/// depends on this id.
pub(crate) fn bytes(path: &Path) -> Vec<Vec<u8>> {
    let [manifest, tensors] = files(path);
    let mut manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    manifest["checksum"].take();
    manifest["state"]["run_id"].take();
    vec![serde_json::to_vec(&manifest).unwrap(), tensors]
}

/// Returns everything that a trainer saves: weights, moments of the optimizer, random numbers, buffer, and
/// step.
pub(crate) fn state<E: TrainEnv>(trainer: &Trainer<E>, folder: &Folder) -> Vec<Vec<u8>> {
    let path = folder.join("state");
    trainer.save(&path).unwrap();
    bytes(&path)
}

/// Returns the numbers of a step's statistics as bits, except the times, which differ from run to run.
pub(crate) fn bits(stats: &StepStats) -> [u64; 6] {
    let StepStats { loss, log_z, mean_len, states, distinct, grad_norm, .. } = *stats;
    [loss.to_bits(), log_z.to_bits(), mean_len.to_bits(), states as u64, distinct as u64, grad_norm.to_bits()]
}

pub(crate) fn steps<E: TrainEnv>(trainer: &mut Trainer<E>, n: usize) -> Vec<[u64; 6]> {
    (0..n).map(|_| bits(&trainer.step().unwrap())).collect()
}

/// The settings in which trainers of one environment differ.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) seed: u64,
    pub(crate) batch: usize,
    pub(crate) path: ReplayPath,
    pub(crate) eviction: Eviction,
}

impl Setting {
    pub(crate) fn new(seed: u64, path: ReplayPath) -> Self {
        Self { seed, batch: 24, path, eviction: Eviction::Fifo }
    }

    /// Returns the trainer's settings. Also makes libtorch use one thread: tests compare bits, which depend
    /// on the number of threads, and other tests change this number.
    fn config(&self) -> TrainerConfig {
        tch::set_num_threads(1);
        TrainerConfig {
            batch: self.batch,
            source: DataSource::HALF_REPLAYED,
            replay_after: 1,
            replay_path: self.path,
            epsilon: Some(Schedule::Linear { from: 0.2, to: 0.0, steps: 10 }),
            ..TrainerConfig::default()
        }
    }

    /// Returns settings of a buffer that is so small that it is full after a few steps.
    fn replay(&self) -> ReplayConfig {
        let draw = Draw::RewardPrioritised { exponent: 0.5 };
        ReplayConfig { capacity: 40, eviction: self.eviction, draw }
    }
}

pub(crate) fn ring(setting: Setting) -> RingTrainer {
    let env = Ring::new(4, GraphKind::Directed).unwrap().into_env();
    let mut rng = Rng::seeded(setting.seed);
    let config = GraphNetConfig {
        conv: ConvKind::Directed,
        layers: 1,
        embedding: 16,
        identity: true,
        backward: BackwardPolicy::Separate,
        ..GraphNetConfig::default()
    };
    let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let reward = PerGraph(|graph: &GraphState| 0.3 * graph.n_edges() as f64);
    let trainer =
        Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, setting.config(), rng).unwrap();
    trainer.with_replay(ReplayBuffer::distinct(setting.replay()).unwrap())
}

/// Returns a reward that differs between isomorphism classes, so that draws depend on the buffer's content.
pub(crate) fn colour_reward() -> PerGraph<fn(&GraphState) -> f64> {
    PerGraph(|graph| {
        graph.nodes().filter(|node| node.class == 1).count() as f64 - 0.3 * graph.n_edges() as f64
    })
}

pub(crate) fn colored_graphs(setting: Setting) -> ColoredTrainer {
    let env = ColoredGraphs::new(6).unwrap().into_env();
    let mut rng = Rng::seeded(setting.seed);
    let config = GraphNetConfig {
        embedding: 16,
        pair_walks: Some(2),
        backward: BackwardPolicy::SharedTorso,
        estimators: EstimatorsConfig::with_flow(true),
        ..GraphNetConfig::default()
    };
    let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let objective = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
    let trainer =
        Trainer::new(env, colour_reward(), GraphPolicy(net), objective, setting.config(), rng).unwrap();
    trainer.with_replay(ReplayBuffer::distinct(setting.replay()).unwrap())
}

/// Builds the trainer of [`colored_graphs`] with a buffer of terminal states, without paths.
pub(crate) fn colored_ends(setting: Setting) -> ColoredTrainer {
    colored_graphs(setting).with_replay(ReplayBuffer::distinct(setting.replay()).unwrap().terminal_only())
}

pub(crate) fn hypergrid(setting: Setting) -> GridTrainer {
    let grid = HyperGrid::new(3, 6).unwrap();
    let env = grid.env();
    let mut rng = Rng::seeded(setting.seed);
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![32], ..MlpConfig::default() },
        estimators: EstimatorsConfig::with_flow(true),
        ..MlpPolicyConfig::default()
    };
    let policy = MlpPolicy::new(
        &env,
        KHot::new(grid.ndim(), grid.height()),
        config,
        Device::Cpu,
        Kind::Float,
        &mut rng,
    )
    .unwrap();
    let reward = OriginalReward::standard(&grid).unwrap();
    let trainer =
        Trainer::new(env, reward, policy, DetailedBalance::default(), setting.config(), rng).unwrap();
    // This buffer keeps every trajectory, even if several trajectories end in the same object.
    trainer.with_replay(ReplayBuffer::new(setting.replay()).unwrap())
}
