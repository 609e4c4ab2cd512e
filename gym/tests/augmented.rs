//! Tests of training with intrinsic rewards. The flows that include the intrinsic rewards (augmented flows)
//! are computed by enumeration. For these flows the losses of augmented trajectory balance and augmented
//! detailed balance must vanish. With coefficients of 0 the steps must be those of trajectory balance.
//! Training must end at the target that the coefficients define.

use gfn::env::{Child, StateGraph, VectorEnv};
use gfn::env::{Direction, EnumerableEnv, Reward, Rows, VectorStates};
use gfn::metrics::{Distances, ExactPolicy};
use gfn::nn::{BackwardPolicy, EstimatorsConfig};
use gfn::objective::{AugmentedDetailedBalance, AugmentedTrajectoryBalance, Objective, TrajectoryBalance};
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::policy::{ByIndex, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy};
use gfn::train::{StepStats, TrainEnv, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{DistillationConfig, Intrinsic, IntrinsicConfig, Novelty, RandomDistillation};
use gfn_gym::bit_sequence::{HammingReward, NonAutoregressiveBitSequence};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use gfn_gym::toy_dag::{ToyDag, ToyReward};
use tch::{Device, Kind, Tensor};

/// Returns the novelty of each state, a fixed function of the state. The novelty differs between states and
/// is 0 in some of them.
fn novelty_table(states: &VectorStates) -> Result<Vec<f64>> {
    Ok(states.rows().map(|row| row.iter().map(|&x| f64::from(x)).sum::<f64>() * 0.3 % 1.0).collect())
}

/// Builds a tabular policy in double precision: each state of the environment has its own row of parameters.
/// The policy has a log F and a uniform P_B.
fn table<E: EnumerableEnv<States = VectorStates> + TrainEnv + Clone + 'static>(
    env: &E,
) -> MlpPolicy<ByIndex<E>> {
    let features = ByIndex::new(env.clone(), StateGraph::build(env, 1_000).unwrap());
    let config = MlpPolicyConfig {
        backward: BackwardPolicy::Uniform,
        estimators: EstimatorsConfig::with_flow(true),
        ..MlpPolicyConfig::default()
    };
    MlpPolicy::tabular(env, features, config, Device::Cpu, Kind::Double).unwrap()
}

/// Sets a tabular policy to the augmented flows, and returns log Z. The augmented flow of a state s is the
/// sum of `R(s) + t r(s)`, if a trajectory can end in s, and of `F(s') P_B(s | s') + e r(s')` over its
/// children s'. Here r is the novelty, and e and t are coefficients. P_F is in proportion to the terms of
/// this sum.
fn fill<E: EnumerableEnv<States = VectorStates> + TrainEnv + Clone + 'static>(
    env: &E,
    policy: &MlpPolicy<ByIndex<E>>,
    reward: &impl Reward<VectorStates>,
    (e, t): (f64, f64),
) -> f64 {
    let graph = StateGraph::build(env, 1_000).unwrap();
    let novelty = novelty_table(graph.states()).unwrap();
    let ends = graph.ends();
    let log_r = reward.log_reward(&graph.states().select(&ends), None).unwrap();
    let mut flow = vec![0.0; graph.len()];
    for (&s, log_r) in ends.iter().zip(log_r) {
        flow[s] = log_r.exp() + t * novelty[s];
    }
    let stop = flow.clone();
    let mut parents = vec![0.0; graph.len()];
    for s in 0..graph.len() {
        for child in graph.children(s) {
            if let Child::State(child) = child {
                parents[child] += 1.0;
            }
        }
    }
    let parameters = Policy::<E>::parameters(policy).unwrap();
    let tensor =
        |name: &str| parameters.iter().find(|p| p.name.ends_with(name)).unwrap().tensor.shallow_clone();
    let table = tensor("table");
    let mut log_z = tensor("log_z");
    let columns = table.size()[1];
    let masks = env.masks(Direction::Forward, graph.states());
    let mut rows = vec![0.0; graph.len() * columns as usize];
    for s in (0..graph.len()).rev() {
        let mut total = if graph.children(s).len() == 0 { stop[s] } else { 0.0 };
        for (child, slot) in graph.children(s).zip(masks.legal_slots(s)) {
            let term = match child {
                Child::Exit => stop[s],
                Child::State(child) => flow[child] / parents[child] + e * novelty[child],
            };
            total += term;
            rows[s * columns as usize + slot as usize] = term.ln();
        }
        flow[s] = total;
        rows[(s + 1) * columns as usize - 1] = total.ln();
    }
    tch::no_grad(|| {
        table.shallow_clone().copy_(&Tensor::from_slice(&rows).view([-1, columns]));
        let _ = log_z.fill_(flow[0].ln());
    });
    flow[0].ln()
}

