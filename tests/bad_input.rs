//! Tests of invalid input. Every input must give a typed error whose message names the problem, the
//! expectation and the remedy. Nothing may panic, and nothing may be changed halfway.

use crate::trainers::{Folder, state};
use gfn::distribution::Exploration;
use gfn::env::{Direction, DiscreteEnv, Env, Slots};
use gfn::examples::Triangles;
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Free, GraphEnv, GraphKind, GraphState, GraphStates, PerGraph, Reverse,
    Semantics,
};
use gfn::nn::{EstimatorsConfig, GraphNet, GraphNetConfig};
use gfn::objective::{
    DetailedBalance, Objective, RelativeTrajectoryBalance, SubTrajectoryBalance, TrajectoryBalance, Weighting,
};
use gfn::optim::Schedule;
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Sampler;
use gfn::rollout::Trajectories;
use gfn::runtime::DeviceKind;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig};
use gfn_gym::hypergrid::HyperGrid;
use gfn_gym::ring::Ring;
use tch::Tensor;

/// Asserts that a result is an error whose variant matches the pattern, and that its message has all of
/// these words.
macro_rules! refused {
    ($result:expr, $pattern:pat, $($word:expr),+) => {{
        let error = $result.map(|_| ()).unwrap_err();
        assert!(matches!(error, $pattern), "{error:?}");
        let message = error.to_string();
        for word in [$($word),+] {
            assert!(message.contains(word), "`{message}` lacks `{word}`");
        }
    }};
}

fn replay(slots: &[u32], offsets: &[usize]) -> Result<Trajectories<GraphEnv>> {
    // The pairs (0, 1), (0, 2) and (1, 2) have the slots 1, 2 and 5 in the table of nine slots for all pairs
    // of nodes, 0 to 8. Slot 9 is the exit.
    Trajectories::replay(&Triangles::env(), &Slots(slots.to_vec()), offsets)
}

#[test]
fn walks_from_outside_are_checked_move_by_move() {
    assert_eq!(replay(&[1, 9, 9], &[0, 2, 3]).unwrap().len(), 2);
    let illegal = |slots: &[u32], words: [&str; 3]| {
        refused!(replay(slots, &[0, slots.len()]), Error::IllegalAction { .. }, words[0], words[1], words[2]);
    };
    illegal(
        &[1, 1, 9],
        ["action 1 is not legal (forward)", "10 slots of which 3 are legal", "add_edge (node 0, node 1"],
    );
    illegal(&[0, 9], ["action 0", "of which 4 are legal", "add_edge (node 0, node 0"]);
    illegal(&[3, 9], ["action 3", "10 slots", "node 1, node 0"]);
    illegal(&[10], ["action 10", "10 slots", "no such slot"]);
    illegal(&[u32::MAX], ["4294967295", "10 slots", "no such slot"]);
    // The error must name the index among all trajectories, not the index among unfinished trajectories.
    refused!(replay(&[9, 1, 1, 9], &[0, 1, 4]), Error::IllegalAction { row: 1, .. }, "state 1");
    refused!(
        replay(&[1, 2], &[0, 2]),
        Error::Contract { .. },
        "go on until a terminal state",
        "trajectory 0 after 2 steps"
    );
    refused!(
        replay(&[1, 9, 9], &[0, 3]),
        Error::Contract { .. },
        "stop at its terminal state",
        "after 2 steps"
    );
    refused!(replay(&[9], &[0, 1, 1]), Error::Contract { .. }, "trajectory 1 after 0 steps");
    for offsets in [&[0, 3, 1][..], &[0, 1], &[1, 2], &[0, 1, 7], &[0, usize::MAX]] {
        refused!(replay(&[9, 9], offsets), Error::Contract { .. }, "offsets", "2 actions");
    }
    for offsets in [&[][..], &[0]] {
        refused!(
            replay(&[], offsets),
            Error::Config { .. },
            "batch of trajectories",
            "at least one trajectory"
        );
    }
}

#[test]
fn steps_that_a_state_cannot_take_are_refused() {
    let env = Ring::new(3, GraphKind::Directed).unwrap().into_env();
    let mut states = env.initial(&[0; 2]);
    let step = |states: &mut GraphStates, direction, slots: &[u32]| {
        env.step(direction, states, &Slots(slots.to_vec()))
    };
    refused!(
        step(&mut states, Direction::Forward, &[1]),
        Error::Shape { .. },
        "[2]",
        "[1]",
        "one action per state"
    );
    refused!(step(&mut states, Direction::Forward, &[1, 99]), Error::IllegalAction { .. }, "99", "10 slots");
    refused!(
        step(&mut env.initial(&[0]), Direction::Backward, &[0]),
        Error::IllegalAction { .. },
        "backward"
    );
    refused!(step(&mut env.initial(&[0]), Direction::Forward, &[0]), Error::Contract { .. }, "edge (0, 0)");
    let grid = HyperGrid::new(2, 3).unwrap();
    let back = grid.env().step(Direction::Backward, &mut grid.env().initial(&[0]), &Slots(vec![1]));
    refused!(back, Error::IllegalAction { .. }, "action 1", "backward");
}

