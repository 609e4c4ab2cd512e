//! Tests of training steps that fail. A step must return a typed error and change nothing, and later steps
//! must succeed.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::trainers::Folder;
use gfn::distribution::GraphActionCategorical;
use gfn::env::{VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::nn::{EstimatorsConfig, MlpConfig, Parameters};
use gfn::objective::Quantities;
use gfn::objective::{Objective, Regression, RegressionLoss, Scores, TrajectoryBalance};
use gfn::policy::{Evaluation, KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::DataSource;
use gfn::train::{Checkpoint, StepStats, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Teacher, TeacherConfig};
use tch::{Device, Kind, Tensor};

type Learner = MlpPolicy<KHot>;

fn policy(env: &VectorEnv) -> Learner {
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![16], ..MlpConfig::default() },
        estimators: EstimatorsConfig { initial_log_z: Some(0.0), ..EstimatorsConfig::default() },
        ..MlpPolicyConfig::default()
    };
    MlpPolicy::new(env, KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap()
}

/// Builds a trainer on words. The log-reward of a word is `scale` plus its number of ones.
fn trainer(scale: f64, objective: impl Objective + 'static, regression: Regression) -> Trainer<VectorEnv> {
    tch::set_num_threads(1);
    let env = word_env(2, 3);
    let reward = move |words: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(words
            .rows()
            .map(|word| scale + word.iter().filter(|&&letter| letter == 1).count() as f64)
            .collect())
    };
    let config =
        TrainerConfig { batch: 8, source: DataSource::default(), regression, ..TrainerConfig::default() };
    let policy = policy(&env);
    Trainer::new(env.clone(), reward, policy, objective, config, Rng::seeded(1)).unwrap()
}

fn parameters(policy: &dyn Policy<VectorEnv>) -> &Parameters {
    policy.parameters().unwrap()
}

fn values(policy: &dyn Policy<VectorEnv>) -> Vec<Tensor> {
    parameters(policy).iter().map(|parameter| parameter.tensor.detach().copy()).collect()
}

fn has_no_gradient(policy: &dyn Policy<VectorEnv>) -> bool {
    parameters(policy)
        .iter()
        .all(|p| !p.tensor.grad().defined() || p.tensor.grad().abs().max().double_value(&[]) == 0.0)
}

/// Trajectory balance with a failure at the second call. If `loss` is `true` the loss is NaN, otherwise
/// only its gradient is NaN.
#[derive(Debug)]
struct BadSecondCall {
    loss: bool,
    calls: AtomicUsize,
}

impl Objective for BadSecondCall {
    fn name(&self) -> &'static str {
        "once"
    }

    fn needs(&self) -> Quantities {
        Objective::needs(&TrajectoryBalance)
    }

    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        let loss = TrajectoryBalance.loss(scores, regression)?;
        if self.calls.fetch_add(1, Ordering::SeqCst) != 1 {
            return Ok(loss);
        }
        // The derivative of the square root is infinite at 0, so the gradient is NaN although the value is
        // 0.
        let root = (&scores.log_pf * 0.0).sum(scores.log_pf.kind()).sqrt();
        Ok(if self.loss { loss * f64::NAN } else { loss + root })
    }
}

fn check_recovery(results: &[Result<StepStats>], failed: usize) {
    for (k, result) in results.iter().enumerate() {
        assert_eq!(result.is_err(), k == failed, "step {k}: {result:?}");
        assert!(result.as_ref().map_or(true, |stats| stats.loss.is_finite() && stats.grad_norm.is_finite()));
    }
}

#[test]
fn one_bad_gradient_spoils_one_step() {
    for loss in [true, false] {
        let mut trainer =
            trainer(0.0, BadSecondCall { loss, calls: AtomicUsize::new(0) }, Regression::Squared);
        let mut results = vec![trainer.step()];
        let before = values(trainer.policy());
        results.push(trainer.step());
        assert_eq!(values(trainer.policy()), before);
        assert!(has_no_gradient(trainer.policy()));
        results.extend((0..3).map(|_| trainer.step()));
        check_recovery(&results, 1);
    }
}

