//! Tests of policies on vectors: tables, noisy layers, networks for conditions, several heads, and averaged
//! parameters.
use gfn::Rng;
use gfn::env::StateGraph;
use gfn::env::{Direction, Env, Rows, VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig, Parameters, SequenceKind, SequenceNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::objective::{Quantities, Quantity};
use gfn::optim::Average;
use gfn::optim::{Adam, AdamConfig, Optimizer};
use gfn::policy::{
    ByIndex, ByNumber, Enumeration, Evaluation, KHot, MlpPolicy, MlpPolicyConfig, MultiHead, Policy,
    SequenceLayout, SequencePolicy, SequencePolicyConfig, StateFeatures, UniformPolicy, WithPrior,
};
use gfn::rollout::Sampler;
use gfn::train::{Checkpoint, Trainer, TrainerConfig};
use tch::{Device, Kind, Tensor};

fn quantities() -> Quantities {
    Quantity::LogPf | Quantity::LogPb | Quantity::LogFlow
}

/// Builds the environment of words of up to 3 letters from an alphabet of 2. The environment has 15 states,
/// whose keys are numbers in base 3 below 27.
fn env() -> VectorEnv {
    word_env(2, 3)
}

fn space() -> StateGraph<VectorEnv> {
    StateGraph::build(&env(), 100).unwrap()
}

fn rising_reward(states: &VectorStates, _: Option<&Tensor>) -> gfn::Result<Vec<f64>> {
    Ok(states.rows().map(|row| row.windows(2).filter(|pair| pair[0] < pair[1]).count() as f64).collect())
}

fn parameters<F: StateFeatures<VectorStates>>(policy: &MlpPolicy<F>) -> &Parameters {
    Policy::<VectorEnv>::parameters(policy).unwrap()
}

fn mlp(config: MlpPolicyConfig) -> MlpPolicy<KHot> {
    MlpPolicy::new(&env(), KHot::new(3, 3), config, Device::Cpu, Kind::Double, &mut Rng::seeded(3)).unwrap()
}

fn small() -> MlpConfig {
    MlpConfig { hidden: vec![16, 8], ..MlpConfig::default() }
}

/// Returns log P_F and log F of all states, under the conditions `c`.
fn outputs(policy: &dyn Policy<VectorEnv>, c: Option<&Tensor>) -> (Tensor, Tensor) {
    let evaluation = policy.evaluate(&env(), space().states(), c, quantities()).unwrap();
    let flow = evaluation.values.get(Quantity::LogFlow).unwrap().shallow_clone();
    (evaluation.pf.unwrap().log_probs(), flow)
}

fn largest_difference(a: &Tensor, b: &Tensor) -> f64 {
    (a - b).abs().max().double_value(&[])
}

fn tv(trainer: &Trainer<VectorEnv>) -> f64 {
    let learned = space().terminating_distribution(&env(), trainer.policy(), None).unwrap();
    Distances::between(&learned.probs, &space().target_distribution(&rising_reward, None).unwrap().probs)
        .unwrap()
        .tv
}

/// A wrapper with which roll-outs evaluate a policy with tensors, even if the policy has a faster
/// implementation on the host.
#[derive(Debug)]
struct TensorsOnly<P>(P);

impl<E: Env, P: Policy<E>> Policy<E> for TensorsOnly<P> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        c: Option<&Tensor>,
        wants: Quantities,
    ) -> gfn::Result<Evaluation<E::Dist>> {
        self.0.evaluate(env, states, c, wants)
    }
    fn parameters(&self) -> Option<&Parameters> {
        self.0.parameters()
    }
}

