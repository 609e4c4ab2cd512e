//! Tests of the places where roll-outs evaluate a policy: its copy on the host, and tensors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gfn::distribution::Distribution;
use gfn::env::{Direction, Env, HostPolicy, Rows, StateGraph, VectorEnv, VectorStates};
use gfn::examples::{Triangles, word_env};
use gfn::metrics::{Distances, NoiseFloor};
use gfn::nn::{BackwardPolicy, GraphNet, GraphNetConfig, Parameters};
use gfn::objective::{Quantities, TrajectoryBalance};
use gfn::policy::{
    Evaluation, GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy, SequenceLayout, SequencePolicy,
    SequencePolicyConfig, UniformPolicy,
};
use gfn::rollout::{RolloutPlace, Sampler};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

const PLACES: [RolloutPlace; 3] = [RolloutPlace::Host, RolloutPlace::Device, RolloutPlace::Measured];

fn words_policy(backward: BackwardPolicy, kind: Kind) -> MlpPolicy<KHot> {
    let env = word_env(2, 3);
    let config = MlpPolicyConfig { backward, ..MlpPolicyConfig::default() };
    MlpPolicy::new(&env, KHot::from_env(&env), config, Device::Cpu, kind, &mut Rng::seeded(0)).unwrap()
}

/// Checks that the copy on the host and tensors give trajectories from both places equal log-probabilities.
fn check_log_probs<E: Env>(env: &E, policy: &dyn Policy<E>) {
    for place in PLACES {
        let sampler = Sampler::new(env, policy).place(place);
        let walks = sampler.forward(200, &mut Rng::seeded(1)).unwrap();
        let rows: Vec<usize> = (0..walks.offsets()[200]).collect();
        let totals = |dist: E::Dist| {
            let log_probs: Vec<f64> =
                Vec::try_from(dist.log_prob(&rows, walks.actions()).unwrap().to_kind(Kind::Double)).unwrap();
            let ends = walks.offsets().windows(2);
            ends.map(|ends| log_probs[ends[0]..ends[1]].iter().sum()).collect::<Vec<f64>>()
        };
        let (host, device) = tch::no_grad(|| {
            let copy = policy.on_host(Direction::Forward).unwrap();
            let evaluation = policy.evaluate(env, walks.states(), None, Quantities::PF).unwrap();
            (totals(copy.distribution(env, walks.states()).unwrap()), totals(evaluation.pf.unwrap()))
        });
        assert!(host.iter().any(|total| *total < -0.5));
        let off = host.iter().zip(&device).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-5, "{place}: {off}");
    }
}

#[test]
fn trajectories_have_equal_probabilities_in_both_places() {
    let (env, rng) = (word_env(2, 3), &mut Rng::seeded(0));
    check_log_probs(&env, &words_policy(BackwardPolicy::Uniform, Kind::Float));
    let layout = SequenceLayout { values: 3, length: 3, unset: 0 };
    let config = SequencePolicyConfig::default();
    let sequences = SequencePolicy::new(&env, layout, config, Device::Cpu, Kind::Float, rng).unwrap();
    check_log_probs(&env, &sequences);
    let env = Triangles::env();
    let net = GraphNet::new(&env, GraphNetConfig::default(), Device::Cpu, Kind::Float, rng).unwrap();
    check_log_probs(&env, &GraphPolicy(net));
}

/// Trains a policy on words, whose reward is 4 to the power of the number of letters `1`.
fn train(policy: impl Policy<VectorEnv> + Send + 'static, rollouts: RolloutPlace) -> Trainer<VectorEnv> {
    let reward = |words: &VectorStates, _: Option<&Tensor>| {
        let ones = |word: &[u16]| word.iter().filter(|&&letter| letter == 1).count();
        Ok(words.rows().map(|word| 4f64.ln() * ones(word) as f64).collect())
    };
    let config = TrainerConfig { batch: 16, rollouts, ..TrainerConfig::default() };
    Trainer::new(word_env(2, 3), reward, policy, TrajectoryBalance, config, Rng::seeded(2)).unwrap()
}

