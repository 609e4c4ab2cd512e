//! Tests that untrained policies of every kind are near the uniform policy, whatever the size of the states.

use crate::nets::{CONVS, KINDS, configs};
use gfn::Rng;
use gfn::env::{DiscreteEnv, Env, Slots, VectorStates};
use gfn::examples::word_env;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, Edge, Free, GraphEnv, GraphKind, GraphState, GraphStates,
    Semantics,
};
use gfn::nn::{
    BackwardPolicy, ConvKind, EdgeMlp, EdgeMlpConfig, GraphNet, GraphNetConfig, GraphNetwork, MlpConfig,
    NormKind, SequenceKind, SequenceNetConfig,
};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{
    GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy, SequenceLayout, SequencePolicy,
    SequencePolicyConfig,
};
use tch::{Device, Kind};

/// The largest permitted difference of log-probabilities from the uniform policy, which means a factor of 12
/// in probability.
const BOUND: f64 = 2.5;
/// The sizes of the tested states: how many nodes a graph has, or how many letters a word has.
const SIZES: [usize; 3] = [5, 50, 400];
/// The seeds of the tested networks.
const SEEDS: std::ops::Range<u64> = 0..3;

/// Builds an environment of graphs that grow by nodes and edges. Graphs may have up to n + 1 nodes, so that a
/// node can still be added to a state of `n` nodes.
fn growth(kind: GraphKind, n: usize) -> GraphEnv {
    let actions =
        ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::attached(1, 1, n + 1)).with(AddEdge::new(1));
    let env = GraphEnv::new(Free, actions, GraphState::with_nodes(kind, 1)).unwrap();
    env.with_backward(BackwardRule::ByType)
}

/// Builds a random tree of `n` nodes, and adds edges between a share of the pairs of nodes.
fn graph(kind: GraphKind, n: usize, share: f64) -> GraphState {
    let mut rng = Rng::seeded(1);
    let mut graph = GraphState::with_nodes(kind, n);
    for b in 1..n {
        graph.add_edge(rng.below(b) as u32, b as u32, Edge::default()).unwrap();
        for a in 0..b {
            if rng.uniform() < share && !graph.has_edge(a as u32, b as u32) {
                graph.add_edge(a as u32, b as u32, Edge::default()).unwrap();
            }
        }
    }
    graph
}

/// Returns the largest difference of a log-probability from that of the uniform policy, forwards and
/// backwards.
fn largest_deviation<E>(env: &E, policy: &dyn Policy<E>, states: &E::States) -> f64
where
    E: DiscreteEnv<Actions = Slots>,
{
    let wants = Quantities::PF | Quantity::LogPb;
    let evaluation = tch::no_grad(|| policy.evaluate(env, states, None, wants)).unwrap();
    let mut largest: f64 = 0.0;
    for dist in [evaluation.pf.unwrap(), evaluation.pb.unwrap()] {
        let log_probs = dist.host_log_probs().unwrap();
        for ends in dist.legal_offsets().windows(2) {
            let uniform = -((ends[1] - ends[0]) as f64).ln();
            largest = log_probs[ends[0]..ends[1]].iter().map(|p| (p - uniform).abs()).fold(largest, f64::max);
        }
    }
    largest
}

fn check_graph_nets(config: &GraphNetConfig, sizes: &[usize]) {
    for (kind, &n) in KINDS.iter().flat_map(|&kind| sizes.iter().map(move |n| (kind, n))) {
        let env = growth(kind, n);
        for share in [0.0, 0.5] {
            let states = GraphStates::from(vec![graph(kind, n, share)]);
            for seed in SEEDS {
                let net =
                    GraphNet::new(&env, config.clone(), Device::Cpu, Kind::Float, &mut Rng::seeded(seed))
                        .unwrap();
                let deviation = largest_deviation(&env, &GraphPolicy(net), &states);
                assert!(
                    deviation < BOUND,
                    "{kind:?}, {n} nodes, share {share}, seed {seed}: {deviation}, {config:?}"
                );
            }
        }
    }
}

fn config_for(conv: ConvKind) -> GraphNetConfig {
    GraphNetConfig {
        conv,
        backward: BackwardPolicy::SharedTorso,
        ablation: true,
        ..GraphNetConfig::default()
    }
}

#[test]
fn graph_networks_start_near_uniform_at_any_size() {
    for conv in CONVS {
        for global in [true, false] {
            // Networks with attention aren't tested at the largest size, because attention needs a number per
            // head for each message or pair, and thus much memory. Attention takes averages of messages, so
            // its results don't grow with the size.
            let averages = matches!(conv, ConvKind::Gat { .. } | ConvKind::Gps { .. });
            check_graph_nets(
                &GraphNetConfig { global, ..config_for(conv) },
                if averages { &SIZES[..2] } else { &SIZES },
            );
        }
    }
    // Settings without a norm are left out, because their sums over neighbours of neighbours grow with the
    // number of neighbours.
    for config in configs().into_iter().skip(CONVS.len()).filter(|config| config.norm != NormKind::None) {
        let config = GraphNetConfig { backward: BackwardPolicy::SharedTorso, embedding: 128, ..config };
        check_graph_nets(&config, &[5, 50]);
    }
}