#[test]
fn one_bad_gradient_of_a_teacher_spoils_one_step() {
    let teacher = policy(&word_env(2, 3));
    let mut trainer = trainer(0.0, TrajectoryBalance, Regression::Squared);
    let teacher = Teacher::new(trainer.env(), teacher, TeacherConfig::default()).unwrap();
    trainer = trainer.with_source(0.5, teacher).unwrap();
    let mut results = vec![trainer.step()];
    let gradient = parameters(trainer.source::<Teacher<Learner>>().unwrap().policy())
        .iter()
        .next()
        .unwrap()
        .tensor
        .grad();
    let _ = gradient.get(0).fill_(f64::NAN);
    results.extend((0..4).map(|_| trainer.step()));
    check_recovery(&results, 1);
}

/// A policy that fails once: at the second evaluation whose result is differentiated.
struct FailsOnce {
    inner: Learner,
    differentiated: AtomicUsize,
}

impl Policy<VectorEnv> for FailsOnce {
    fn evaluate(
        &self,
        env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let recording =
            parameters(&self.inner).iter().any(|parameter| parameter.tensor.neg().requires_grad());
        if recording && self.differentiated.fetch_add(1, Ordering::SeqCst) == 1 {
            return Err(Error::Config {
                setting: "this test",
                got: "the second time".into(),
                expected: "an error",
            });
        }
        self.inner.evaluate(env, states, conditions, wants)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        Policy::<VectorEnv>::log_z(&self.inner, conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.inner.parameters())
    }
}

#[test]
fn a_teacher_that_fails_half_way_leaves_no_gradient() {
    let env = word_env(2, 3);
    let teacher = FailsOnce { inner: policy(&env), differentiated: AtomicUsize::new(0) };
    let reward = |words: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(vec![0.0; words.rows().count()])
    };
    let source = DataSource::default();
    let config = TrainerConfig { batch: 8, chunk: Some(4), source, ..TrainerConfig::default() };
    let trainer =
        Trainer::new(env.clone(), reward, policy(&env), TrajectoryBalance, config, Rng::seeded(1)).unwrap();
    let teacher = Teacher::new(&env, teacher, TeacherConfig::default()).unwrap();
    let mut trainer = trainer.with_source(0.5, teacher).unwrap();
    let mut results = vec![trainer.step()];
    let teacher = trainer.source::<Teacher<FailsOnce>>().unwrap().policy();
    assert!(
        parameters(&teacher.inner).iter().any(|parameter| parameter.tensor.grad().defined()),
        "half of it was made"
    );
    assert!(has_no_gradient(&teacher.inner));
    results.extend((0..3).map(|_| trainer.step()));
    check_recovery(&results, 0);
}

/// Tests an overflow in the optimizer. log Z starts 64 too low, and the loss is a hyperbolic cosine. Its
/// derivative, about e^64, is finite, but the square of the derivative overflows f32.
#[test]
fn an_overflow_of_the_optimizer_is_an_error_and_leaves_the_checkpoint() {
    let folder = Folder::new("overflow");
    let path = folder.join("run");
    let mut stuck = trainer(64.0, TrajectoryBalance, Regression::ShiftedCosh);
    stuck.save(&path).unwrap();
    let before = values(stuck.policy());
    for _ in 0..3 {
        let error = stuck.step().unwrap_err();
        assert!(matches!(error, Error::GradientOverflow { .. }), "{error}");
        assert!(error.to_string().contains("max_norm"), "{error}");
    }
    assert_eq!(values(stuck.policy()), before);
    stuck.save(&path).unwrap();
    trainer(64.0, TrajectoryBalance, Regression::ShiftedCosh).resume(&path).unwrap();
    assert_eq!(Checkpoint::load(&path).unwrap().manifest().step, 0);
    // The same run must make progress if gradients are clipped.
    let env = word_env(2, 3);
    let mut config =
        TrainerConfig { batch: 8, regression: Regression::ShiftedCosh, ..TrainerConfig::default() };
    config.adam.max_norm = Some(10.0);
    let reward = |words: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(vec![64.0; words.rows().count()])
    };
    let mut clipped =
        Trainer::new(env.clone(), reward, policy(&env), TrajectoryBalance, config, Rng::seeded(1)).unwrap();
    let log_z = [0, 1, 2].map(|_| clipped.step().unwrap().log_z);
    assert!(log_z[0] < log_z[1] && log_z[1] < log_z[2], "{log_z:?}");
}

