//! Tests that every setting of trainer, optimizer, buffer and network changes a run or gives an error, so
//! that no setting is ignored. The tests change settings in their JSON form, so new settings must be added
//! here.

use gfn::graph::{GraphKind, GraphState, PerGraph, Semantics};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, GraphNetConfig};
use gfn::objective::{DetailedBalance, TrajectoryBalance};
use gfn::optim::AdamConfig;
use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::train::TrainEnv;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::set_addition::SetAddition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tch::{Device, Kind};

use crate::nets::everything_under;

/// The result of some training steps: parameters, losses, and the number of reward calls.
#[derive(PartialEq, Debug)]
struct Run {
    parameters: Vec<(String, f64)>,
    losses: Vec<f64>,
    reward_calls: u64,
}

fn run<E: TrainEnv>(mut trainer: Trainer<E>, steps: usize) -> Result<Run> {
    let losses = (0..steps).map(|_| Ok(trainer.step()?.loss)).collect::<Result<_>>()?;
    let sum = |tensor: &tch::Tensor| tensor.to_kind(Kind::Double).sum(Kind::Double).double_value(&[]);
    let parameters = trainer.policy().parameters().into_iter().flat_map(|parameters| parameters.iter());
    let parameters = parameters.map(|parameter| (parameter.name.clone(), sum(&parameter.tensor))).collect();
    Ok(Run { parameters, losses, reward_calls: trainer.reward_calls() })
}

/// Changes one setting at a time. Checks that the run differs from the base run, or fails with an error
/// about settings.
fn check<C: Serialize + DeserializeOwned>(
    base: &C,
    others: &[(&str, Value)],
    run: impl Fn(&C) -> Result<Run>,
) {
    check_all_but(&[], base, others, run);
}

/// Checks the settings as [`check`] does, but without those in `left_out`, which have separate checks.
fn check_all_but<C: Serialize + DeserializeOwned>(
    left_out: &[&str],
    base: &C,
    others: &[(&str, Value)],
    run: impl Fn(&C) -> Result<Run>,
) {
    check_some(base, others, run);
    let mut covered: Vec<&str> =
        others.iter().map(|(name, _)| *name).chain(left_out.iter().copied()).collect();
    covered.sort_unstable();
    covered.dedup();
    let settings = serde_json::to_value(base).unwrap();
    let mut all: Vec<&str> = settings.as_object().unwrap().keys().map(String::as_str).collect();
    all.sort_unstable();
    assert_eq!(all, covered, "another setting needs another value here");
}

/// Checks that each of these settings changes the run or gives an error.
fn check_some<C: Serialize + DeserializeOwned>(
    base: &C,
    others: &[(&str, Value)],
    run: impl Fn(&C) -> Result<Run>,
) {
    let settings = serde_json::to_value(base).unwrap();
    let expected = run(base).unwrap();
    assert_eq!(run(base).unwrap(), expected, "a run is the same again");
    for (name, value) in others {
        let mut changed = settings.clone();
        assert_ne!(changed[name], *value, "{name}");
        changed[name] = value.clone();
        match serde_json::from_value::<C>(changed).map(|config| run(&config)) {
            Ok(Ok(got)) => assert_ne!(got, expected, "{name} = {value} changes nothing"),
            Ok(Err(Error::Config { .. } | Error::Missing { .. } | Error::StepLimit { .. })) => {}
            // The value may be refused, but not because this test misspelt the name of a variant.
            Err(error) => {
                assert!(!error.to_string().contains("unknown variant"), "{name} = {value}: {error}")
            }
            Ok(Err(error)) => panic!("{name} = {value}: {error}"),
        }
    }
}

fn set_trainer_run(config: TrainerConfig, replay: ReplayConfig) -> Result<Run> {
    let env = SetAddition::new(5, 3, false)?.env();
    let mut rng = Rng::seeded(3);
    let mlp = gfn::nn::MlpConfig { hidden: vec![8], ..Default::default() };
    let policy = MlpPolicyConfig { mlp, backward: BackwardPolicy::SharedTorso, ..MlpPolicyConfig::default() };
    let policy = MlpPolicy::new(&env, KHot::new(5, 2), policy, Device::Cpu, Kind::Float, &mut rng)?;
    let reward = |states: &gfn::env::VectorStates, _: Option<&tch::Tensor>| -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| row.iter().map(|&x| 0.4 * f64::from(x)).sum()).collect())
    };
    let trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, rng)?;
    run(trainer.with_replay(ReplayBuffer::new(replay)?), 8)
}