/// Checks that `unit` leaves an untrained policy as it is, and that updates by a given learning rate then
/// change log F by more.
#[test]
fn a_unit_changes_only_the_effect_of_updates() {
    const LR: f64 = 1e-4;
    const UPDATES: usize = 100;
    let env = growth(KINDS[0], 5);
    let states = GraphStates::from(vec![graph(KINDS[0], 5, 0.5)]);
    let wants = Quantities::PF | Quantity::LogPb | Quantity::LogFlow;
    // A factor that is a power of two is exact.
    let outcomes = [1.0, 16.0].map(|unit| {
        let mut config = GraphNetConfig { unit, ..config_for(ConvKind::Auto) };
        config.estimators.flow = true;
        let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap();
        let policy = GraphPolicy(net);
        let evaluation = policy.evaluate(&env, &states, None, wants).unwrap();
        let dists = [evaluation.pf.unwrap(), evaluation.pb.unwrap()];
        let log_probs = dists.map(|dist| dist.host_log_probs().unwrap().to_vec());
        let log_flow = || {
            let wants = Quantity::LogFlow.into();
            let values = policy.evaluate(&env, &states, None, wants).unwrap().values;
            values.get(Quantity::LogFlow).unwrap().sum(Kind::Float)
        };
        let before = log_flow().double_value(&[]);
        for _ in 0..UPDATES {
            log_flow().backward();
            for parameter in policy.0.parameters().iter().filter(|one| one.tensor.grad().defined()) {
                let mut gradient = parameter.tensor.grad();
                // As in the first steps of Adam, each parameter moves by the learning rate.
                let change = gradient.sign() * LR;
                tch::no_grad(|| drop(parameter.tensor.shallow_clone().g_add_(&change)));
                let _ = gradient.zero_();
            }
        }
        (log_probs, before, log_flow().double_value(&[]) - before)
    });
    let [(plain_probs, plain, plain_change), (probs, scaled, change)] = &outcomes;
    assert!(plain_probs[0].iter().any(|log_prob| *log_prob != plain_probs[0][0]), "exactly uniform");
    assert_eq!((plain_probs, plain), (probs, scaled));
    assert!(*plain_change > 0.0 && *change > 2.0 * plain_change, "{plain_change} {change}");
}

#[test]
fn pair_features_do_not_change_that() {
    for conv in CONVS {
        check_graph_nets(&GraphNetConfig { pair_walks: Some(3), ..config_for(conv) }, &[5, 50]);
    }
    check_graph_nets(&GraphNetConfig { pair_walks: Some(2), ..config_for(ConvKind::Gin) }, &[200]);
}

/// Builds an environment whose actions add edges between `n` labelled nodes.
fn labelled(n: usize) -> GraphEnv {
    let kind = GraphKind::Directed;
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::new(Free, actions, GraphState::with_nodes(kind, n)).unwrap();
    env.with_backward(BackwardRule::ByType)
}

#[test]
fn perceptrons_on_adjacency_matrices_start_near_uniform_at_any_size() {
    for n in SIZES {
        let env = labelled(n);
        for (seed, share) in SEEDS.flat_map(|seed| [0.0, 0.5].map(|share| (seed, share))) {
            let states = GraphStates::from(vec![graph(GraphKind::Directed, n, share)]);
            let mlp = MlpConfig { hidden: vec![16, 16], ..MlpConfig::default() };
            let config =
                EdgeMlpConfig { mlp, backward: BackwardPolicy::SharedTorso, ..EdgeMlpConfig::default() };
            let net = EdgeMlp::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(seed)).unwrap();
            let deviation = largest_deviation(&env, &GraphPolicy(net), &states);
            assert!(deviation < BOUND, "{n} nodes, share {share}, seed {seed}: {deviation}");
        }
    }
}

#[test]
fn sequence_networks_start_near_uniform_at_any_length() {
    let kinds = [SequenceKind::Lstm, SequenceKind::Gru, SequenceKind::Transformer { heads: 4 }];
    for (length, kind) in SIZES.iter().flat_map(|&length| kinds.map(|kind| (length, kind))) {
        let env = word_env(4, length);
        // The two states are a half-written word, and a word that lacks only its last entry.
        let mut states = VectorStates::filled(length, 2, 0);
        for (row, values) in states.values_mut().chunks_exact_mut(length).enumerate() {
            let written = [length / 2, length - 1][row];
            for (k, value) in values[..written].iter_mut().enumerate() {
                *value = 1 + (k % 4) as u16;
            }
        }
        let layout = SequenceLayout { values: 5, length, unset: 0 };
        for seed in SEEDS {
            let net = SequenceNetConfig { kind, ..SequenceNetConfig::default() };
            let config = SequencePolicyConfig { net, ..SequencePolicyConfig::default() };
            let device = Device::Cpu;
            let rng = &mut Rng::seeded(seed);
            let policy = SequencePolicy::new(&env, layout, config, device, Kind::Float, rng).unwrap();
            let deviation = largest_deviation(&env, &policy, &states);
            assert!(deviation < BOUND, "{kind:?}, length {length}, seed {seed}: {deviation}");
        }
    }
}

#[test]
fn perceptrons_start_near_uniform_at_any_length() {
    for length in SIZES {
        let env = word_env(4, length);
        let mut states = env.initial(&[0; 2]);
        states.values_mut()[length..][..length / 2].fill(3);
        for seed in SEEDS {
            let features = KHot::new(length, 5);
            let rng = &mut Rng::seeded(seed);
            let config = MlpPolicyConfig::default();
            let policy = MlpPolicy::new(&env, features, config, Device::Cpu, Kind::Float, rng).unwrap();
            let deviation = largest_deviation(&env, &policy, &states);
            assert!(deviation < BOUND, "length {length}, seed {seed}: {deviation}");
        }
    }
}
