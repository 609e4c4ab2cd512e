//! Tests that scores and training on tensors agree with those on the host, for each family of environments
//! with a tensor form. Everything runs on the CPU; the same operations run on a GPU.

use gfn::Rng;
use gfn::env::{Reward, StateGraph, VectorEnv, VectorStates};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::objective::{
    Advantage, DetailedBalance, FlowMatching, LogPartitionVariance, ModifiedDetailedBalance, Objective,
    PolicyGradient, Regression, StateFlow, SubTrajectoryBalance, TrajectoryBalance, TrajectoryLikelihood,
    Weighting, score,
};
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Container, RolloutPlace, Sampler, Trajectories};
use gfn::tensor::to_host;
use gfn::train::{Trainer, TrainerConfig};
use gfn_gym::bit_sequence::{
    BitSequence, HammingReward, NonAutoregressiveBitSequence, PrependAppendBitSequence,
};
use gfn_gym::discrete_ebm::{DiscreteEbm, EbmBackward, EbmPolicy, IsingReward};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use gfn_gym::set_addition::{SetAddition, WeightReward};
use tch::{Device, Kind, Tensor};

use crate::vectors_training::distances;

/// A small environment of a family, with its reward.
struct Family {
    name: &'static str,
    env: VectorEnv,
    reward: Box<dyn Fn() -> Box<dyn Reward<VectorStates>>>,
    /// `true` if a trajectory can end in every state, and unfinished states have rewards.
    has_partial_rewards: bool,
}

fn families() -> Vec<Family> {
    let family = |name, env, has_partial_rewards, reward: Box<dyn Fn() -> Box<dyn Reward<VectorStates>>>| {
        Family { name, env, reward, has_partial_rewards }
    };
    let grid = HyperGrid::new(2, 4).unwrap();
    let spins = DiscreteEbm::new(4).unwrap();
    let modes = [vec![true, false, true, true], vec![false; 4]];
    let cells = NonAutoregressiveBitSequence::new(1, 4).unwrap();
    let words = BitSequence::new(2, 4).unwrap();
    let ends = PrependAppendBitSequence::new(1, 4).unwrap();
    let sets = SetAddition::new(5, 3, false).unwrap();
    let near = |words| HammingReward::with_temperature(words, &modes, 0.7).unwrap();
    let [near_cells, near_words, near_ends] = [near(cells.words()), near(words.words()), near(ends.words())];
    let weights = WeightReward::new(&sets, 0.3, &[0.5, 1.4, 2.0, 0.1, 0.7]).unwrap();
    vec![
        family(
            "grid",
            grid.env(),
            true,
            Box::new(move || Box::new(OriginalReward::standard(&grid).unwrap())),
        ),
        family(
            "spins",
            spins.env(),
            false,
            Box::new(|| Box::new(IsingReward::lattice(2, 0.3, 1.0).unwrap())),
        ),
        family("bits in any order", cells.env(), false, Box::new(move || Box::new(near_cells.clone()))),
        family("words", words.env(), false, Box::new(move || Box::new(near_words.clone()))),
        family("bits at both ends", ends.env(), false, Box::new(move || Box::new(near_ends.clone()))),
        family("sets", sets.env(), true, Box::new(move || Box::new(weights.clone()))),
    ]
}

fn policy_config() -> MlpPolicyConfig {
    let mlp = MlpConfig { hidden: vec![64], ..MlpConfig::default() };
    let backward = BackwardPolicy::SharedTorso;
    let estimators = EstimatorsConfig::with_flow(true);
    MlpPolicyConfig { mlp, backward, estimators, ..MlpPolicyConfig::default() }
}

fn policy(env: &VectorEnv, seed: u64) -> MlpPolicy<KHot> {
    let rng = &mut Rng::seeded(seed);
    MlpPolicy::new(env, KHot::from_env(env), policy_config(), Device::Cpu, Kind::Float, rng).unwrap()
}

fn objectives(family: &Family) -> Vec<Box<dyn Objective>> {
    let subtb = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
    let mut all: Vec<Box<dyn Objective>> = vec![
        Box::new(TrajectoryBalance),
        Box::new(LogPartitionVariance),
        Box::new(DetailedBalance::default()),
        Box::new(subtb),
        Box::new(FlowMatching::default()),
        Box::new(PolicyGradient::new(Advantage::Baseline).unwrap()),
        Box::new(TrajectoryLikelihood),
    ];
    if family.has_partial_rewards {
        all.push(Box::new(DetailedBalance { flow: StateFlow::ForwardLooking }));
        all.push(Box::new(ModifiedDetailedBalance::default()));
    }
    all
}

