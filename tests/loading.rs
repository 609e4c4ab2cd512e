//! Tests of `gfn::load` and `gfn::load_with_env`: the loaded policy must be the saved one, and files that
//! don't fit, or that are false, must return an error.

use std::path::Path;

use gfn::env::{DiscreteEnv, EnumerableEnv, Env, Rows, StateGraph, VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, Edge, Free, GraphEnv, GraphKind, GraphSchema, GraphState,
    GraphStates, PerGraph, Reverse, Scaffold, Semantics, SetEdgeAttr, SetNodeAttr,
};
use gfn::nn::{
    BackwardPolicy, ConvKind, EdgeMlp, EdgeMlpConfig, EstimatorsConfig, GraphNet, GraphNetConfig, MlpConfig,
    SequenceKind, SequenceNetConfig, SymmetryInput,
};
use gfn::objective::{DetailedBalance, Objective, Quantities, Quantity, TrajectoryBalance};
use gfn::policy::{
    ByNumber, Enumeration, Features, GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy, ScaledEntries,
    SequenceLayout, SequencePolicy, SequencePolicyConfig, StateFeatures, UniformPolicy, WithPrior,
};
use gfn::rollout::Sampler;
use gfn::train::{BuildPolicy, Checkpoint, TrainEnv, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

use crate::trainers::Folder;

const FLOAT: (Device, Kind) = (Device::Cpu, Kind::Float);

fn labelled() -> GraphEnv {
    GraphEnv::free(ActionSet::new(Semantics::Labelled).with(AddEdge::new(2)), GraphState::directed(3))
        .unwrap()
}

/// Returns an environment with most action types, a scaffold, and settings other than the defaults.
fn grown() -> GraphEnv {
    let actions = ActionSet::new(Semantics::UpToIsomorphism)
        .with(AddNode::attached(2, 1, 4))
        .with(AddEdge::new(1).at_most(4).keeping_connected())
        .with(SetNodeAttr::new(&[1]).unwrap())
        .with(SetEdgeAttr::new(&[1]).unwrap());
    let schema = GraphSchema {
        node_classes: 3,
        node_attributes: vec![1],
        edge_attributes: vec![1],
        ..GraphSchema::plain(GraphKind::Undirected, 4)
    };
    let mut joined = GraphState::undirected(2);
    joined.add_edge(0, 1, Edge::default()).unwrap();
    GraphEnv::free(actions, joined)
        .and_then(|env| env.with_scaffold(Scaffold::Alike))
        .and_then(|env| env.with_schema(schema))
        .unwrap()
        .with_symmetry_correction(false)
}

fn from_nothing() -> GraphEnv {
    let actions = ActionSet::new(Semantics::UpToIsomorphism)
        .with(AddNode::first(2))
        .with(AddNode::attached(2, 2, 4))
        .with(AddNode::free(1, 3));
    GraphEnv::free(actions, GraphState::undirected(0)).unwrap()
}

/// Returns an environment of two instances whose forward moves remove edges.
fn shrinking() -> GraphEnv {
    let full = |n: usize| {
        let mut graph = GraphState::undirected(n);
        for (a, b) in (0..n as u32).flat_map(|b| (0..b).map(move |a| (a, b))) {
            graph.add_edge(a, b, Edge::default()).unwrap();
        }
        graph
    };
    let actions = ActionSet::new(Semantics::Labelled).with(Reverse(AddEdge::new(1)));
    let env =
        GraphEnv::new(Free, actions, full(3)).and_then(|env| env.with_instances(vec![full(3), full(4)]));
    env.unwrap().with_backward(BackwardRule::ByType)
}

fn graph_net(env: &GraphEnv, config: GraphNetConfig, kind: Kind) -> GraphPolicy<GraphNet> {
    let config = GraphNetConfig { embedding: 8, ..config };
    GraphPolicy(GraphNet::new(env, config, Device::Cpu, kind, &mut Rng::seeded(7)).unwrap())
}

fn edge_mlp(env: &GraphEnv) -> GraphPolicy<EdgeMlp> {
    let mlp = MlpConfig { hidden: vec![6], ..MlpConfig::default() };
    let config = EdgeMlpConfig { mlp, backward: BackwardPolicy::Separate, ..EdgeMlpConfig::default() };
    GraphPolicy(EdgeMlp::new(env, config, FLOAT.0, FLOAT.1, &mut Rng::seeded(7)).unwrap())
}

/// Trains a policy for two steps, saves it, and returns the trainer.
fn save<E: TrainEnv>(
    path: &Path,
    env: E,
    reward: impl gfn::env::Reward<E::States> + 'static,
    policy: impl Policy<E> + Send + 'static,
) -> Trainer<E> {
    let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
    // Several instances have no common log Z, so they need an objective of state flows.
    let objective: Box<dyn Objective> = if env.n_instances() > 1 {
        Box::new(DetailedBalance::default())
    } else {
        Box::new(TrajectoryBalance)
    };
    let mut trainer = Trainer::new(env, reward, policy, objective, config, Rng::seeded(1)).unwrap();
    for _ in 0..2 {
        trainer.step().unwrap();
    }
    trainer.save(path).unwrap();
    trainer
}

fn edges() -> PerGraph<fn(&GraphState) -> f64> {
    PerGraph(|graph| graph.n_edges() as f64)
}

fn letters(words: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(words.rows().map(|word| word.iter().map(|&letter| f64::from(letter)).sum()).collect())
}

/// Checks that both policies give the same P_F, P_B and log Z, bit for bit, in states that the first policy
/// reaches.
fn check_equal<E: DiscreteEnv>(
    (env, policy): (&E, &dyn Policy<E>),
    (loaded_env, loaded): (&E, &dyn Policy<E>),
) {
    let n = env.n_instances();
    let samples = Sampler::new(env, policy).forward(8 * n as usize, &mut Rng::seeded(2)).unwrap();
    let again = Sampler::new(loaded_env, loaded).forward(8 * n as usize, &mut Rng::seeded(2)).unwrap();
    let states = samples.states();
    assert!(states.len() > 8);
    assert_eq!(env.instances(states), loaded_env.instances(again.states()));
    let wants = Quantity::LogPf | Quantity::LogPb;
    let evaluate = |env: &E, policy: &dyn Policy<E>| policy.evaluate(env, states, None, wants).unwrap();
    let here = evaluate(env, policy);
    let there = evaluate(loaded_env, loaded);
    for (here, there) in [(here.pf, there.pf), (here.pb, there.pb)] {
        assert!(here.unwrap().log_probs().equal(&there.unwrap().log_probs()));
    }
    let log_z = |policy: &dyn Policy<E>| policy.log_z(None, 1).map(|log_z| log_z.double_value(&[0]));
    assert!(n > 1 || log_z(policy).is_some());
    assert_eq!(log_z(policy), log_z(loaded));
}

#[test]
fn graph_policies_are_loaded_with_their_environment() {
    let folder = Folder::new("load-graphs");
    let path = folder.join("run");
    let check = |env: GraphEnv, policy: Box<dyn Policy<GraphEnv> + Send>| {
        let trainer = save(&path, env, edges(), policy);
        let loaded = gfn::load(&path).unwrap();
        assert_eq!(loaded.steps_done, 2);
        assert_eq!(loaded.env.initial_graphs(), trainer.env().initial_graphs());
        assert_eq!(loaded.env.schema(), trainer.env().schema());
        assert_eq!(loaded.env.scaffold(), trainer.env().scaffold());
        assert_eq!(loaded.env.backward_rule(), trainer.env().backward_rule());
        assert_eq!(loaded.env.corrects_symmetry(), trainer.env().corrects_symmetry());
        let states = |env: &GraphEnv| {
            let space = StateGraph::build_of(env, env.n_instances() - 1, 5_000).unwrap();
            env.keys(space.states())
        };
        let listed = states(trainer.env());
        assert!(listed.len() > 10 && listed == states(&loaded.env), "{}", listed.len());
        check_equal((trainer.env(), trainer.policy()), (&loaded.env, &*loaded.policy));
    };
    let plain = GraphNetConfig::default;
    let transformer = GraphNetConfig { conv: ConvKind::Transformer { heads: 2 }, ..plain() };
    let backward =
        GraphNetConfig { backward: BackwardPolicy::Separate, symmetry: SymmetryInput::Exact, ..plain() };
    check(labelled(), Box::new(graph_net(&labelled(), plain(), Kind::Float)));
    check(labelled(), Box::new(graph_net(&labelled(), transformer, Kind::Double)));
    check(labelled(), Box::new(edge_mlp(&labelled())));
    check(grown(), Box::new(graph_net(&grown(), backward, Kind::Float)));
    check(from_nothing(), Box::new(graph_net(&from_nothing(), plain(), Kind::Float)));
    let flow = GraphNetConfig { estimators: EstimatorsConfig::with_flow(true), ..plain() };
    check(shrinking(), Box::new(graph_net(&shrinking(), flow, Kind::Float)));
    let prior = WithPrior { policy: graph_net(&labelled(), plain(), Kind::Float), prior: UniformPolicy };
    check(labelled(), Box::new(prior));
}

#[test]
fn vector_policies_are_loaded_into_a_given_environment() {
    let folder = Folder::new("load-vectors");
    let path = folder.join("run");
    let env = || word_env(2, 3);
    let check = |policy: Box<dyn Policy<VectorEnv> + Send>| {
        let trainer = save(&path, env(), letters, policy);
        let loaded = gfn::load_with_env(&path, env(), Device::Cpu).unwrap();
        check_equal((trainer.env(), trainer.policy()), (&loaded.env, &*loaded.policy));
    };
    let config = || MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![5], ..MlpConfig::default() },
        estimators: EstimatorsConfig::with_flow(true),
        ..MlpPolicyConfig::default()
    };
    let rng = || Rng::seeded(3);
    fn mlp<F: StateFeatures<VectorStates>>(features: F, config: MlpPolicyConfig) -> MlpPolicy<F> {
        MlpPolicy::new(&word_env(2, 3), features, config, FLOAT.0, FLOAT.1, &mut Rng::seeded(3)).unwrap()
    }
    check(Box::new(mlp(KHot::new(3, 3), config())));
    check(Box::new(mlp(ScaledEntries::new(3, 3), config())));
    check(Box::new(mlp(Enumeration(ByNumber::new(3, 3)), config())));
    let separate = MlpPolicyConfig { backward: BackwardPolicy::Separate, heads: 2, ..config() };
    check(Box::new(mlp(ByNumber::new(3, 3), separate)));
    check(Box::new(MlpPolicy::tabular(&env(), ByNumber::new(3, 3), config(), FLOAT.0, FLOAT.1).unwrap()));
    let net = SequenceNetConfig { kind: SequenceKind::Lstm, width: 4, layers: 1 };
    let layout = SequenceLayout { values: 3, length: 3, unset: 0 };
    let sequences = SequencePolicyConfig { net, ..SequencePolicyConfig::default() };
    check(Box::new(SequencePolicy::new(&env(), layout, sequences, FLOAT.0, FLOAT.1, &mut rng()).unwrap()));

    // Another environment doesn't fit the network, and custom features aren't stored.
    save(&path, env(), letters, mlp(KHot::new(3, 3), config()));
    let message = refuse(&path, word_env(4, 3));
    assert!(message.contains("`torso.") && message.contains("the checkpoint has ["), "{message}");
    struct Length;
    impl StateFeatures<VectorStates> for Length {
        fn width(&self) -> usize {
            1
        }
        fn encode(&self, states: &VectorStates) -> Features {
            Features::Dense(states.rows().map(|word| word.len() as f32).collect())
        }
    }
    save(&path, env(), letters, mlp(Length, config()));
    let message = refuse(&path, env());
    assert!(
        message.contains("the policy is custom") && message.contains(".restore(parameters)"),
        "{message}"
    );
}