#[test]
fn training_and_sampling_have_one_distribution_in_both_places() {
    const SAMPLES: usize = 5_000;
    let env = word_env(2, 3);
    let space = StateGraph::build(&env, 100).unwrap();
    let mut losses = Vec::new();
    for place in PLACES {
        let mut trainer = train(words_policy(BackwardPolicy::Uniform, Kind::Float), place);
        let target = space.target_distribution(trainer.reward(), None).unwrap();
        let learned = |trainer: &Trainer<_>| {
            space.terminating_distribution(&env, trainer.policy(), None).unwrap().probs
        };
        let tv = |p: &[f64], q: &[f64]| Distances::between(p, q).unwrap().tv;
        let before = tv(&learned(&trainer), &target.probs);
        losses.push((0..200).map(|_| trainer.step().unwrap().loss).collect::<Vec<_>>());
        let learned = learned(&trainer);
        let after = tv(&learned, &target.probs);
        assert!(before > 0.3 && after < 0.05, "{place}: {before} before, {after} after training");
        let floor = NoiseFloor::simulate(&learned, SAMPLES, 20, &mut Rng::seeded(3)).unwrap().tv;
        let samples = trainer.context().sampler(&env, trainer.policy());
        let samples = samples.walks(SAMPLES, &mut Rng::seeded(4)).unwrap().terminal;
        let sampled = tv(&space.empirical(&env, &samples).unwrap(), &learned);
        assert!(sampled < 1.6 * floor, "{place}: {sampled}, where {floor} is the noise of perfect samples");
    }
    assert_eq!(losses[0], losses[2], "on the CPU the default is the host, without a measurement");
}

/// A policy that counts its evaluations by tensors.
struct Counting {
    policy: MlpPolicy<KHot>,
    evaluations: Arc<AtomicUsize>,
}

impl Policy<VectorEnv> for Counting {
    fn evaluate(
        &self,
        env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<<VectorEnv as Env>::Dist>> {
        self.evaluations.fetch_add(1, Ordering::Relaxed);
        self.policy.evaluate(env, states, conditions, wants)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<VectorEnv> + '_>> {
        self.policy.on_host(direction)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        Policy::<VectorEnv>::log_z(&self.policy, conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Policy::<VectorEnv>::parameters(&self.policy)
    }
}

#[test]
fn a_trainer_samples_in_the_place_of_its_setting() {
    for (place, by_tensors) in PLACES.into_iter().zip([false, true, false]) {
        let evaluations = Arc::new(AtomicUsize::new(0));
        let policy = Counting {
            policy: words_policy(BackwardPolicy::Uniform, Kind::Float),
            evaluations: Arc::clone(&evaluations),
        };
        let mut trainer = train(policy, place);
        trainer.step().unwrap();
        let before = evaluations.load(Ordering::Relaxed);
        drop(trainer.draw().unwrap());
        assert_eq!(evaluations.load(Ordering::Relaxed) > before, by_tensors, "{place}");
        let expected = if by_tensors { RolloutPlace::Device } else { RolloutPlace::Host };
        assert_eq!(trainer.context().rollout_place(), expected);
    }
}

#[test]
fn a_policy_without_a_copy_on_the_host_is_refused_there() {
    let env = word_env(2, 3);
    let rng = &mut Rng::seeded(0);
    let refused = |error: Error| {
        assert!(matches!(error, Error::Missing { .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.contains("a roll-out on the host") && message.contains("RolloutPlace::Device"));
    };
    let double = words_policy(BackwardPolicy::Uniform, Kind::Double);
    refused(Sampler::new(&env, &double).place(RolloutPlace::Host).walks(2, rng).map(drop).unwrap_err());
    assert_eq!(Sampler::new(&env, &double).walks(2, rng).unwrap().terminal.len(), 2);
    let mut trainer = train(double, RolloutPlace::Host);
    refused(trainer.step().unwrap_err());
    let trainer = train(words_policy(BackwardPolicy::Uniform, Kind::Double), RolloutPlace::Measured);
    assert_eq!(trainer.context().rollout_place(), RolloutPlace::Device);

    // A uniform P_B and a policy without parameters need no copy, and conditions exclude one.
    for backward in [BackwardPolicy::Uniform, BackwardPolicy::SharedTorso] {
        let policy = words_policy(backward, Kind::Float);
        let sampler = Sampler::new(&env, &policy).place(RolloutPlace::Host);
        let words = sampler.walks(3, rng).unwrap().terminal;
        assert_eq!(sampler.backward(&words, rng).unwrap().terminal_states(), &words);
        refused(
            sampler
                .forward_conditional(&Tensor::zeros([2, 1], (Kind::Float, Device::Cpu)), rng)
                .map(drop)
                .unwrap_err(),
        );
    }
    assert!(Sampler::new(&env, &UniformPolicy).place(RolloutPlace::Host).walks(2, rng).is_ok());
}