/// Checks that the copy of a policy on the host, which roll-outs use, equals the policy: it has the same
/// logits of every state in both directions, for every network, and samples the same trajectories.
#[test]
fn the_frozen_form_is_the_policy() {
    let env = env();
    let space = space();
    let states = space.states();
    let starts = env.is_initial(states);
    let inner: Vec<usize> = (0..states.len()).filter(|&i| !starts[i]).collect();
    for backward in [BackwardPolicy::SharedTorso, BackwardPolicy::Separate, BackwardPolicy::Uniform] {
        for (heads, layer_norm, noise) in [(1, false, None), (3, true, Some(0.5))] {
            let mlp = MlpConfig { hidden: vec![16, 24], layer_norm, noise, ..MlpConfig::default() };
            let config = MlpPolicyConfig {
                mlp,
                backward,
                heads,
                estimators: EstimatorsConfig::with_flow(true),
                ..MlpPolicyConfig::default()
            };
            let policy =
                MlpPolicy::new(&env, KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut Rng::seeded(3))
                    .unwrap();
            policy.use_head(heads - 1).unwrap();
            parameters(&policy).reset_noise(&mut Rng::seeded(4));
            for (direction, states) in
                [(Direction::Forward, states.clone()), (Direction::Backward, states.select(&inner))]
            {
                let frozen = Policy::<VectorEnv>::on_host(&policy, direction);
                let learned = direction == Direction::Forward || backward != BackwardPolicy::Uniform;
                assert_eq!(frozen.is_some(), learned);
                let Some(frozen) = frozen else { continue };
                let dist = frozen.distribution(&env, &states).unwrap();
                let expected = policy.evaluate(&env, &states, None, quantities()).unwrap();
                let expected =
                    if direction == Direction::Forward { expected.pf } else { expected.pb }.unwrap();
                assert!(
                    largest_difference(&dist.log_probs(), &expected.log_probs()) < 1e-5,
                    "{backward:?} {direction}"
                );
                assert_eq!(dist.masks(), expected.masks());
            }
            let thawed = TensorsOnly(policy);
            for seed in 0..3 {
                let rng = || Rng::seeded(seed);
                let fast = Sampler::new(&env, &thawed.0);
                let slow = Sampler::new(&env, &thawed);
                let a = fast.forward(50, &mut rng()).unwrap();
                let b = slow.forward(50, &mut rng()).unwrap();
                assert_eq!((a.states(), a.terminal_states()), (b.states(), b.terminal_states()));
                let ends = a.terminal_states();
                let a = fast.backward(ends, &mut rng()).unwrap();
                let b = slow.backward(ends, &mut rng()).unwrap();
                assert_eq!(a.states(), b.states());
            }
        }
    }
}

/// Checks that a tabular policy learns the exact distribution, however its states are numbered.
#[test]
fn a_table_learns() {
    fn learn<F: StateFeatures<VectorStates> + Send + 'static>(features: F) {
        let config = MlpPolicyConfig::default();
        let policy = MlpPolicy::tabular(&env(), features, config, Device::Cpu, Kind::Float).unwrap();
        let adam = AdamConfig { lr: 0.03, ..AdamConfig::default() };
        let config = TrainerConfig { batch: 64, adam, ..TrainerConfig::default() };
        let mut trainer =
            Trainer::new(env(), rising_reward, policy, TrajectoryBalance, config, Rng::seeded(0)).unwrap();
        let before = tv(&trainer);
        for _ in 0..400 {
            trainer.step().unwrap();
        }
        let after = tv(&trainer);
        assert!(before > 0.1 && after < 0.01, "{before} {after}");
    }
    learn(ByNumber::new(3, 3));
    learn(ByIndex::new(env(), space()));
}

/// Checks that each state of a tabular policy has its own parameters, so that learning one state doesn't
/// change others.
#[test]
fn each_state_has_a_separate_row() {
    let config = MlpPolicyConfig {
        estimators: EstimatorsConfig::with_flow(true),
        backward: BackwardPolicy::Separate,
        ..MlpPolicyConfig::default()
    };
    let policy = MlpPolicy::tabular(&env(), ByNumber::new(3, 3), config, Device::Cpu, Kind::Double).unwrap();
    // Each of the 27 rows of the table has three forward logits, a flow and one backward logit. log Z is an
    // additional parameter.
    assert_eq!(parameters(&policy).count(), 27 * (4 + 1) + 1);
    let space = space();
    let evaluation = policy.evaluate(&env(), &space.states().select(&[4]), None, quantities()).unwrap();
    let mut adam = Adam::new(parameters(&policy), AdamConfig { lr: 0.1, ..AdamConfig::default() }).unwrap();
    let loss =
        evaluation.pf.unwrap().log_probs().get(0) + evaluation.values.get(Quantity::LogFlow).unwrap().get(0);
    loss.backward();
    adam.step().unwrap();
    let (_, flows) = outputs(&policy, None);
    let flows = Vec::<f64>::try_from(flows).unwrap();
    assert!(flows.iter().enumerate().all(|(state, &flow)| (flow != 0.0) == (state == 4)), "{flows:?}");
}