/// Returns the message of the error of `load_with_env`.
fn refuse<E: BuildPolicy + std::fmt::Debug>(path: &Path, env: E) -> String {
    let error = gfn::load_with_env(path, env, Device::Cpu).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn custom_rules_need_their_environment_and_other_environments_are_refused() {
    let folder = Folder::new("load-rules");
    let path = folder.join("run");
    let env = || ColoredGraphs::new(4).unwrap().into_env();
    let trainer = save(&path, env(), edges(), graph_net(&env(), GraphNetConfig::default(), Kind::Float));
    let error = gfn::load(&path).unwrap_err().to_string();
    assert!(error.contains("custom") && error.contains("call `gfn::load_with_env`"), "{error}");
    let loaded = gfn::load_with_env(&path, env(), Device::Cpu).unwrap();
    check_equal((trainer.env(), trainer.policy()), (&loaded.env, &*loaded.policy));

    save(&path, labelled(), edges(), graph_net(&labelled(), GraphNetConfig::default(), Kind::Float));
    let other = labelled().with_backward(BackwardRule::ByType);
    let message = refuse(&path, other);
    assert!(message.contains("`backward` is \"Derived\" there and \"ByType\" here"), "{message}");
    let kind = GraphKind::Directed;
    let wider = GraphSchema { edge_classes: 3, ..GraphSchema::plain(kind, 3) };
    let message = refuse(&path, labelled().with_schema(wider).unwrap());
    assert!(message.contains("`schema.edge_classes` is 2 there and 3 here"), "{message}");

    // A checkpoint without settings, as earlier versions wrote it.
    let old = Checkpoint::load(&path).unwrap();
    let mut state = old.manifest().state.clone();
    for name in ["env", "policy"] {
        state.as_object_mut().unwrap().remove(name);
    }
    let parameters = graph_net(&labelled(), GraphNetConfig::default(), Kind::Float);
    Checkpoint::new(parameters.parameters().unwrap(), 2, state).unwrap().save(&path).unwrap();
    assert!(gfn::load(&path).unwrap_err().to_string().contains("no settings of a graph environment"));
    assert!(refuse(&path, labelled()).contains("an earlier version"));
}

/// Calls `visit` with a copy of `settings` for each value in it and each replacement of this value.
fn for_each_edit(settings: &Value, visit: &mut dyn FnMut(Value)) {
    let replacements = [
        json!(null),
        json!(-1),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(65_535),
        json!(1e300),
        json!("Free"),
        json!([]),
        json!({ "Reverse": { "Reverse": { "Reverse": {} } } }),
    ];
    replacements.into_iter().for_each(&mut *visit);
    match settings {
        Value::Array(entries) => {
            for (k, entry) in entries.iter().enumerate() {
                let rest = entries.clone();
                for_each_edit(entry, &mut |edited| {
                    let mut entries = rest.clone();
                    entries[k] = edited;
                    visit(entries.into());
                });
            }
        }
        Value::Object(entries) => {
            for (name, entry) in entries {
                for_each_edit(entry, &mut |edited| {
                    let mut entries = entries.clone();
                    entries.insert(name.clone(), edited);
                    visit(entries.into());
                });
            }
        }
        _ => {}
    }
}

/// Replaces each value in the settings of a checkpoint. Loading must return an error, or a policy whose
/// samples can be drawn or refused. Nothing may panic, or take more memory than the machine has.
#[test]
fn false_settings_are_refused_or_harmless() {
    // The folder is in memory if the system has a folder for that, because each file is flushed to disk.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        Folder(memory.join(format!("gfn-load-false-{}", std::process::id())))
    } else {
        Folder::new("load-false")
    };
    let path = folder.join("run");
    let backward = GraphNetConfig { backward: BackwardPolicy::SharedTorso, ..GraphNetConfig::default() };
    let mut counts = [0, 0];
    let policies: [(GraphEnv, Box<dyn Policy<GraphEnv> + Send>); 2] = [
        (grown(), Box::new(graph_net(&grown(), backward, Kind::Float))),
        (labelled(), Box::new(edge_mlp(&labelled()))),
    ];
    for (env, policy) in policies {
        let trainer = save(&path, env, edges(), policy);
        for name in ["env", "policy"] {
            load_edits(&path, name, trainer.policy().parameters().unwrap(), &mut || {
                let loaded = gfn::load(&path);
                counts[usize::from(loaded.is_ok())] += 1;
                if let Ok(loaded) = loaded {
                    let _ = Sampler::new(&loaded.env, &loaded.policy).forward(2, &mut Rng::seeded(0));
                }
            });
        }
    }
    assert!(counts[0] > 500 && counts[1] > 10, "{counts:?}");

    let mut counts = [0, 0];
    let env = || word_env(2, 3);
    let hidden = MlpConfig { hidden: vec![5], ..MlpConfig::default() };
    let config = MlpPolicyConfig { mlp: hidden, ..MlpPolicyConfig::default() };
    let rng = &mut Rng::seeded(3);
    let mlp = MlpPolicy::new(&env(), KHot::new(3, 3), config, FLOAT.0, FLOAT.1, rng).unwrap();
    let net = SequenceNetConfig { width: 4, layers: 1, kind: SequenceKind::Transformer { heads: 2 } };
    let layout = SequenceLayout { values: 3, length: 3, unset: 0 };
    let config = SequencePolicyConfig { net, ..SequencePolicyConfig::default() };
    let sequences = SequencePolicy::new(&env(), layout, config, FLOAT.0, FLOAT.1, rng).unwrap();
    let policies: [Box<dyn Policy<VectorEnv> + Send>; 2] = [Box::new(mlp), Box::new(sequences)];
    for policy in policies {
        let trainer = save(&path, env(), letters, policy);
        load_edits(&path, "policy", trainer.policy().parameters().unwrap(), &mut || {
            let loaded = gfn::load_with_env(&path, env(), Device::Cpu);
            counts[usize::from(loaded.is_ok())] += 1;
            if let Ok(loaded) = loaded {
                let _ = Sampler::new(&loaded.env, &loaded.policy).forward(2, &mut Rng::seeded(0));
            }
        });
    }
    assert!(counts[0] > 200 && counts[1] > 5, "{counts:?}");
}

