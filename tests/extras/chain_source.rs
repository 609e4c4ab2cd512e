//! Tests of chains as a source of training trajectories.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use gfn::env::{Reward, Rows, StateGraph, VectorEnv, VectorStates};
use gfn::graph::{GraphEnv, PerGraph};
use gfn::metrics::Distances;
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig};
use gfn::train::{Persist, TrainEnv, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_extras::chains::{ChainConfig, ChainSource, ChainSourceConfig, Proposal, Restart, Starts};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::hypergrid::HyperGrid;
use tch::{Device, Kind, Tensor};

use crate::trainers::{Folder, bytes, state, steps};

/// The number of steps over which the learning rate falls to 0.
const STEPS: usize = 500;

/// The number of reward calls from which on the reward fails.
const FAILS_FROM: u64 = 1 << 40;

/// Two narrow peaks on a grid, and a count of reward calls.
struct Peaks(Arc<AtomicU64>);

impl Reward<VectorStates> for Peaks {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        if self.0.fetch_add(states.len() as u64, Relaxed) >= FAILS_FROM {
            return Err(Error::contract("the reward works", "it was told to fail"));
        }
        let height = |row: &[u16], top: [f64; 2]| {
            let squared = (f64::from(row[0]) - top[0]).powi(2) + (f64::from(row[1]) - top[1]).powi(2);
            (-squared / 0.5).exp()
        };
        let value = |row: &[u16]| (1e-4 + height(row, [6.0, 1.0]) + height(row, [2.0, 6.0])).ln();
        Ok(states.rows().map(value).collect())
    }
}

fn peaked(config: ChainSourceConfig, seed: u64, share: f64) -> (Trainer<VectorEnv>, Arc<AtomicU64>) {
    tch::set_num_threads(1);
    let env = HyperGrid::new(2, 8).unwrap().env();
    let calls = Arc::new(AtomicU64::new(0));
    let mut rng = Rng::seeded(seed);
    let network = MlpPolicyConfig::default();
    let policy =
        MlpPolicy::new(&env, KHot::from_env(&env), network, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let training = TrainerConfig {
        batch: 16,
        adam: AdamConfig { lr: 3e-3, log_z_lr: 0.1, ..AdamConfig::default() },
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: STEPS },
        ..TrainerConfig::default()
    };
    let source = ChainSource::new(config).unwrap();
    let trainer = Trainer::new(env, Peaks(calls.clone()), policy, TrajectoryBalance, training, rng)
        .unwrap()
        .with_source(share, source)
        .unwrap();
    (trainer, calls)
}

fn restarting() -> ChainSourceConfig {
    let starts = Starts::Uniform { candidates: 12, rounds: 10 };
    ChainSourceConfig {
        ladders: 3,
        rounds: 2,
        restart: Some(Restart { patience: 5, starts }),
        ..ChainSourceConfig::default()
    }
}

fn tv(trainer: &Trainer<VectorEnv>) -> f64 {
    let context = trainer.context();
    let graph = StateGraph::build(&context.env, 1_000).unwrap();
    let target = graph.target_distribution(context.reward.as_ref(), None).unwrap();
    let learned = graph.terminating_distribution(&context.env, context.policy(), None).unwrap();
    Distances::between(&learned.probs, &target.probs).unwrap().tv
}

/// Tests that a policy learns the exact distribution from what chains find, also after the chains have
/// stopped.
#[test]
fn a_policy_learns_peaks_from_chains() {
    let starts = Starts::Uniform { candidates: 12, rounds: 50 };
    let config = ChainSourceConfig {
        chains: ChainConfig { powers: vec![4.0], ..ChainConfig::default() },
        max_reward_calls: Some(800),
        restart: Some(Restart { patience: 8, starts }),
        exponent: 0.5,
        ..ChainSourceConfig::default()
    };
    let (mut trainer, calls) = peaked(config, 0, 0.75);
    let before = tv(&trainer);
    calls.store(0, Relaxed);
    steps(&mut trainer, STEPS);
    let source: &ChainSource<VectorEnv> = trainer.source().unwrap();
    assert!(source.memory().len() > 40, "{}", source.memory().len());
    assert!(trainer.reward_calls() < 800 + 16 * 12 + 4 * STEPS as u64, "{}", trainer.reward_calls());
    let after = tv(&trainer);
    assert!(after < 0.05 && before > 0.5, "{before} {after}");
}