#[test]
fn states_without_a_number_are_refused() {
    fn message<F: StateFeatures<VectorStates>>(
        env: &VectorEnv,
        features: F,
        states: &VectorStates,
    ) -> String {
        let config = MlpPolicyConfig::default();
        let policy = MlpPolicy::tabular(env, features, config, Device::Cpu, Kind::Float).unwrap();
        policy.evaluate(env, states, None, Quantities::PF).unwrap_err().to_string()
    }
    // The key of the last word, [2, 2, 2], is 26. Tables for smaller keys must refuse it.
    let last = VectorStates::from_rows([[2u16, 2, 2]]);
    assert!(message(&env(), ByNumber::new(2, 3), &last).contains("26 of 9 columns"));
    let gap = VectorStates::from_rows([[0u16, 1, 0]]);
    assert!(message(&env(), ByIndex::new(env(), space()), &gap).contains("-1 of 15 columns"));
    assert!(message(&env(), Enumeration(ByNumber::new(2, 3)), &last).contains("26 of 1 columns"));
    let config =
        MlpPolicyConfig { estimators: EstimatorsConfig::conditional(2), ..MlpPolicyConfig::default() };
    let refused = MlpPolicy::tabular(&env(), ByNumber::new(3, 3), config, Device::Cpu, Kind::Float);
    assert!(refused.unwrap_err().to_string().contains("n_conditions is 2"));
}

/// Checks that the noise of noisy layers is part of the model until it is redrawn: it is saved, turned off
/// for evaluation, and has gradients.
#[test]
fn noise_is_redrawn_on_request() {
    let noisy = MlpConfig { noise: Some(0.5), layer_norm: true, ..small() };
    let policy = mlp(MlpPolicyConfig {
        mlp: noisy,
        estimators: EstimatorsConfig::with_flow(true),
        ..MlpPolicyConfig::default()
    });
    let (first, flow) = outputs(&policy, None);
    assert!(largest_difference(&outputs(&policy, None).0, &first) == 0.0);
    let checkpoint = Checkpoint::new(parameters(&policy), 0, serde_json::Value::Null).unwrap();
    parameters(&policy).reset_noise(&mut Rng::seeded(9));
    let (second, other_flow) = outputs(&policy, None);
    assert!(largest_difference(&second, &first) > 1e-3 && largest_difference(&other_flow, &flow) > 1e-3);
    let means = parameters(&policy).without_noise(|| outputs(&policy, None).0);
    assert!(
        largest_difference(&means, &second) > 1e-3
            && largest_difference(&outputs(&policy, None).0, &second) == 0.0
    );
    checkpoint.restore(parameters(&policy)).unwrap();
    assert!(
        largest_difference(&outputs(&policy, None).0, &first) == 0.0,
        "a resumed run goes on with the same noise"
    );

    let (pf, flow) = outputs(&policy, None);
    let log_z = Policy::<VectorEnv>::log_z(&policy, None, 1).unwrap();
    (pf.square().sum(Kind::Double) + flow.square().sum(Kind::Double) + log_z.sum(Kind::Double)).backward();
    for parameter in parameters(&policy) {
        let trained = !parameter.name.contains(".noise_");
        assert_eq!(parameter.tensor.requires_grad(), trained);
        let moved = trained && parameter.tensor.grad().abs().max().double_value(&[]) > 0.0;
        assert_eq!(moved, trained, "{}", parameter.name);
    }
    // A model without noise must not draw random numbers when noise is reset.
    let mut rng = Rng::seeded(1);
    parameters(&mlp(MlpPolicyConfig::default())).reset_noise(&mut rng);
    assert_eq!(rng, Rng::seeded(1));
}