/// Returns the loss of these trajectories, and all gradients.
fn loss_and_gradients(
    family: &Family,
    policy: &MlpPolicy<KHot>,
    objective: &dyn Objective,
    trajectories: &Trajectories<VectorEnv>,
) -> Vec<f64> {
    let reward = (family.reward)();
    let scores = score(&family.env, reward.as_ref(), policy, trajectories, objective.needs()).unwrap();
    let loss = objective.loss(&scores, &Regression::default()).unwrap();
    policy.parameters().clear_gradients();
    loss.backward();
    let mut values = to_host(&loss);
    for parameter in policy.parameters().iter().filter(|parameter| parameter.tensor.grad().defined()) {
        values.extend(to_host(&parameter.tensor.grad()));
    }
    values
}

#[test]
fn losses_and_gradients_of_every_objective_agree_with_the_host() {
    for family in families() {
        let policy = policy(&family.env, 3);
        let sampler = Sampler::new(&family.env, &policy).place(RolloutPlace::Device);
        let mut on_tensors = sampler.forward(24, &mut Rng::seeded(1)).unwrap();
        let back = sampler.backward(on_tensors.terminal_states(), &mut Rng::seeded(2)).unwrap();
        on_tensors.append(back).unwrap();
        let replayed = |walks: &Trajectories<VectorEnv>| {
            Trajectories::<VectorEnv>::replay(&family.env, walks.actions(), walks.offsets()).unwrap()
        };
        let on_host = replayed(&on_tensors);
        assert_eq!(on_tensors.terminal_states(), on_host.terminal_states());
        let others = replayed(&sampler.forward(48, &mut Rng::seeded(3)).unwrap());
        for objective in objectives(&family) {
            // A word has one backward action, so P_B has nothing to learn there.
            if (family.name, objective.name()) == ("words", TrajectoryLikelihood.name()) {
                continue;
            }
            let values = |walks| loss_and_gradients(&family, &policy, objective.as_ref(), walks);
            let [got, expected, other] = [&on_tensors, &on_host, &others].map(values);
            let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
            let off = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let name = objective.name();
            assert_eq!(got.len(), expected.len());
            assert!(off(&got, &expected) < 1e-5 * norm(&expected).max(1.0), "{}, {name}", family.name);
            assert!(off(&other, &expected) > 1e-3 * norm(&expected), "{}, {name}: no control", family.name);
        }
    }
}

/// The number of steps by which the tests train a policy.
const STEPS: usize = 200;

/// Returns the settings of a training run of `STEPS` steps.
fn training(batch: usize, place: RolloutPlace) -> TrainerConfig {
    TrainerConfig {
        batch,
        adam: AdamConfig { lr: 1e-2, log_z_lr: 1e-1, ..AdamConfig::default() },
        epsilon: Some(Schedule::Constant(0.1)),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.02, steps: STEPS },
        rollouts: place,
        ..TrainerConfig::default()
    }
}

/// Trains a policy, and returns the exact total variation between its distribution and the target.
fn train(
    family: &Family,
    policy: impl Policy<VectorEnv> + Send + 'static,
    place: RolloutPlace,
    seed: u64,
) -> f64 {
    let config = training(24, place);
    let env = family.env.clone();
    let mut trainer =
        Trainer::new(env, (family.reward)(), policy, TrajectoryBalance, config, Rng::seeded(seed)).unwrap();
    for _ in 0..STEPS {
        trainer.step().unwrap();
    }
    assert_eq!(trainer.context().rollout_place(), place);
    distances(&family.env, trainer.policy(), &(family.reward)()).tv
}

/// Compares three seeds on tensors with three seeds on the host.
#[test]
fn training_on_tensors_learns_as_on_the_host() {
    for family in families() {
        let before = distances(&family.env, &policy(&family.env, 0), &(family.reward)()).tv;
        let [host, tensors] = [RolloutPlace::Host, RolloutPlace::Device]
            .map(|place| [0, 1, 2].map(|seed| train(&family, policy(&family.env, seed), place, seed)));
        let worst = host.iter().copied().fold(0.0, f64::max);
        let mean = tensors.iter().sum::<f64>() / 3.0;
        let words = format!("{}: {before} before, {host:?} on the host, {tensors:?}", family.name);
        assert!(tensors.iter().all(|after| *after < before / 4.0), "{words}");
        assert!(mean < 1.5 * worst, "{words}");
    }
}

/// The policy of EB-GFN has no copy on the host, so on the host its states are encoded there.
#[test]
fn policies_of_spins_train_on_tensors() {
    let family = families().swap_remove(1);
    let spins = DiscreteEbm::new(4).unwrap();
    let mlp = MlpConfig { hidden: vec![64], ..MlpConfig::default() };
    for backward in [EbmBackward::Uniform, EbmBackward::Learned] {
        let rng = &mut Rng::seeded(0);
        let policy = EbmPolicy::new(&spins, &mlp, backward, Device::Cpu, Kind::Float, rng).unwrap();
        let before = distances(&family.env, &policy, &(family.reward)()).tv;
        let after = train(&family, policy, RolloutPlace::Device, 0);
        assert!(after < before / 4.0, "{backward:?}: {before} before, {after} after");
    }
}

