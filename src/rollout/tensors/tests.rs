use super::*;
use crate::env::{DiscreteEnv, TensorEnv, VectorEnv, VectorStates};
use crate::nn::{BackwardPolicy, EstimatorsConfig};
use crate::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use crate::rollout::{RolloutPlace, Sampler};

/// Vectors of three entries. A move raises an entry by 1, up to 2. Without an exit, a trajectory ends
/// when all entries are 2.
struct Climb {
    has_exit: bool,
    /// The entry that can't be raised above 1, so that a trajectory without an exit has a dead end.
    blocked: Option<i64>,
    n_steps: Option<usize>,
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
        self.n_steps
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
    let env = VectorEnv::from_tensors(Climb { has_exit: false, blocked: None, n_steps: Some(6) }).unwrap();
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
    let env = VectorEnv::from_tensors(Climb { has_exit: true, blocked: None, n_steps: None }).unwrap();
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
    let build =
        |has_exit, blocked, n_steps| VectorEnv::from_tensors(Climb { has_exit, blocked, n_steps }).unwrap();
    let run = |env: &VectorEnv, policy: &MlpPolicy<KHot>, max_steps| {
        let sampler = Sampler::new(env, policy).max_steps(max_steps).place(RolloutPlace::Device);
        sampler.forward(20, &mut Rng::seeded(0)).map(|walks| walks.n_transitions())
    };
    let blocked = build(false, Some(1), Some(6));
    assert!(matches!(
        run(&blocked, &policy(&blocked), 100),
        Err(Error::NoLegalAction { direction: Direction::Forward, .. })
    ));
    let free = build(true, None, None);
    let good = policy(&free);
    // The limit isn't a multiple of the number of steps between two waits.
    for max_steps in [1, 3] {
        assert!(matches!(
            run(&free, &good, max_steps),
            Err(Error::StepLimit { limit, .. }) if limit == max_steps
        ));
    }
    assert!(run(&free, &good, 7).is_ok());
    let short = build(false, None, Some(5));
    let error = run(&short, &policy(&short), 100).unwrap_err().to_string();
    assert!(error.contains("n_steps") && error.contains("20 of 20"), "{error}");
    // An object that can't be built: an entry is out of range, or the exit isn't legal there.
    let sampler = Sampler::new(&free, &good).place(RolloutPlace::Device);
    let foreign = VectorStates::from_rows([[0, 1, 5]]);
    assert!(matches!(sampler.backward(&foreign, &mut Rng::seeded(0)), Err(Error::Config { .. })));
    for has_exit in [false, true] {
        let env = build(has_exit, None, None);
        let policy = policy(&env);
        for parameter in policy.parameters().iter() {
            let mut tensor = parameter.tensor.shallow_clone();
            let _ = tch::no_grad(|| tensor.fill_(f64::NAN));
        }
        assert!(matches!(run(&env, &policy, 100), Err(Error::NonFinite { .. })));
    }
    let noise = Exploration::on_policy().with_noise(0.1).unwrap();
    let noisy = sampler.exploration(noise).forward(2, &mut Rng::seeded(0));
    assert!(noisy.unwrap_err().to_string().contains("noise"));
    assert_eq!(free.masks(Direction::Forward, &free.initial(&[0])).legal, [true, true, true, false]);
}

/// A state without a legal backward move that isn't the initial state ends a backward roll-out with an error,
/// as on the host.
#[test]
fn backward_rollouts_must_end_in_the_initial_state() {
    /// Entries of at most 1, of which only entry 0 can be lowered.
    struct Stuck;
    impl TensorEnv for Stuck {
        fn width(&self) -> usize {
            2
        }
        fn n_values(&self) -> usize {
            2
        }
        fn n_moves(&self, _: Direction) -> usize {
            2
        }
        fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
            match direction {
                Direction::Forward => states.eq(0),
                Direction::Backward => states.eq(1).logical_and(&Tensor::from_slice(&[true, false])),
            }
        }
        fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
            states.scatter_value(1, &moves.unsqueeze(1), i64::from(direction == Direction::Forward))
        }
        fn reverse(&self, _: Direction, _: &Tensor, moves: &Tensor) -> Tensor {
            moves.shallow_clone()
        }
    }
    let env = VectorEnv::from_tensors(Stuck).unwrap();
    let policy = policy(&env);
    for place in [RolloutPlace::Host, RolloutPlace::Device] {
        let back = |row| {
            let sampler = Sampler::new(&env, &policy).place(place);
            sampler.backward(&VectorStates::from_rows([row]), &mut Rng::seeded(0))
        };
        assert!(back([1, 0]).is_ok(), "{place}");
        let stuck = back([1, 1]);
        assert!(matches!(stuck, Err(Error::NoLegalAction { direction: Direction::Backward, .. })), "{place}");
    }
}

/// An illegal action has no probability, whether the distribution has logits or is uniform.
#[test]
fn illegal_actions_are_refused_on_tensors() {
    use crate::distribution::GraphActionCategorical;
    use crate::env::Slots;
    let legal = Tensor::from_slice(&[true, false]).view([1, 2]);
    let logits = Tensor::from_slice(&[0f32, 3.0]).view([1, 2]);
    for logits in [None, Some(&logits)] {
        let build =
            GraphActionCategorical::from_tensors(Direction::Forward, legal.shallow_clone(), false, logits);
        let dist = build.unwrap();
        assert_eq!(dist.log_prob(&[0], &Slots(vec![0])).unwrap().double_value(&[0]), 0.0);
        assert!(matches!(dist.log_prob(&[0], &Slots(vec![1])), Err(Error::IllegalAction { .. })));
        assert!(matches!(dist.log_prob(&[0], &Slots(vec![2])), Err(Error::IllegalAction { .. })));
        assert!(matches!(dist.log_prob(&[1], &Slots(vec![0])), Err(Error::OutOfRange { .. })));
    }
}