#[test]
fn a_noisy_policy_learns() {
    let mlp = MlpConfig { noise: Some(0.5), ..small() };
    let config = MlpPolicyConfig { mlp, ..MlpPolicyConfig::default() };
    let policy =
        MlpPolicy::new(&env(), KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut Rng::seeded(0))
            .unwrap();
    let adam = AdamConfig { lr: 0.01, ..AdamConfig::default() };
    let config = TrainerConfig { batch: 64, adam, ..TrainerConfig::default() };
    let mut trainer =
        Trainer::new(env(), rising_reward, policy, TrajectoryBalance, config, Rng::seeded(0)).unwrap();
    let mut rng = Rng::seeded(5);
    for _ in 0..500 {
        trainer.policy().parameters().unwrap().reset_noise(&mut rng);
        trainer.step().unwrap();
    }
    let after = trainer.policy().parameters().unwrap().without_noise(|| tv(&trainer));
    assert!(after < 0.05, "{after}");
}

/// Checks a separate network for conditions. The parameters of this network are listed and trained, and the
/// outputs for a state depend only on the condition of this state.
#[test]
fn conditions_have_a_network() {
    let config = MlpPolicyConfig {
        mlp: small(),
        condition_mlp: Some(MlpConfig { hidden: vec![6], ..MlpConfig::default() }),
        estimators: EstimatorsConfig { flow: true, ..EstimatorsConfig::conditional(2) },
        ..MlpPolicyConfig::default()
    };
    let policy = mlp(config.clone());
    let at = |x: f64, y: f64| Tensor::from_slice(&[x, y]).view([1, 2]);
    let same = |x, y| at(x, y).expand([15, 2], false);
    let (a, flow) = outputs(&policy, Some(&same(1.0, -2.0)));
    let (b, _) = outputs(&policy, Some(&same(0.0, 3.0)));
    assert!(largest_difference(&a, &b) > 1e-3);
    (a.square().sum(Kind::Double) + flow.square().sum(Kind::Double)).backward();
    let inside = |p: &&gfn::nn::Parameter| p.name.contains("conditions");
    let of_conditions: Vec<_> = parameters(&policy).iter().filter(inside).collect();
    assert_eq!(of_conditions.len(), 4, "two layers of weight and bias");
    assert!(of_conditions.iter().all(|p| p.tensor.grad().abs().max().double_value(&[]) > 0.0));

    // The first seven states have one condition, and the other eight have another condition.
    let mixed = Tensor::cat(&[&same(1.0, -2.0).narrow(0, 0, 7), &same(0.0, 3.0).narrow(0, 7, 8)], 0);
    let (_, mixed) = outputs(&policy, Some(&mixed));
    assert!(largest_difference(&mixed.narrow(0, 0, 7), &flow.narrow(0, 0, 7)) < 1e-12);
    assert!(largest_difference(&mixed.narrow(0, 7, 8), &flow.narrow(0, 7, 8)) > 1e-3);

    let refused = MlpPolicyConfig { estimators: EstimatorsConfig::with_flow(true), ..config };
    let refused =
        MlpPolicy::new(&env(), KHot::new(3, 3), refused, Device::Cpu, Kind::Float, &mut Rng::seeded(0));
    assert!(refused.unwrap_err().to_string().contains("condition_mlp"));
}

/// Checks that heads differ only in P_F, and that a loss has a gradient only for the logits of the head from
/// which it was computed.
#[test]
fn heads_share_a_torso() {
    let policy = mlp(MlpPolicyConfig {
        mlp: small(),
        estimators: EstimatorsConfig::with_flow(true),
        heads: 3,
        ..MlpPolicyConfig::default()
    });
    let mut seen = Vec::new();
    for head in 0..3 {
        policy.use_head(head).unwrap();
        let evaluation = policy.evaluate(&env(), space().states(), None, quantities()).unwrap();
        let flow = evaluation.values.get(Quantity::LogFlow).unwrap().shallow_clone();
        seen.push((evaluation.pf.unwrap().logsumexp(), flow));
    }
    for head in 1..3 {
        assert!(largest_difference(&seen[head].0, &seen[0].0) > 1e-3);
        assert!(largest_difference(&seen[head].1, &seen[0].1) == 0.0);
    }
    seen[1].0.sum(Kind::Double).backward();
    let last = parameters(&policy).iter().rfind(|p| p.name.ends_with("bias")).unwrap();
    let gradient = Vec::<f64>::try_from(last.tensor.grad()).unwrap();
    // The outputs are three forward logits for each of three heads, one backward logit, and log F. Only the
    // logits of head 1, from which the loss was computed, have a gradient.
    let moved: Vec<usize> = (0..gradient.len()).filter(|&k| gradient[k] != 0.0).collect();
    assert_eq!((gradient.len(), moved), (11, vec![3, 4, 5]));

    let mut rng = Rng::seeded(0);
    let mut drawn = [0; 3];
    for _ in 0..300 {
        drawn[policy.choose_head(&mut rng)] += 1;
    }
    assert!(drawn.iter().all(|&n| (70..130).contains(&n)), "{drawn:?}");
    assert!(policy.use_head(3).unwrap_err().to_string().contains("3, but the policy has 3 heads"));
    let none = MlpPolicyConfig { heads: 0, ..MlpPolicyConfig::default() };
    let none = MlpPolicy::new(&env(), KHot::new(3, 3), none, Device::Cpu, Kind::Float, &mut rng);
    assert!(none.unwrap_err().to_string().starts_with("heads is 0"));
}