/// Batches mix trajectories on tensors with replayed ones, whose states are on the host.
#[test]
fn replayed_trajectories_join_those_on_tensors() {
    for family in families() {
        let rollouts = RolloutPlace::Device;
        let config = TrainerConfig { batch: 16, rollouts, ..TrainerConfig::default() };
        let env = family.env.clone();
        let policy = policy(&env, 0);
        let rng = Rng::seeded(0);
        let trainer = Trainer::new(env, (family.reward)(), policy, TrajectoryBalance, config, rng).unwrap();
        let buffer =
            ReplayBuffer::new(ReplayConfig { capacity: 64, eviction: Eviction::Fifo, draw: Draw::Uniform })
                .unwrap();
        let mut trainer = trainer.with_replay(buffer);
        for _ in 0..3 {
            assert!(trainer.step().unwrap().loss.is_finite());
        }
        assert!(!trainer.replay().unwrap().is_empty(), "{}", family.name);
    }
}

/// Builds a trainer of the seeds 0, 1 and 2 with stacked parameters, and 24 trajectories per seed.
fn stacked_trainer(family: &Family, place: RolloutPlace) -> Trainer<VectorEnv> {
    let env = family.env.clone();
    let mut rngs = [0, 1, 2].map(Rng::seeded);
    let features = KHot::from_env(&env);
    let policy =
        MlpPolicy::stacked(&env, features, policy_config(), Device::Cpu, Kind::Float, &mut rngs).unwrap();
    let config = training(3 * 24, place);
    Trainer::new(env, (family.reward)(), policy, TrajectoryBalance, config, Rng::seeded(0)).unwrap()
}

/// Compares the scores of stacked policies, on the host and on tensors, with those of a policy per seed.
#[test]
fn stacked_policies_score_as_a_policy_per_seed() {
    for (family, place) in families().into_iter().take(2).zip([RolloutPlace::Device, RolloutPlace::Measured])
    {
        let mut trainer = stacked_trainer(&family, place);
        let mut batch = trainer.draw().unwrap();
        let scores = trainer.score(&mut batch).unwrap();
        let got = to_host(&scores.whole().log_pf);
        let all = &batch.trajectories;
        let replayed = |seed: usize| {
            let share = all.select(24 * seed..24 * (seed + 1)).unwrap();
            Trajectories::<VectorEnv>::replay(&family.env, share.actions(), share.offsets()).unwrap()
        };
        let log_pf = |shift: usize| -> Vec<f64> {
            let of_seed = |seed: usize| {
                let policy = policy(&family.env, ((seed + shift) % 3) as u64);
                let reward = (family.reward)();
                let needs = TrajectoryBalance.needs();
                let scores = score(&family.env, reward.as_ref(), &policy, &replayed(seed), needs).unwrap();
                to_host(&scores.log_pf)
            };
            (0..3).flat_map(of_seed).collect()
        };
        let off = |a: &[f64]| got.iter().zip(a).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let expected = log_pf(0);
        assert_eq!(got.len(), expected.len());
        assert!(off(&expected) < 1e-5, "{}: {}", family.name, off(&expected));
        assert!(off(&log_pf(1)) > 1e-2, "{}: no control", family.name);
    }
}

/// Compares three seeds that are trained together with three seeds that are trained one after the other.
#[test]
fn stacked_policies_learn_as_a_policy_per_seed() {
    for (family, place) in families().into_iter().take(2).zip([RolloutPlace::Measured, RolloutPlace::Device])
    {
        let before = distances(&family.env, &policy(&family.env, 0), &(family.reward)()).tv;
        let alone = [0, 1, 2].map(|seed| train(&family, policy(&family.env, seed), RolloutPlace::Host, seed));
        let mut trainer = stacked_trainer(&family, place);
        for _ in 0..STEPS {
            trainer.step().unwrap();
        }
        let graph = StateGraph::build(&family.env, 1_000).unwrap();
        let target = graph.target_distribution((family.reward)().as_ref(), None).unwrap();
        let together = [0.0, 1.0, 2.0].map(|seed| {
            let seed = Tensor::from_slice(&[seed]);
            let sampled = graph.terminating_distribution(&family.env, trainer.policy(), Some(&seed)).unwrap();
            Distances::between(&sampled.probs, &target.probs).unwrap().tv
        });
        let worst = alone.iter().copied().fold(0.0, f64::max);
        let words = format!("{}: {before} before, {alone:?} alone, {together:?} together", family.name);
        assert!(together.iter().all(|after| *after < before / 4.0), "{words}");
        assert!(together.iter().sum::<f64>() / 3.0 < 1.5 * worst, "{words}");
        println!("{words}");
    }
}
