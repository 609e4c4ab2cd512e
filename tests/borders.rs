//! Tests that results of a user's policy, objective and condition source are checked for their shape. A
//! column instead of a flat list would be broadcast silently.

use crate::words::{fresh, policy, says, trainer, words};
use gfn::distribution::GraphActionCategorical;
use gfn::env::{VectorEnv, VectorStates};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, Parameters};
use gfn::objective::Quantities;
use gfn::objective::Scores;
use gfn::objective::{
    Advantage, DetailedBalance, LogPartitionVariance, MaximumEntropyBackward, Objective, PolicyGradient,
    ProximalPolicy, RegressionLoss, Residuals, SubTrajectoryBalance, TrajectoryBalance, Weighting,
};
use gfn::policy::{Evaluation, KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

/// A policy whose mistake is that its estimators have the shape `[n, 1]`, as a linear layer returns them.
struct ColumnEstimators {
    inner: MlpPolicy<KHot>,
    flow: bool,
    log_z: bool,
}

impl Policy<VectorEnv> for ColumnEstimators {
    fn evaluate(
        &self,
        env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let mut out = self.inner.evaluate(env, states, conditions, wants)?;
        let column = |tensor: Tensor| if self.flow { tensor.unsqueeze(-1) } else { tensor };
        out.values = out.values.into_iter().map(|(quantity, tensor)| (quantity, column(tensor))).collect();
        Ok(out)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        let log_z = Policy::<VectorEnv>::log_z(&self.inner, conditions, n)?;
        Some(if self.log_z { log_z.unsqueeze(-1) } else { log_z })
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.inner.parameters())
    }
}

#[test]
fn columns_of_a_policy_are_refused() {
    let step = |flow, log_z, objective: Box<dyn Objective>| {
        let config = MlpPolicyConfig {
            estimators: EstimatorsConfig::with_flow(true),
            paths: true,
            backward: BackwardPolicy::SharedTorso,
            ..MlpPolicyConfig::default()
        };
        trainer(ColumnEstimators { inner: policy(config), flow, log_z }, objective, fresh(8)).unwrap().step()
    };
    assert!(step(false, false, Box::new(TrajectoryBalance)).is_ok());
    assert!(step(true, true, Box::new(LogPartitionVariance)).is_ok(), "what isn't asked for isn't looked at");
    let error = step(false, true, Box::new(TrajectoryBalance)).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }), "{error:?}");
    says(&error, &["LogZ", "[8, 1]", "expected [8]", "squeeze_dim"]);
    let subtb = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
    let of_flow: [Box<dyn Objective>; 4] = [
        Box::new(DetailedBalance::default()),
        Box::new(subtb),
        Box::new(PolicyGradient::new(Advantage::Baseline).unwrap()),
        Box::new(ProximalPolicy::default()),
    ];
    for objective in of_flow {
        let error = step(true, false, objective).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{error:?}");
        says(&error, &["LogFlow", ", 1]", "squeeze_dim"]);
    }
    let error = step(true, false, Box::new(MaximumEntropyBackward)).unwrap_err();
    says(&error, &["LogPaths", ", 1]"]);
}

/// Trajectory balance whose mistake is that the values or the weights of its residuals have a wrong shape.
#[derive(Debug)]
enum WrongShape {
    Values,
    Weights,
}

impl Objective for WrongShape {
    fn name(&self) -> &'static str {
        "misshapen balance"
    }
    fn needs(&self) -> Quantities {
        TrajectoryBalance.needs()
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let Residuals { values, weights } = TrajectoryBalance.residuals(scores)?;
        Ok(match self {
            Self::Values => Residuals { values: values.unsqueeze(-1), weights },
            Self::Weights => Residuals { values, weights: weights.unsqueeze(-1) },
        })
    }
}

/// An objective whose mistake is that it returns a loss per trajectory instead of a scalar.
#[derive(Debug)]
struct LossPerTrajectory;

impl Objective for LossPerTrajectory {
    fn name(&self) -> &'static str {
        "a loss for each"
    }
    fn needs(&self) -> Quantities {
        TrajectoryBalance.needs()
    }
    fn loss(&self, scores: &Scores, _: &dyn RegressionLoss) -> Result<Tensor> {
        Ok(TrajectoryBalance.residuals(scores)?.values.square())
    }
}

#[test]
fn columns_of_an_objective_are_refused() {
    let step = |objective: Box<dyn Objective>| {
        trainer(policy(MlpPolicyConfig::default()), objective, fresh(8)).unwrap().step().unwrap_err()
    };
    let error = step(Box::new(WrongShape::Values));
    assert!(matches!(error, Error::Shape { .. }), "{error:?}");
    says(&error, &["residuals of misshapen balance", "[8, 1]", "expected [8]", "squeeze_dim"]);
    let error = step(Box::new(WrongShape::Weights));
    assert!(matches!(error, Error::Shape { .. }), "{error:?}");
    says(&error, &["weights of misshapen balance", "[8, 1]", "expected [8]", "squeeze_dim"]);
    let error = step(Box::new(LossPerTrajectory));
    assert!(matches!(error, Error::Shape { .. }), "{error:?}");
    says(&error, &["the loss of a loss for each", "[8]", "expected []", "one number"]);
}

#[test]
fn conditions_have_a_row_for_each_trajectory() {
    let run = |shape: fn(i64) -> Vec<i64>| {
        let config =
            MlpPolicyConfig { estimators: EstimatorsConfig::conditional(1), ..MlpPolicyConfig::default() };
        let mut trainer =
            trainer(policy(config), Box::new(TrajectoryBalance), fresh(8)).unwrap().with_conditions(
                move |n: usize, _: &mut Rng| Ok(Tensor::zeros(shape(n as i64), (Kind::Float, Device::Cpu))),
            );
        trainer.step().map(|_| trainer.latest().unwrap().len())
    };
    assert_eq!(run(|n| vec![n, 1]).unwrap(), 8);
    let others: [fn(i64) -> Vec<i64>; 6] =
        [|n| vec![n / 2, 1], |n| vec![2 * n, 1], |_| vec![1, 1], |n| vec![n], |_| vec![], |_| vec![0, 1]];
    for shape in others {
        let error = run(shape).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{error:?}");
        says(&error, &["conditions", "one condition vector"]);
    }
    let config =
        MlpPolicyConfig { estimators: EstimatorsConfig::conditional(1), ..MlpPolicyConfig::default() };
    let env = words();
    let policy = policy(config);
    let sampler = Sampler::new(&env, &policy);
    let rng = &mut Rng::seeded(0);
    let scalar = Tensor::from(1f32);
    assert!(matches!(sampler.forward_conditional(&scalar, rng), Err(Error::Shape { .. })));
    let objects = VectorStates::from_rows([[1u16, 2, 0], [2, 0, 0]]);
    let one = Tensor::zeros([1, 1], (Kind::Float, Device::Cpu));
    assert!(matches!(sampler.backward_conditional(&objects, &one, rng), Err(Error::Shape { .. })));
}
