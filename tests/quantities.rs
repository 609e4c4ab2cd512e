//! Tests of the quantities that objectives need: built-in and user-defined quantities, and those of a target
//! network. Scoring a batch in chunks must not change their gradients.

use std::sync::{Arc, Mutex};

use crate::words::{count, fresh, policy, says, trainer, with_flow, words};
use gfn::distribution::GraphActionCategorical;
use gfn::env::{VectorEnv, VectorStates};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, Parameters};
use gfn::objective::{
    FlowMatching, MaximumEntropyBackward, Objective, RegressionLoss, Scores, TrajectoryBalance, score,
};
use gfn::objective::{Quantities, Quantity};
use gfn::optim::{Sgd, SgdConfig};
use gfn::policy::{Evaluation, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy};
use gfn::rollout::Sampler;
use gfn::train::TrainerConfig;
use gfn::{Result, Rng};
use tch::{Kind, Tensor};

const LETTERS: Quantity = Quantity::Custom("the number of letters of each word");

/// A policy that also computes a user-defined quantity: the number of letters of each word.
struct LetterCounting(MlpPolicy<KHot>);

fn letters(states: &VectorStates) -> Tensor {
    let each: Vec<f32> =
        states.rows().map(|row| row.iter().filter(|&&letter| letter > 0).count() as f32).collect();
    Tensor::from_slice(&each)
}

impl Policy<VectorEnv> for LetterCounting {
    fn evaluate(
        &self,
        env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let evaluation = self.0.evaluate(env, states, conditions, wants)?;
        Ok(evaluation.with(LETTERS, wants.has(LETTERS).then(|| letters(states))))
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        Policy::<VectorEnv>::log_z(&self.0, conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.0.parameters())
    }
}

fn largest_difference(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.size(), b.size());
    (a - b).abs().max().double_value(&[])
}

#[test]
fn each_transition_has_the_entropy_and_the_custom_quantity_of_its_state() {
    let trajectories = Sampler::new(&words(), &UniformPolicy).forward(40, &mut Rng::seeded(0)).unwrap();
    let policy = LetterCounting(with_flow());
    let scores = score(&words(), &count, &policy, &trajectories, LETTERS | Quantity::Entropy).unwrap();
    assert!(scores.distinct.0 < scores.distinct.1, "equal states are evaluated once");
    assert_eq!(largest_difference(scores.get(LETTERS).unwrap(), &letters(trajectories.states())), 0.0);
    let pf = policy.evaluate(&words(), trajectories.states(), None, Quantities::PF).unwrap().pf.unwrap();
    let entropy = scores.get(Quantity::Entropy).unwrap();
    assert!(entropy.requires_grad() && largest_difference(entropy, &pf.entropy()) < 1e-6);
    assert!(scores.get(Quantity::LogFlow).is_none(), "what isn't asked for isn't there");
}

#[test]
fn a_quantity_that_the_policy_does_not_give_is_named() {
    let trajectories = Sampler::new(&words(), &UniformPolicy).forward(4, &mut Rng::seeded(0)).unwrap();
    let scored = |needs| score(&words(), &count, &with_flow(), &trajectories, needs);
    says(
        &scored(LETTERS.into()).unwrap_err(),
        &["scoring needs the number of letters of each word", "`Quantity::Custom`"],
    );
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"];
    let many = names.map(Quantity::Custom).into_iter().fold(Quantities::NONE, |set, own| set | own);
    says(&scored(many).unwrap_err(), &["more than 16", "at most 16"]);
}

/// The trajectory balance objective with a bonus: the policy's entropy times a user-defined quantity, the
/// number of letters of each word.
#[derive(Debug)]
struct EntropyBonus;

impl Objective for EntropyBonus {
    fn name(&self) -> &'static str {
        "curious balance"
    }
    fn needs(&self) -> Quantities {
        Quantity::LogZ | Quantity::Entropy | LETTERS
    }
    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        let bonus = scores.need(Quantity::Entropy, self.name())? * scores.need(LETTERS, self.name())?;
        Ok(TrajectoryBalance.loss(scores, regression)? - bonus.mean(Kind::Float) * 0.1)
    }
}