/// A policy whose log Z can't be differentiated at the second call, because a tensor that the backward pass
/// needs is overwritten.
struct FailsBackwardOnce {
    inner: Learner,
    calls: AtomicUsize,
}

impl Policy<VectorEnv> for FailsBackwardOnce {
    fn evaluate(
        &self,
        env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        self.inner.evaluate(env, states, conditions, wants)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        let log_z = Policy::<VectorEnv>::log_z(&self.inner, conditions, n)?;
        let exponential = log_z.exp();
        let out = exponential.log();
        if exponential.requires_grad() && self.calls.fetch_add(1, Ordering::SeqCst) == 1 {
            let _ = exponential.shallow_clone().g_add_scalar_(1.0);
        }
        Some(out)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.inner.parameters())
    }
}

/// Tests failures of libtorch during a backward pass, over a whole batch and over a chunk of a batch.
#[test]
fn a_backward_pass_that_fails_spoils_one_step() {
    tch::set_num_threads(1);
    for (chunk, failed) in [(None, 1), (Some(12), 0)] {
        let env = word_env(2, 3);
        let reward = |words: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
            Ok(vec![0.0; words.rows().count()])
        };
        let config =
            TrainerConfig { batch: 8, chunk, source: DataSource::default(), ..TrainerConfig::default() };
        let policy = FailsBackwardOnce { inner: policy(&env), calls: AtomicUsize::new(0) };
        let mut trainer =
            Trainer::new(env.clone(), reward, policy, TrajectoryBalance, config, Rng::seeded(1)).unwrap();
        let mut results = Vec::new();
        for k in 0..4 {
            let before = values(trainer.policy());
            results.push(trainer.step());
            let same = values(trainer.policy()) == before;
            assert_eq!(
                (same, trainer.steps_done()),
                (k == failed, if k < failed { k + 1 } else { k }),
                "step {k}"
            );
            assert!(has_no_gradient(trainer.policy()));
        }
        check_recovery(&results, failed);
        let error = results[failed].as_ref().unwrap_err();
        assert!(matches!(error, Error::Torch(_)) && error.to_string().contains("inplace"), "{error}");
    }
}

/// Tests that gradients which a user computes between two steps don't change the next step.
#[test]
fn gradients_that_are_there_do_not_come_into_a_step() {
    let bits = |look: bool| {
        let mut trainer = trainer(0.0, TrajectoryBalance, Regression::Squared);
        trainer.step().unwrap();
        if look {
            for parameter in parameters(trainer.policy()) {
                parameter.tensor.square().sum(Kind::Float).backward();
            }
            assert!(!has_no_gradient(trainer.policy()));
        }
        let StepStats { loss, grad_norm, .. } = trainer.step().unwrap();
        (loss.to_bits(), grad_norm.to_bits(), values(trainer.policy()))
    };
    assert!(bits(true) == bits(false));
}

/// Tests a failed first step of a trainer whose log Z starts at an estimate from the first batch. After the
/// failure, log Z must be unset again.
#[test]
fn a_first_step_that_fails_leaves_log_z_unset() {
    let mut config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![16], ..MlpConfig::default() },
        ..MlpPolicyConfig::default()
    };
    config.estimators.initial_log_z = None;
    let env = word_env(2, 3);
    let policy =
        MlpPolicy::new(&env, KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap();
    let reward = |words: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(vec![50.0; words.rows().count()])
    };
    let objective = BadSecondCall { loss: true, calls: AtomicUsize::new(1) };
    let config = TrainerConfig { batch: 8, source: DataSource::default(), ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env.clone(), reward, policy, objective, config, Rng::seeded(1)).unwrap();
    let before = values(trainer.policy());
    trainer.step().unwrap_err();
    assert_eq!(values(trainer.policy()), before);
    assert!(trainer.step().unwrap().log_z > 50.0);
}