/// Checks that `Average::with` samples from the averaged parameters, also for a policy that has a cache.
#[test]
fn an_average_is_sampled_from() {
    let layout = SequenceLayout { values: 3, length: 3, unset: 0 };
    let net = SequenceNetConfig { kind: SequenceKind::Gru, width: 8, layers: 1 };
    let config = SequencePolicyConfig {
        net,
        estimators: EstimatorsConfig::with_flow(true),
        ..SequencePolicyConfig::default()
    };
    let policy =
        SequencePolicy::new(&env(), layout, config, Device::Cpu, Kind::Double, &mut Rng::seeded(0)).unwrap();
    let parameters = policy.parameters();
    let start = env().initial(&[0]);
    let evaluate = || policy.evaluate(&env(), &start, None, quantities()).unwrap();
    let stepwise = || tch::no_grad(|| evaluate().values.remove(Quantity::LogFlow).unwrap());
    let old = stepwise();
    let mut average = Average::new(parameters, 0.5).unwrap();
    tch::no_grad(|| {
        for parameter in parameters {
            let _ = parameter.tensor.shallow_clone().g_mul_scalar_(3.0);
        }
    });
    let new = stepwise();
    assert!(largest_difference(&old, &new) > 1e-3);
    assert!(largest_difference(&average.with(parameters, stepwise).unwrap(), &old) < 1e-12);
    assert!(largest_difference(&stepwise(), &new) < 1e-12);
    average.update(parameters).unwrap();
    let between = average.with(parameters, stepwise).unwrap();
    assert!(largest_difference(&between, &old) > 1e-3 && largest_difference(&between, &new) > 1e-3);
}

#[test]
fn wrappers_forward_heads_and_a_trainer_gives_its_policy_back() {
    type Table = MlpPolicy<ByNumber>;
    let config = MlpPolicyConfig { heads: 3, ..MlpPolicyConfig::default() };
    let policy =
        || MlpPolicy::tabular(&env(), ByNumber::new(3, 3), config.clone(), Device::Cpu, Kind::Float).unwrap();
    let n_heads = |policy: &dyn Policy<VectorEnv>| policy.heads().map(MultiHead::n_heads);
    let one = policy();
    let boxed = Box::new(policy()) as Box<dyn Policy<VectorEnv>>;
    let with_prior = WithPrior { policy: policy(), prior: UniformPolicy };
    assert_eq!([n_heads(&one), n_heads(&boxed), n_heads(&with_prior)], [Some(3); 3]);
    assert_eq!(n_heads(&UniformPolicy), None);

    let trainer = || {
        Trainer::new(
            env(),
            rising_reward,
            policy(),
            TrajectoryBalance,
            TrainerConfig::default(),
            Rng::seeded(0),
        )
        .unwrap()
    };
    assert!(trainer().policy_as::<Table>().is_some() && trainer().policy_as::<UniformPolicy>().is_none());
    assert!(trainer().into_policy().parameters().is_some());
    assert!(
        trainer().into_policy_as::<Table>().is_some()
            && trainer().into_policy_as::<UniformPolicy>().is_none()
    );
}