/// Builds a trainer whose reward returns these values and repeats the last value if more are needed. `count`
/// computes the number of returned values from the number of states. The two numbers may differ.
fn trainer_with_rewards(values: &'static [f64], count: fn(usize) -> usize) -> Trainer<GraphEnv> {
    let env = Triangles::env();
    let mut rng = Rng::seeded(0);
    let config = GraphNetConfig { embedding: 8, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, config, tch::Device::Cpu, tch::Kind::Float, &mut rng).unwrap();
    let reward = move |graphs: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        let n = count(graphs.graphs().len());
        Ok((0..n).map(|k| values[k.min(values.len() - 1)]).collect())
    };
    let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
    Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap()
}

#[test]
fn action_types_of_no_class_are_refused() {
    let kind = GraphKind::Undirected;
    for semantics in [Semantics::Labelled, Semantics::UpToIsomorphism] {
        let env = |actions: ActionSet| GraphEnv::new(Free, actions, GraphState::new(kind));
        let with = |of_nodes: AddNode| env(ActionSet::new(semantics).with(of_nodes).with(AddEdge::new(1)));
        let edges = env(ActionSet::new(semantics).with(AddNode::free(1, 3)).with(AddEdge::new(0)));
        refused!(edges, Error::Config { .. }, "0 of `add_edge`", "at least one class", "`AddEdge::new(1)`");
        refused!(with(AddNode::free(0, 3)), Error::Config { .. }, "0 of `add_node`");
        refused!(with(AddNode::first(0)), Error::Config { .. }, "0 of `add_first_node`");
        for attached in [AddNode::attached(1, 0, 3), AddNode::attached(0, 1, 3)] {
            refused!(with(attached), Error::Config { .. }, "0 of `add_attached_node`");
        }
        let removed = ActionSet::new(semantics).with(Reverse(AddEdge::new(0)));
        refused!(env(removed), Error::Config { .. }, "0 of `remove_edge`");
        assert!(with(AddNode::free(1, 3)).is_ok());
    }
}

#[test]
fn rewards_that_are_no_finite_numbers_stop_the_step() {
    for (values, shown) in [
        (&[0.0, f64::NAN] as &'static [f64], "NaN"),
        (&[0.0, f64::INFINITY], "inf"),
        (&[0.0, f64::NEG_INFINITY], "-inf"),
    ] {
        let mut trainer = trainer_with_rewards(values, |n| n);
        refused!(
            trainer.step(),
            Error::NonFinite { row: 1, .. },
            "log-reward is",
            shown,
            "every finished object"
        );
        let replay = ReplayConfig { capacity: 8, eviction: Eviction::Fifo, draw: Draw::Uniform };
        trainer = trainer.with_replay(ReplayBuffer::new(replay).unwrap());
        let folder = Folder::new(&format!("reward{shown}"));
        let weights = |folder: &Folder, trainer: &Trainer<_>| state(trainer, folder)[1].clone();
        let before = weights(&folder, &trainer);
        let expected = "or raise it to a floor (`Clipped`)";
        refused!(trainer.step(), Error::NonFinite { row: 1, .. }, "log-reward is", shown, "row 1", expected);
        refused!(trainer.prefill(4), Error::NonFinite { row: 1, .. }, shown);
        assert_eq!((trainer.steps_done(), trainer.replay().unwrap().len()), (0, 0));
        assert!(weights(&folder, &trainer) == before, "{shown}: nothing was learned from it");
    }
    let counts: [fn(usize) -> usize; 3] = [|n| n - 1, |n| n + 1, |_| 0];
    for count in counts {
        refused!(
            trainer_with_rewards(&[0.0], count).step(),
            Error::Shape { .. },
            "the list that the reward returned",
            "[8]",
            "one log-reward per state"
        );
    }
    // The reward is finite in double precision, but infinite in single precision.
    refused!(
        trainer_with_rewards(&[1e300], |n| n).step(),
        Error::NonFinite { .. },
        "loss is inf",
        "reward's scale"
    );
}

#[test]
fn buffers_take_finite_rewards_only() {
    let env = Triangles::env();
    let config = ReplayConfig { capacity: 4, eviction: Eviction::BestReward, draw: Draw::Uniform };
    let mut buffer = ReplayBuffer::new(config).unwrap();
    let walks = Sampler::new(&env, &UniformPolicy).walks(2, &mut Rng::seeded(0)).unwrap();
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        refused!(
            buffer.add(&env, &walks, &[0.0, value]),
            Error::NonFinite { row: 1, .. },
            "log-reward",
            "row 1"
        );
        assert!(buffer.is_empty());
    }
    refused!(buffer.add(&env, &walks, &[0.0]), Error::Shape { .. }, "[2]", "[1]", "one log-reward per state");
}