fn small() -> TrainerConfig {
    let adam = AdamConfig { lr: 0.3, ..AdamConfig::default() };
    TrainerConfig { batch: 8, replay_after: 0, adam, ..TrainerConfig::default() }
}

fn buffer() -> ReplayConfig {
    ReplayConfig { capacity: 12, eviction: Eviction::Fifo, draw: Draw::Uniform }
}

fn constant(value: f64) -> Value {
    json!({ "Constant": value })
}

#[test]
fn settings_of_a_trainer() {
    let others = [
        ("batch", json!(4)),
        ("source", json!({ "on_policy": 1.0 })),
        ("replay_after", json!(3)),
        ("replay_path", json!("PolicyBackward")),
        ("epsilon", constant(1.0)),
        ("temperature", constant(3.0)),
        ("exit_bias", constant(2.0)),
        ("noise", constant(1.0)),
        ("local_search", json!({ "rounds": 1, "max_back": 2, "acceptance": "Greedy" })),
        // Scoring a batch in chunks changes a run only by rounding, which is enough to differ from the base
        // run.
        ("chunk", json!(3)),
        ("transitions", json!({ "size": 4, "updates_per_draw": 2 })),
        ("reward_exponent", json!({ "Linear": { "from": 0.5, "to": 1.0, "steps": 4 } })),
        ("lr_scale", constant(0.5)),
        ("adam", serde_json::to_value(AdamConfig::default()).unwrap()),
        ("regression", json!("ShiftedCosh")),
        ("max_steps", json!(1)),
        // The treatment of warnings isn't in this list, because it is a setting of the training loop.
        // `defaults.rs` tests it.
    ];
    // The place of roll-outs changes rounding and which random numbers a trajectory gets, but not the
    // distribution of trajectories, which `rollout_places.rs` tests.
    check_all_but(&["rollouts"], &small(), &others, |config| set_trainer_run(config.clone(), buffer()));
}

#[test]
fn settings_of_adam() {
    let others = [
        ("lr", json!(0.1)),
        ("log_z_lr", json!(1.0)),
        ("beta1", json!(0.5)),
        ("beta2", json!(0.5)),
        ("eps", json!(0.1)),
        ("weight_decay", json!(0.5)),
        ("max_norm", json!(1e-3)),
    ];
    check(&small().adam, &others, |adam| set_trainer_run(TrainerConfig { adam: *adam, ..small() }, buffer()));
}

#[test]
fn settings_of_a_buffer() {
    let others = [
        ("capacity", json!(4)),
        ("eviction", json!("BestReward")),
        ("draw", json!({ "RewardPrioritised": { "exponent": 3.0 } })),
        ("draw", json!({ "LossPrioritised": { "exponent": 3.0 } })),
        ("draw", json!({ "RankPrioritised": { "by": "Loss", "exponent": 3.0 } })),
        ("draw", json!({ "WeightedRanks": { "by": "Reward", "k": 0.5 } })),
    ];
    check(&buffer(), &others, |replay| set_trainer_run(small(), *replay));
    let others = [
        ("capacity", json!(5)),
        ("eviction", json!("BestReward")),
        ("draw", json!({ "RankPrioritised": { "by": "Loss", "exponent": 3.0 } })),
        ("draw", json!({ "RankPrioritised": { "by": "Reward", "exponent": 0.5 } })),
    ];
    let ranks = Draw::RankPrioritised { by: gfn::replay::RankBy::Reward, exponent: 3.0 };
    check(&ReplayConfig { draw: ranks, ..buffer() }, &others, |replay| set_trainer_run(small(), *replay));
}