/// Saves a checkpoint for each edit of a part of its state, and calls `load` after each save.
fn load_edits(path: &Path, part: &str, parameters: &gfn::nn::Parameters, load: &mut dyn FnMut()) {
    let state = Checkpoint::load(path).unwrap().manifest().state.clone();
    for_each_edit(&state[part], &mut |edited| {
        let mut state = state.clone();
        state[part] = edited;
        Checkpoint::new(parameters, 2, state).unwrap().save(path).unwrap();
        load();
    });
    // The settings of the next part are edited alone.
    Checkpoint::new(parameters, 2, state).unwrap().save(path).unwrap();
}

#[test]
fn a_network_may_only_have_the_parameters_of_the_file() {
    let folder = Folder::new("load-sizes");
    let path = folder.join("run");
    save(&path, labelled(), edges(), graph_net(&labelled(), GraphNetConfig::default(), Kind::Float));
    let checkpoint = Checkpoint::load(&path).unwrap();
    let network = graph_net(&labelled(), GraphNetConfig::default(), Kind::Float);
    for (setting, value, part) in [
        ("embedding", json!(9), "a parameter's shape"),
        ("layers", json!(3), "of which the checkpoint has none"),
        ("layers", json!(1), "this is the checkpoint of another model"),
        ("embedding", json!(1_i64 << 40), "a size in the settings"),
        ("embedding", json!(0), "embedding is 0"),
    ] {
        let mut state = checkpoint.manifest().state.clone();
        state["policy"]["GraphNet"][setting] = value;
        let parameters = Policy::<GraphEnv>::parameters(&network).unwrap();
        Checkpoint::new(parameters, 2, state).unwrap().save(&path).unwrap();
        let message = gfn::load(&path).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
    let wants = Quantities::PF;
    let states: GraphStates = labelled().initial(&[0]);
    assert!(network.evaluate(&labelled(), &states, None, wants).is_ok());
}