/// Tests that every reward call is counted, and that objects of the trainer itself cost nothing.
#[test]
fn reward_calls_are_counted() {
    for (config, share) in [
        (restarting(), 0.5),
        (ChainSourceConfig { ladders: 3, ..ChainSourceConfig::default() }, 0.5),
        (ChainSourceConfig { ladders: 20, rounds: 1, ..ChainSourceConfig::default() }, 1.0),
    ] {
        let (mut trainer, calls) = peaked(config, 1, share);
        // The first step also checks the reward, which isn't a call of training.
        trainer.step().unwrap();
        for _ in 0..12 {
            let before = (calls.load(Relaxed), trainer.reward_calls());
            trainer.draw().unwrap();
            assert_eq!(calls.load(Relaxed) - before.0, trainer.reward_calls() - before.1);
        }
    }
    // After the budget only the policy's new objects are scored.
    let config = ChainSourceConfig { max_reward_calls: Some(100), ..restarting() };
    let (mut trainer, _) = peaked(config, 1, 0.5);
    for _ in 0..60 {
        trainer.draw().unwrap();
    }
    let before = trainer.reward_calls();
    trainer.draw().unwrap();
    assert_eq!(trainer.reward_calls() - before, 8);
    assert!((60 * 8 + 100..60 * 8 + 200).contains(&before), "{before}");
}

fn colored(config: ChainSourceConfig, seed: u64, share: f64) -> (Trainer<GraphEnv>, ()) {
    tch::set_num_threads(1);
    let env = ColoredGraphs::new(4).unwrap().into_env();
    let mut rng = Rng::seeded(seed);
    let network = GraphNetConfig { layers: 1, embedding: 8, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, network, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let reward = PerGraph(|graph: &gfn::graph::GraphState| 0.7 * graph.n_edges() as f64);
    let training = TrainerConfig { batch: 8, ..TrainerConfig::default() };
    let trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, training, rng)
        .unwrap()
        .with_source(share, ChainSource::new(config).unwrap())
        .unwrap();
    (trainer, ())
}

/// Saves after some steps, resumes in another trainer, and compares the further steps of both bit for bit.
fn check_resume<E: TrainEnv, T>(name: &str, make: impl Fn(u64) -> (Trainer<E>, T)) {
    let folder = Folder::new(&format!("chains-{name}"));
    let (mut whole, _) = make(1);
    steps(&mut whole, 6);
    let middle = folder.join("middle");
    whole.save(&middle).unwrap();
    let expected = steps(&mut whole, 6);
    let (mut resumed, _) = make(2);
    steps(&mut resumed, 2);
    resumed.resume(&middle).unwrap();
    assert_eq!(state(&resumed, &folder), bytes(&middle), "{name}: loaded as saved");
    assert_eq!(steps(&mut resumed, 6), expected, "{name}");
    assert_eq!(state(&resumed, &folder), state(&whole, &folder), "{name}");
}

#[test]
fn a_resumed_run_continues_bit_for_bit() {
    let ladder = ChainConfig {
        powers: vec![1.0, 0.5, 0.0],
        proposals: vec![(1.0, Proposal::OneMove), (0.5, Proposal::Policy { max_back: 4 })],
        ..ChainConfig::default()
    };
    let uniform = ChainSourceConfig { chains: ladder.clone(), ..restarting() };
    let by_policy = ChainSourceConfig {
        chains: ladder,
        restart: Some(Restart { patience: 3, starts: Starts::Policy }),
        ladders: 3,
        rounds: 2,
        ..ChainSourceConfig::default()
    };
    for (k, config) in [uniform, by_policy, ChainSourceConfig::default()].into_iter().enumerate() {
        check_resume(&format!("grid-{k}"), |seed| peaked(config.clone(), seed, 0.5));
        check_resume(&format!("colored-{k}"), |seed| colored(config.clone(), seed, 0.5));
    }
}