#[test]
fn settings_out_of_range_name_the_setting() {
    for n in [0, 1, 21] {
        refused!(Ring::new(n, GraphKind::Directed), Error::Config { .. }, "nodes is", "2 to 20 nodes");
    }
    refused!(ColoredGraphs::new(0), Error::Config { .. }, "max_nodes is 0", "1 to 64");
    let nothing = GraphBuildingConfig::new(GraphKind::Directed, 0);
    refused!(GraphBuilding::new(nothing), Error::Config { .. }, "max_nodes is 0", "at least 1");
    refused!(HyperGrid::new(0, 3), Error::Config { .. }, "ndim is 0", "at least 1");
    refused!(HyperGrid::new(2, 1), Error::Config { .. }, "height is 1", "2 to 65,536");
    for epsilon in [-0.1, 1.1, f64::NAN] {
        refused!(Exploration::epsilon(epsilon), Error::Config { .. }, "epsilon is", "between 0 and 1");
    }
    for temperature in [0.0, -1.0, f64::INFINITY] {
        let explore = Exploration::on_policy().with_temperature(temperature);
        refused!(explore, Error::Config { .. }, "temperature is", "positive");
    }
    for device in ["gpu", "cuda:", "cuda:x", "cpu:0", ""] {
        refused!(
            device.parse::<DeviceKind>(),
            Error::Config { .. },
            "device is",
            device,
            "cpu, cuda or cuda:N"
        );
    }
    if !tch::Cuda::is_available() {
        refused!(DeviceKind::Cuda(0).resolve(), Error::Device { .. }, "cuda:0 can't be used");
    }
    let replay = |capacity, exponent| {
        let draw = Draw::RewardPrioritised { exponent };
        ReplayBuffer::<GraphEnv>::new(ReplayConfig { capacity, eviction: Eviction::Fifo, draw })
    };
    refused!(replay(0, 1.0), Error::Config { .. }, "capacity is 0", "at least 1");
    refused!(replay(1, f64::NAN), Error::Config { .. }, "exponent is NaN", "finite");
}

#[test]
fn trainers_refuse_settings_that_make_no_sense() {
    let make = |config: TrainerConfig| {
        let reward = |graphs: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
            Ok(vec![0.0; graphs.graphs().len()])
        };
        Trainer::new(
            Triangles::env(),
            reward,
            UniformPolicy,
            gfn::objective::LogPartitionVariance,
            config,
            Rng::seeded(0),
        )
    };
    let base = TrainerConfig::default;
    assert!(make(base()).unwrap().step().is_ok());
    refused!(make(TrainerConfig { batch: 0, ..base() }), Error::Config { .. }, "batch is 0", "at least one");
    let offline = TrainerConfig { source: DataSource::new(0.5, 0.0, 0.5).unwrap(), ..base() };
    refused!(make(offline).unwrap().step(), Error::Missing { .. }, "the offline share", "with_data");
    let constant = Schedule::Constant;
    for config in [
        TrainerConfig { epsilon: Some(constant(1.5)), ..base() },
        TrainerConfig { epsilon: Some(Schedule::Linear { from: 0.5, to: -0.1, steps: 5 }), ..base() },
        TrainerConfig { temperature: constant(0.0), ..base() },
        TrainerConfig {
            temperature: Schedule::Milestones { from: 1.0, then: vec![(5, -1.0), (9, 1.0)] },
            ..base()
        },
        TrainerConfig { epsilon: Some(Schedule::Exponential { from: 0.1, to: 0.0, steps: 9 }), ..base() },
        TrainerConfig { lr_scale: Schedule::Cosine { from: 1.0, to: -0.1, steps: 9 }, ..base() },
        TrainerConfig {
            lr_scale: Schedule::Milestones { from: 1.0, then: vec![(9, 0.1), (5, 0.5)] },
            ..base()
        },
        TrainerConfig { exit_bias: constant(f64::NAN), ..base() },
    ] {
        refused!(make(config), Error::Config { .. }, " is ", "expected");
    }
    let mut trainer = make(base()).unwrap();
    refused!(trainer.prefill(1), Error::Missing { .. }, "prefilling needs a replay buffer", "with_replay");
    refused!(trainer.save("nowhere"), Error::Missing { .. }, "a policy with parameters");
    refused!(trainer.resume("nowhere"), Error::File { .. } | Error::Missing { .. }, ":");
    let short = TrainerConfig { max_steps: 2, exit_bias: constant(-50.0), ..base() };
    refused!(
        trainer_with_config(short).step(),
        Error::StepLimit { limit: 2, .. },
        "within 2 steps",
        "raise the sampler's step limit"
    );
}

