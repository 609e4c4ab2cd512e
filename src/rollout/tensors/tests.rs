use super::*;
use crate::env::{DiscreteEnv, TensorEnv, VectorEnv};
use crate::nn::{BackwardPolicy, EstimatorsConfig};
use crate::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use crate::rollout::{RolloutPlace, Sampler};

/// Vectors of three entries. A move raises an entry by 1, up to 2. Without an exit, a trajectory ends
/// when all entries are 2.
struct Climb {
    has_exit: bool,
    /// The entry that can't be raised above 1, so that a trajectory without an exit has a dead end.
    blocked: Option<i64>,
}

impl TensorEnv for Climb {
    fn width(&self) -> usize {
        3
    }
    fn n_values(&self) -> usize {
        3
    }
    fn n_moves(&self, _: Direction) -> usize {
        3
    }
    fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
        match (direction, self.blocked) {
            (Direction::Backward, _) => states.gt(0),
            (Direction::Forward, None) => states.lt(2),
            (Direction::Forward, Some(entry)) => {
                states.lt(2).logical_and(&Tensor::arange(3, (Kind::Int64, states.device())).ne(entry))
            }
        }
    }
    fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        let change = if direction == Direction::Forward { 1 } else { -1 };
        states.scatter_add(1, &moves.unsqueeze(1), &moves.unsqueeze(1).full_like(change))
    }
    fn reverse(&self, _: Direction, _: &Tensor, moves: &Tensor) -> Tensor {
        moves.shallow_clone()
    }
    fn has_exit(&self) -> bool {
        self.has_exit
    }
    fn can_end(&self, states: &Tensor) -> Tensor {
        if self.has_exit {
            states.sum_dim_intlist(1, false, Kind::Int64).gt(0)
        } else {
            states.eq(2).all_dim(1, false)
        }
    }
    fn n_steps(&self) -> Option<usize> {
        (!self.has_exit).then_some(6)
    }
}

fn policy(env: &VectorEnv) -> MlpPolicy<KHot> {
    let backward = BackwardPolicy::SharedTorso;
    let estimators = EstimatorsConfig::with_flow(true);
    let config = MlpPolicyConfig { backward, estimators, ..MlpPolicyConfig::default() };
    MlpPolicy::new(env, KHot::from_env(env), config, Device::Cpu, Kind::Float, &mut Rng::seeded(3)).unwrap()
}

fn place(on_tensors: bool) -> RolloutPlace {
    if on_tensors { RolloutPlace::Device } else { RolloutPlace::Host }
}

#[test]
fn trajectories_of_one_length_are_those_of_the_host() {
    let env = VectorEnv::from_tensors(Climb { has_exit: false, blocked: None }).unwrap();
    let policy = policy(&env);
    for epsilon in [0.0, 0.3] {
        let exploration = Exploration::epsilon(epsilon).unwrap().with_temperature(1.7).unwrap();
        let sampler =
            |on_tensors| Sampler::new(&env, &policy).exploration(exploration).place(place(on_tensors));
        let [host, device] = [false, true].map(|on| sampler(on).forward(50, &mut Rng::seeded(5)).unwrap());
        assert!(device.states.device().is_some() && host.states.device().is_none());
        let [host_back, device_back] = [false, true]
            .map(|on| sampler(on).backward(host.terminal_states(), &mut Rng::seeded(6)).unwrap());
        for (host, device) in [(&host, &device), (&host_back, &device_back)] {
            assert_eq!(host.actions(), device.actions());
            assert_eq!(host.reverse_actions(), device.reverse_actions());
            assert_eq!(host.states(), device.states());
            assert_eq!(host.terminal_states(), device.terminal_states());
            assert_eq!((host.offsets(), host.is_exit()), (device.offsets(), device.is_exit()));
        }
        let other = sampler(true).forward(50, &mut Rng::seeded(7)).unwrap();
        assert_ne!(other.actions(), host.actions());
    }
}

/// Compares frequencies of objects in an environment whose trajectories have several lengths with their
/// probabilities. A roll-out on tensors draws other random numbers there than on the host.
#[test]
fn trajectories_of_several_lengths_have_the_probabilities_of_the_policy() {
    let env = VectorEnv::from_tensors(Climb { has_exit: true, blocked: None }).unwrap();
    let policy = policy(&env);
    let graph = crate::env::StateGraph::build(&env, 100).unwrap();
    let exact = graph.terminating_distribution(&env, &policy, None).unwrap().probs;
    let n = 40_000;
    let walks =
        Sampler::new(&env, &policy).place(RolloutPlace::Device).walks(n, &mut Rng::seeded(4)).unwrap();
    let mut counts = vec![0.0; graph.len()];
    for index in graph.indices(&env, &walks.terminal) {
        counts[index.unwrap()] += 1.0 / n as f64;
    }
    let tv: f64 = counts.iter().zip(&exact).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0;
    assert!(tv < 0.012, "{tv}");
    let uniform = 1.0 / graph.len() as f64;
    assert!(exact.iter().map(|p| (p - uniform).abs()).sum::<f64>() / 2.0 > 0.05);
    assert_eq!(walks.offsets.last(), Some(&walks.actions.len()));
}

#[test]
fn failures_on_a_device_are_typed_errors() {
    let env = VectorEnv::from_tensors(Climb { has_exit: false, blocked: Some(1) }).unwrap();
    let good = policy(&env);
    let sampler = |policy, max_steps| {
        Sampler::new(&env, policy)
            .max_steps(max_steps)
            .place(RolloutPlace::Device)
            .forward(4, &mut Rng::seeded(0))
    };
    let dead_end = sampler(&good, 100).unwrap_err().to_string();
    assert!(dead_end.contains("without a legal forward action"), "{dead_end}");
    let whole = VectorEnv::from_tensors(Climb { has_exit: true, blocked: None }).unwrap();
    let policy = policy(&whole);
    let limited = Sampler::new(&whole, &policy).max_steps(1).place(RolloutPlace::Device);
    assert!(matches!(limited.forward(20, &mut Rng::seeded(0)), Err(Error::StepLimit { limit: 1, .. })));
    for parameter in good.parameters().iter() {
        let mut tensor = parameter.tensor.shallow_clone();
        let _ = tch::no_grad(|| tensor.fill_(f64::NAN));
    }
    let not_finite = sampler(&good, 100).unwrap_err().to_string();
    assert!(not_finite.contains("a logit that isn't finite"), "{not_finite}");
    assert_eq!(whole.masks(Direction::Forward, &whole.initial(&[0])).legal, [true, true, true, false]);
}