/// Tests that a source keeps its chains, and continues, after a reward failed in a round or for new starts.
#[test]
fn an_error_loses_no_chains() {
    let starts = Starts::Uniform { candidates: 12, rounds: 10 };
    for patience in [1, 1_000] {
        let config = ChainSourceConfig { restart: Some(Restart { patience, starts }), ..restarting() };
        let (mut trainer, calls) = peaked(config, 1, 1.0);
        steps(&mut trainer, 4);
        let saved = |trainer: &Trainer<VectorEnv>| {
            let source: &ChainSource<VectorEnv> = trainer.source().unwrap();
            let state = source.state(&trainer.context().env).unwrap();
            let numbers = |name: &str| {
                let (_, tensor) = state.iter().find(|(other, _)| other == name).unwrap();
                Vec::<i64>::try_from(tensor.shallow_clone()).unwrap()
            };
            (numbers("chains/counts"), numbers("explorers/counts"), numbers("flags"), source.memory().len())
        };
        let before = saved(&trainer);
        let so_far = calls.swap(FAILS_FROM, Relaxed);
        assert!(trainer.draw().err().unwrap().to_string().contains("told to fail"));
        let after = saved(&trainer);
        assert_eq!((&after.0, &after.2, after.3), (&before.0, &before.2, before.3), "{patience}");
        assert_eq!(after.1[0] > before.1[0], patience == 1, "only a restart runs the explorers");
        calls.store(so_far, Relaxed);
        let counted = trainer.reward_calls();
        trainer.draw().unwrap();
        assert_eq!(calls.load(Relaxed) - so_far, trainer.reward_calls() - counted);
        assert!(saved(&trainer).0[0] > before.0[0]);
    }
}

/// Tests that a resumed source proposes as before, even if it would choose other defaults for its objects.
#[test]
fn saved_chains_keep_their_proposals() {
    let (mut trainer, _) = peaked(ChainSourceConfig::default(), 0, 0.5);
    steps(&mut trainer, 2);
    let env = trainer.context().env.clone();
    let mut state = trainer.source::<ChainSource<VectorEnv>>().unwrap().state(&env).unwrap();
    let place = state.iter().position(|(name, _)| name == "chains/proposals").unwrap();
    let one_move = Tensor::from_slice(&[1.0, 0.0, 0.0]);
    assert_eq!(state[place].1, one_move);
    let three_back = Tensor::from_slice(&[1.0, 1.0, 3.0]);
    state[place].1 = three_back.shallow_clone();
    let mut resumed = ChainSource::<VectorEnv>::new(ChainSourceConfig::default()).unwrap();
    resumed.load_state(&env, &state).unwrap();
    assert_eq!(resumed.state(&env).unwrap()[place].1, three_back);
}

#[test]
fn bad_settings_are_errors() {
    let uniform =
        |patience, candidates| Some(Restart { patience, starts: Starts::Uniform { candidates, rounds: 1 } });
    let default = ChainSourceConfig::default;
    for config in [
        ChainSourceConfig { ladders: 0, ..default() },
        ChainSourceConfig { capacity: 0, ..default() },
        ChainSourceConfig { rounds: 0, ..default() },
        ChainSourceConfig { max_reward_calls: Some(0), ..default() },
        ChainSourceConfig { exponent: f64::NAN, ..default() },
        ChainSourceConfig { restart: uniform(0, 1), ..default() },
        ChainSourceConfig { restart: uniform(1, 0), ..default() },
        ChainSourceConfig { chains: ChainConfig { powers: vec![], ..ChainConfig::default() }, ..default() },
    ] {
        let error = ChainSource::<VectorEnv>::new(config.clone()).map(drop).unwrap_err();
        assert!(matches!(error, Error::Config { .. }), "{config:?}: {error}");
    }
    // A checkpoint of other chains is refused.
    let folder = Folder::new("other-chains");
    let saved = folder.join("saved");
    let (mut trainer, _) = peaked(restarting(), 0, 0.5);
    steps(&mut trainer, 2);
    trainer.save(&saved).unwrap();
    let with = |chains: ChainConfig| ChainSourceConfig { chains, ..restarting() };
    let powers = ChainConfig { powers: vec![0.5], ..ChainConfig::default() };
    let proposals = vec![(1.0, Proposal::OneMove), (1.0, Proposal::BackAndForth { max_back: 2 })];
    for (config, expected) in [
        (ChainSourceConfig { ladders: 5, ..restarting() }, "hasn't 5 numbers"),
        (with(powers), "the powers, exchanges and scored changes of the saved chains"),
        (with(ChainConfig { proposals, ..ChainConfig::default() }), "the proposals of the saved chains"),
    ] {
        let (mut other, _) = peaked(config, 0, 0.5);
        let error = other.resume(&saved).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