/// Checks that scoring in chunks gives the gradient of the whole batch, whatever quantities an objective
/// needs.
#[test]
fn chunks_carry_every_quantity() {
    let objectives: [fn() -> Box<dyn Objective>; 3] = [
        || Box::new(EntropyBonus),
        || Box::new(FlowMatching::default()),
        || Box::new(MaximumEntropyBackward),
    ];
    for make in objectives {
        let step = |chunk| {
            let config = MlpPolicyConfig {
                paths: true,
                estimators: EstimatorsConfig::with_flow(true),
                backward: BackwardPolicy::SharedTorso,
                ..MlpPolicyConfig::default()
            };
            let config_of_trainer = TrainerConfig { chunk, ..fresh(16) };
            let trainer = trainer(LetterCounting(policy(config)), make(), config_of_trainer).unwrap();
            let sgd = SgdConfig { lr: 1.0, ..SgdConfig::default() };
            let mut trainer = trainer.with_optimizer(|parameters| Sgd::new(parameters, sgd)).unwrap();
            let stats = trainer.step().unwrap();
            let parameters = Policy::<VectorEnv>::parameters(trainer.policy()).unwrap();
            let values: Vec<Tensor> = parameters.iter().map(|p| p.tensor.detach().copy().view(-1)).collect();
            (stats.loss, stats.grad_norm, Tensor::cat(&values, 0))
        };
        let whole = step(None);
        let chunked = step(Some(7));
        let name = make().name();
        assert!(
            (whole.0 - chunked.0).abs() < 1e-5 * whole.0.abs().max(1.0),
            "{name}: {} {}",
            whole.0,
            chunked.0
        );
        assert!(
            whole.1 > 1e-3 && (whole.1 - chunked.1).abs() < 1e-4 * whole.1,
            "{name}: {} {}",
            whole.1,
            chunked.1
        );
        assert!(largest_difference(&whole.2, &chunked.2) < 1e-4 * whole.1, "{name}");
    }
}

/// The trajectory balance objective, which also records the distance between the policy's log F and that of
/// the target network.
#[derive(Debug)]
struct FlowDistance(Arc<Mutex<Vec<f64>>>);

impl Objective for FlowDistance {
    fn name(&self) -> &'static str {
        "watching balance"
    }
    fn needs(&self) -> Quantities {
        Quantity::LogZ | Quantity::LogFlow | Quantity::TargetLogFlow
    }
    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        let target = scores.need(Quantity::TargetLogFlow, self.name())?;
        assert!(!target.requires_grad());
        self.0.lock().unwrap().push(largest_difference(scores.need(Quantity::LogFlow, self.name())?, target));
        TrajectoryBalance.loss(scores, regression)
    }
}

#[test]
fn a_target_network_s_flow_lags_behind_and_catches_up() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watching = || Box::new(FlowDistance(seen.clone()));
    let error = trainer(with_flow(), watching(), fresh(8)).unwrap().step().unwrap_err();
    says(&error, &["watching balance needs a target network", "`with_target_network`"]);
    let mut trainer = trainer(with_flow(), watching(), fresh(8)).unwrap().with_target_network(2).unwrap();
    for _ in 0..5 {
        assert!(trainer.step().unwrap().loss.is_finite());
    }
    let differences = seen.lock().unwrap();
    let lags: Vec<bool> = differences.iter().map(|&difference| difference > 0.0).collect();
    assert_eq!(lags, [false, true, false, true, false], "{differences:?}");
}

/// Checks that the number of paths to the initial state is exactly 1, whatever a network estimates for it.
#[test]
fn the_initial_state_has_one_path() {
    let policy = policy(MlpPolicyConfig { paths: true, ..MlpPolicyConfig::default() });
    let trajectories = Sampler::new(&words(), &UniformPolicy).forward(9, &mut Rng::seeded(2)).unwrap();
    let needs = Quantity::LogPaths | Quantity::NextLogPaths;
    let scores = score(&words(), &count, &policy, &trajectories, needs).unwrap();
    let paths = gfn::tensor::to_host(scores.need(Quantity::LogPaths, "test").unwrap());
    for (&row, log_paths) in scores.inner.iter().zip(paths) {
        assert_eq!(log_paths == 0.0, scores.offsets.contains(&row), "row {row}: {log_paths}");
    }
}