/// Checks that a trainer whose policy lacks an estimate that the objective needs is refused when it is built.
#[test]
fn policies_without_a_needed_estimate_are_refused() {
    let build = |flow: bool, objective: Box<dyn Objective>| {
        let (env, mut rng) = (Triangles::env(), Rng::seeded(0));
        let estimators = EstimatorsConfig::with_flow(flow);
        let config = GraphNetConfig { embedding: 8, estimators, ..GraphNetConfig::default() };
        let net = GraphNet::new(&env, config, tch::Device::Cpu, tch::Kind::Float, &mut rng)?;
        let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
        Trainer::new(env, reward, GraphPolicy(net), objective, TrainerConfig::default(), rng)
    };
    let objectives: [fn() -> Box<dyn Objective>; 2] = [
        || Box::new(DetailedBalance::default()),
        || Box::new(SubTrajectoryBalance::new(Weighting::Equal).unwrap()),
    ];
    for objective in objectives {
        let missing = ["balance needs a state-flow estimator (log F)", "`flow: true`"];
        refused!(build(false, objective()), Error::Missing { .. }, missing[0], missing[1]);
        build(true, objective()).unwrap().step().unwrap();
    }
    let relative = Box::new(RelativeTrajectoryBalance::new(1.0).unwrap());
    refused!(build(false, relative), Error::Missing { .. }, "needs a prior policy", "`WithPrior`");
    let uniform = Trainer::new(
        Triangles::env(),
        PerGraph(|_: &GraphState| 0.0),
        UniformPolicy,
        TrajectoryBalance,
        TrainerConfig::default(),
        Rng::seeded(0),
    );
    // A policy without parameters can be sampled and evaluated, so only its first step is refused.
    let step = uniform.unwrap().step();
    refused!(step, Error::Missing { .. }, "trajectory balance needs a log Z estimator", "`Policy::log_z`");
}

fn trainer_with_config(config: TrainerConfig) -> Trainer<GraphEnv> {
    let reward = |graphs: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(vec![0.0; graphs.graphs().len()])
    };
    let objective = gfn::objective::LogPartitionVariance;
    Trainer::new(Triangles::env(), reward, UniformPolicy, objective, config, Rng::seeded(0)).unwrap()
}

#[test]
fn samplers_refuse_no_trajectory_and_stop_at_the_limit() {
    let env = Triangles::env();
    let sampler = Sampler::new(&env, &UniformPolicy);
    let mut rng = Rng::seeded(0);
    refused!(sampler.forward(0, &mut rng), Error::Config { .. }, "0 trajectories", "at least one");
    refused!(sampler.walks(0, &mut rng), Error::Config { .. }, "0 trajectories");
    refused!(sampler.backward(&GraphStates::default(), &mut rng), Error::Config { .. }, "0 trajectories");
    let full = replay(&[1, 2, 5, 9], &[0, 4]).unwrap();
    let limited = sampler.max_steps(2);
    let back = limited.backward(full.terminal_states(), &mut rng);
    refused!(
        back,
        Error::StepLimit { direction: Direction::Backward, live: 1, n: 1, .. },
        "a backward roll-out",
        "1 of 1"
    );
    // This graph can't be reached from the initial graph, because it has another number of nodes.
    let other = GraphStates::from(vec![gfn::graph::GraphState::with_nodes(GraphKind::Undirected, 4)]);
    refused!(
        sampler_of(&env).backward(&other, &mut rng),
        Error::NoLegalAction { row: 0, .. },
        "no legal backward",
        "check_env"
    );
    assert_eq!(env.masks(Direction::Backward, &other).n_legal(0), 0);
}

fn sampler_of(env: &GraphEnv) -> Sampler<'_, GraphEnv> {
    Sampler::new(env, &UniformPolicy)
}