fn frozen_config() -> TrainerConfig {
    let adam = AdamConfig { lr: 0.0, log_z_lr: 0.0, ..AdamConfig::default() };
    TrainerConfig { batch: 64, adam, epsilon: Some(Schedule::Constant(0.5)), ..TrainerConfig::default() }
}

fn constant(e: f64, t: f64) -> IntrinsicConfig {
    IntrinsicConfig { edges: Schedule::Constant(e), terminal: Schedule::Constant(t) }
}

/// Returns the loss of a training step in which intrinsic rewards have the coefficients `training`. The
/// policy is filled with the exact flows that belong to the coefficients `flows`.
fn loss<E: EnumerableEnv<States = VectorStates> + TrainEnv + Clone + 'static>(
    env: &E,
    reward: &(impl Reward<VectorStates> + Clone + 'static),
    objective: impl Objective + 'static,
    (flows, training): ((f64, f64), (f64, f64)),
) -> f64 {
    let policy = table(env);
    fill(env, &policy, reward, flows);
    let trainer =
        Trainer::new(env.clone(), reward.clone(), policy, objective, frozen_config(), Rng::seeded(1))
            .unwrap();
    trainer
        .with_companion(Intrinsic::new(novelty_table, constant(training.0, training.1)).unwrap())
        .unwrap()
        .step()
        .unwrap()
        .loss
}

fn check<E, R>(env: &E, reward: &R)
where
    E: EnumerableEnv<States = VectorStates> + TrainEnv + Clone + 'static,
    R: Reward<VectorStates> + Clone + 'static,
{
    // Each pair has a coefficient for transitions and one for terminal states. A coefficient of 0 means that
    // there are no intrinsic rewards of this kind.
    for coefficients in [(0.4, 0.0), (0.0, 0.3), (0.4, 0.3)] {
        let tb = |training| loss(env, reward, AugmentedTrajectoryBalance, (coefficients, training));
        let db = |training| loss(env, reward, AugmentedDetailedBalance, (coefficients, training));
        // A uniform P_B is computed in single precision, so the losses are only 0 up to 1e-10.
        assert!(
            tb(coefficients) < 1e-10 && db(coefficients) < 1e-10,
            "{} {}",
            tb(coefficients),
            db(coefficients)
        );
        // As a negative control, the same flows must leave a residual if training has no intrinsic rewards.
        assert!(tb((0.0, 0.0)) > 1e-5 && db((0.0, 0.0)) > 1e-5, "{} {}", tb((0.0, 0.0)), db((0.0, 0.0)));
    }
    // If intrinsic rewards have coefficients of 0, the flows must be those of the reward alone.
    let graph = StateGraph::build(env, 1_000).unwrap();
    let exact = ExactPolicy::new(&graph, env, &UniformPolicy, reward).unwrap();
    let policy = table(env);
    assert!((fill(env, &policy, reward, (0.0, 0.0)) - exact.flows().log_z).abs() < 1e-9);
    // With intrinsic rewards the flows must sample another distribution than the target.
    let target = graph.target_distribution(reward, None).unwrap();
    let tv = |policy: &MlpPolicy<ByIndex<E>>| {
        let sampled = graph.terminating_distribution(env, policy, None).unwrap();
        Distances::between(&sampled.probs, &target.probs).unwrap().tv
    };
    assert!(tv(&policy) < 1e-9);
    fill(env, &policy, reward, (0.4, 0.3));
    assert!(tv(&policy) > 1e-3, "{}", tv(&policy));
}