fn graphs(semantics: Semantics, config: &GraphNetConfig) -> Result<Run> {
    let env = everything_under(semantics, GraphKind::Undirected, 3);
    let mut rng = Rng::seeded(3);
    let net = gfn::nn::GraphNet::new(&env, config.clone(), Device::Cpu, Kind::Float, &mut rng)?;
    let reward = PerGraph(|graph: &GraphState| 0.3 * graph.n_edges() as f64);
    let trainer = if config.estimators.flow {
        Trainer::new(env, reward, GraphPolicy(net), DetailedBalance::default(), small(), rng)
    } else {
        Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, small(), rng)
    };
    run(trainer?, 2)
}

fn net() -> GraphNetConfig {
    GraphNetConfig { layers: 1, embedding: 8, ..GraphNetConfig::default() }
}

#[test]
fn settings_of_a_graph_network() {
    let others = [
        ("conv", json!("Gin")),
        ("conv", json!({ "Transformer": { "heads": 2 } })),
        ("layers", json!(2)),
        ("embedding", json!(16)),
        ("identity", json!(false)),
        ("pair_walks", json!(2)),
        ("global", json!(false)),
        ("backward", json!("SharedTorso")),
        ("symmetry", json!("Exact")),
        ("estimators", json!({ "flow": true, "initial_log_z": 0.0, "n_conditions": 0, "logit_scale": null })),
        ("initial_exit_bias", json!(1.0)),
    ];
    let configured = GraphNetConfig {
        degrees: true,
        closed_walks: Some(2),
        norm: gfn::nn::NormKind::Graph,
        jumping: gfn::nn::JumpingKnowledge::Concat,
        ..net()
    };
    let more = [
        ("conv", json!({ "Gat": { "heads": 2 } })),
        ("conv", json!({ "Gps": { "heads": 2 } })),
        ("degrees", json!(false)),
        ("closed_walks", json!(3)),
        ("norm", json!("Layer")),
        ("norm", json!("None")),
        ("jumping", json!("Last")),
        ("jumping", json!("Max")),
        ("unit", json!(2.0)),
    ];
    let run = |config: &GraphNetConfig| graphs(Semantics::Labelled, config);
    let all = [&others[2..], &more].concat();
    check_all_but(&["ablation"], &configured, &all, run);
    check_some(&net(), &others, run);
    // The convolution GIN can't see all properties of the environment's graphs, which is an error if
    // `ablation` is `false`.
    let blind = GraphNetConfig { conv: gfn::nn::ConvKind::Gin, ablation: true, ..net() };
    check_some(&blind, &[("ablation", json!(false))], run);
    // In an environment up to isomorphism the number of automorphisms is an input of a network, unless
    // `symmetry` is `Ignored`.
    let unseen = GraphNetConfig { symmetry: gfn::nn::SymmetryInput::Ignored, ..net() };
    let run = |config: &GraphNetConfig| graphs(Semantics::UpToIsomorphism, config).unwrap();
    assert_ne!(run(&unseen), run(&net()));
    // A convolution that can't distinguish all graphs must be an error, unless it is allowed explicitly.
    let blind = GraphNetConfig { conv: gfn::nn::ConvKind::Gin, ..net() };
    assert!(matches!(graphs(Semantics::Labelled, &blind), Err(Error::Config { .. })));
    assert!(graphs(Semantics::Labelled, &GraphNetConfig { ablation: true, ..blind }).is_ok());
    let heads = |heads| {
        graphs(
            Semantics::Labelled,
            &GraphNetConfig { conv: gfn::nn::ConvKind::Transformer { heads }, ..net() },
        )
    };
    assert_ne!(heads(2).unwrap(), heads(4).unwrap());
}

#[test]
fn settings_of_estimators() {
    let others = [
        ("flow", json!(true)),
        ("initial_log_z", json!(1.0)),
        ("n_conditions", json!(2)),
        ("logit_scale", json!({ "hidden": [4], "activation": "relu", "layer_norm": false })),
    ];
    check(&EstimatorsConfig::default(), &others, |estimators| {
        graphs(Semantics::Labelled, &GraphNetConfig { estimators: estimators.clone(), ..net() })
    });
}