#[test]
fn both_objectives_vanish_at_the_augmented_flows() {
    check(&ToyDag.env(), &ToyReward::default());
    let grid = HyperGrid::new(2, 4).unwrap();
    check(&grid.env(), &OriginalReward::standard(&grid).unwrap());
    let bits = NonAutoregressiveBitSequence::new(1, 4).unwrap();
    let modes = [vec![true, false, true, true], vec![false; 4]];
    check(&bits.env(), &HammingReward::with_temperature(bits.words(), &modes, 0.7).unwrap());
}

fn grid_trainer(objective: impl Objective + 'static, seed: u64) -> Trainer<VectorEnv> {
    tch::set_num_threads(1);
    let grid = HyperGrid::new(2, 4).unwrap();
    let env = grid.env();
    let mut rng = Rng::seeded(seed);
    let config = MlpPolicyConfig {
        estimators: EstimatorsConfig::with_flow(true),
        backward: BackwardPolicy::Uniform,
        ..MlpPolicyConfig::default()
    };
    let policy = MlpPolicy::new(&env, KHot::new(2, 4), config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let reward = OriginalReward::standard(&grid).unwrap();
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    Trainer::new(env.clone(), reward, policy, objective, config, rng).unwrap()
}

fn bits(stats: &StepStats) -> [u64; 4] {
    [stats.loss, stats.log_z, stats.mean_len, stats.grad_norm].map(f64::to_bits)
}

#[test]
fn without_a_coefficient_it_is_trajectory_balance_to_the_last_bit() {
    let mut plain = grid_trainer(TrajectoryBalance, 3);
    let augmented = grid_trainer(AugmentedTrajectoryBalance, 3)
        .with_companion(Intrinsic::new(novelty_table, constant(0.0, 0.0)).unwrap());
    let mut augmented = augmented.unwrap();
    for _ in 0..20 {
        assert_eq!(bits(&plain.step().unwrap()), bits(&augmented.step().unwrap()));
    }
}

fn distillation(seed: u64) -> RandomDistillation<KHot> {
    let config = DistillationConfig { outputs: 16, ..DistillationConfig::default() };
    RandomDistillation::new(KHot::new(2, 4), config, Device::Cpu, Kind::Float, &mut Rng::seeded(seed))
        .unwrap()
}

#[test]
fn novelty_shrinks_with_visits_and_survives_a_checkpoint() {
    let coefficient = Schedule::Linear { from: 0.2, to: 0.0, steps: 40 };
    let make = |seed| {
        let trainer = grid_trainer(AugmentedTrajectoryBalance, seed);
        let intrinsic =
            Intrinsic::new(distillation(seed), IntrinsicConfig::joint(coefficient.clone())).unwrap();
        trainer.with_companion(intrinsic).unwrap()
    };
    let folder = std::env::temp_dir().join(format!("gfn-augmented-{}", std::process::id()));
    let mut whole = make(1);
    let all = StateGraph::build(whole.env(), 100).unwrap();
    type Distilled = Intrinsic<RandomDistillation<KHot>>;
    let novelty = |trainer: &Trainer<VectorEnv>| {
        trainer.companion::<Distilled>().unwrap().novelty().rewards(all.states()).unwrap()
    };
    let before = novelty(&whole);
    for _ in 0..10 {
        whole.step().unwrap();
    }
    whole.save(&folder).unwrap();
    let middle = novelty(&whole);
    let expected: Vec<_> = (0..10).map(|_| bits(&whole.step().unwrap())).collect();

    let mut resumed = make(2);
    assert_ne!(novelty(&resumed), middle);
    resumed.resume(&folder).unwrap();
    assert_eq!(novelty(&resumed), middle);
    let again: Vec<_> = (0..10).map(|_| bits(&resumed.step().unwrap())).collect();
    assert_eq!(again, expected);
    assert_eq!(novelty(&resumed), novelty(&whole));

    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let before = mean(before);
    let after = mean(novelty(&whole));
    assert!(after < 0.8 * before, "{after} of {before}");
    // The checkpoint is that of a run with intrinsic rewards. A trainer without intrinsic rewards must refuse
    // to resume from this checkpoint, and the error must name the novelty.
    let refused = grid_trainer(AugmentedTrajectoryBalance, 1).resume(&folder).unwrap_err().to_string();
    assert!(refused.contains("novelty"), "{refused}");
    std::fs::remove_dir_all(&folder).ok();
}

/// Checks that training the networks that estimate novelty (random distillation) on one state reduces the
/// novelty of this state, but leaves the novelty of a distant state high.
#[test]
fn unvisited_states_stay_novel() {
    let mut novelty = distillation(0);
    let seen = VectorStates::from_rows([[0, 1]]);
    let far = VectorStates::from_rows([[3, 3]]);
    let reward = |novelty: &RandomDistillation<KHot>, states| novelty.rewards(states).unwrap()[0];
    let before = [reward(&novelty, &seen), reward(&novelty, &far)];
    for _ in 0..200 {
        novelty.learn(&seen).unwrap();
    }
    let after = [reward(&novelty, &seen), reward(&novelty, &far)];
    assert!(after[0] < 0.05 * before[0] && after[1] > 0.3 * before[1], "{before:?} {after:?}");
}

#[test]
fn training_ends_at_the_augmented_target_or_at_the_target_without_rewards() {
    let grid = HyperGrid::new(2, 4).unwrap();
    let env = grid.env();
    let reward = OriginalReward::standard(&grid).unwrap();
    let graph = StateGraph::build(&env, 100).unwrap();
    let sampled =
        |policy: &dyn Policy<VectorEnv>| graph.terminating_distribution(&env, policy, None).unwrap();
    let exact = table(&env);
    fill(&env, &exact, &reward, (0.1, 0.1));
    let augmented = sampled(&exact).probs;
    let target = graph.target_distribution(&reward, None).unwrap().probs;
    let train = |edges: Schedule| {
        let adam = AdamConfig { lr: 0.05, ..AdamConfig::default() };
        let lr_scale = Schedule::Linear { from: 1.0, to: 0.0, steps: 600 };
        let config = TrainerConfig { batch: 32, adam, lr_scale, ..TrainerConfig::default() };
        let objective = AugmentedDetailedBalance;
        let trainer =
            Trainer::new(env.clone(), reward.clone(), table(&env), objective, config, Rng::seeded(0))
                .unwrap();
        let mut trainer = trainer
            .with_companion(Intrinsic::new(novelty_table, IntrinsicConfig::joint(edges)).unwrap())
            .unwrap();
        for _ in 0..600 {
            trainer.step().unwrap();
        }
        sampled(trainer.policy()).probs
    };
    let tv = |a: &[f64], b: &[f64]| Distances::between(a, b).unwrap().tv;
    let held = train(Schedule::Constant(0.1));
    assert!(tv(&held, &augmented) < 0.02 && tv(&held, &target) > 0.05, "{}", tv(&held, &augmented));
    let ended = train(Schedule::Linear { from: 0.1, to: 0.0, steps: 200 });
    assert!(tv(&ended, &target) < 0.02, "{}", tv(&ended, &target));
}

#[test]
fn invalid_settings_are_refused() {
    let message = |trainer: Result<Trainer<_>>| match trainer {
        Err(error @ Error::Config { .. }) => error.to_string(),
        other => format!("{other:?}"),
    };
    let intrinsic = Intrinsic::new(novelty_table, constant(0.1, 0.1)).unwrap();
    let other = grid_trainer(TrajectoryBalance, 0).with_companion(intrinsic);
    assert!(message(other).contains("ignores the companion"));
    let negative = IntrinsicConfig::edge_based(Schedule::Linear { from: 0.1, to: -0.1, steps: 9 });
    let negative = Intrinsic::new(novelty_table, negative).map(drop).unwrap_err();
    assert!(matches!(negative, Error::Config { .. }) && negative.to_string().contains("at least 0"));
    let none = grid_trainer(AugmentedTrajectoryBalance, 0).step().unwrap_err();
    assert!(none.to_string().contains("`Intrinsic`"), "{none}");
    let wrong = |states: &VectorStates| Ok(vec![-1.0; states.len()]);
    let wrong = grid_trainer(AugmentedTrajectoryBalance, 0)
        .with_companion(Intrinsic::new(wrong, constant(0.1, 0.1)).unwrap());
    assert!(matches!(wrong.unwrap().step(), Err(Error::NonFinite { .. })));
}
