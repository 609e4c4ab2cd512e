//! Objectives that are built from settings, and objectives that are Python functions of the scores of a
//! batch.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gfn::objective::{
    Advantage, AugmentedDetailedBalance, AugmentedTrajectoryBalance, Critic, DetailedBalance, FlowMatching,
    KlEstimator, LogPartitionDeviation, LogPartitionVariance, MaximumEntropyBackward, MaximumLikelihood,
    ModifiedDetailedBalance, NextExit, Objective, PolicyGradient, ProximalPolicy, Quantities, Quantity,
    Regression, RegressionLoss, RelativeLogPartitionVariance, RelativeTrajectoryBalance,
    Scores as CoreScores, StateFlow, SubTrajectoryBalance, TrajectoryBalance, TrajectoryLikelihood, TrustPcl,
    Weighting, WithBackward,
};
use gfn::train::BatchScores;
use gfn::{Error, Result};
use numpy::IntoPyArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde::Deserialize;
use tch::Tensor;

use crate::errors::{add_note, call_python};
use crate::references::{Object, References};
use crate::settings::Settings;
use crate::tensors;

/// The settings of each objective. The variants have the names of the Python classes.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
enum Spec {
    OwnObjective {
        name: String,
        log_z: bool,
        flow: bool,
    },
    TrajectoryBalance {
        backward: Option<Backward>,
    },
    LogPartitionVariance {
        backward: Option<Backward>,
    },
    LogPartitionDeviation {},
    RelativeTrajectoryBalance {
        beta: f64,
    },
    RelativeLogPartitionVariance {
        beta: f64,
    },
    TrustPcl {
        alpha: f64,
    },
    DetailedBalance {
        forward_looking: bool,
        backward: Option<Backward>,
    },
    ModifiedDetailedBalance {
        target_network: Option<usize>,
    },
    SubTrajectoryBalance {
        weighting: Weighting,
        forward_looking: bool,
        backward: Option<Backward>,
    },
    AugmentedTrajectoryBalance {},
    AugmentedDetailedBalance {},
    FlowMatching {},
    PolicyGradient {
        advantage: Advantage,
        critic: Critic,
    },
    ProximalPolicy {
        advantage: Advantage,
        critic: Critic,
        clip: f64,
        kl: f64,
        divergence: KlEstimator,
        value_weight: f64,
        epochs: usize,
        n_minibatches: usize,
    },
    MaximumLikelihood {},
}

/// The objective by which P_B is trained.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
enum Backward {
    TrajectoryLikelihood,
    MaximumEntropy,
}

fn flow(forward_looking: bool) -> StateFlow {
    if forward_looking { StateFlow::ForwardLooking } else { StateFlow::Whole }
}

/// Boxes an objective. If an objective of P_B is given, the two objectives are combined.
fn with_backward(objective: impl Objective + 'static, backward: Option<Backward>) -> Box<dyn Objective> {
    match backward {
        None => Box::new(objective),
        Some(Backward::TrajectoryLikelihood) => Box::new(WithBackward::new(objective, TrajectoryLikelihood)),
        Some(Backward::MaximumEntropy) => Box::new(WithBackward::new(objective, MaximumEntropyBackward)),
    }
}

/// An objective in the form that Python passes: `{class: settings}`, the function of a custom objective, and
/// the function of a custom regression loss.
#[derive(FromPyObject)]
pub(crate) struct ObjectiveSettings(Settings<Spec>, Option<Py<PyAny>>, Option<Py<PyAny>>);

impl ObjectiveSettings {
    /// Builds the objective, and the regression loss if it is a custom one.
    pub(crate) fn build(self, references: &References) -> Result<(Box<dyn Objective>, Option<Regression>)> {
        let objective = build(self.0.0, self.1.map(|function| references.add(function)))?;
        let regression =
            self.2.map(|function| Regression::custom(PyRegression::new(references.add(function))));
        Ok((objective, regression))
    }
}

/// A custom regression loss, which is a Python function of a tensor of residuals.
#[derive(Debug)]
struct PyRegression {
    function: Object,
    /// The name of the function, which checkpoints store.
    name: String,
}

impl PyRegression {
    fn new(function: Object) -> Self {
        let name = Python::attach(|py| {
            let name = function.bind(py).getattr("__qualname__").and_then(|name| name.extract());
            name.unwrap_or_else(|_| function.bind(py).get_type().to_string())
        });
        Self { function, name }
    }
}

impl RegressionLoss for PyRegression {
    fn name(&self) -> &str {
        &self.name
    }

    fn apply(&self, residuals: &Tensor) -> Result<Tensor> {
        call_python("the regression loss", |py| {
            let answer = self.function.bind(py).call1((tensors::to_python(py, residuals)?,))?;
            tensors::from_python(&answer).map_err(|_| {
                let kind = answer.get_type();
                PyTypeError::new_err(format!(
                    "the regression loss gave a {kind}: expected a torch.Tensor with the loss of each \
                     residual"
                ))
            })
        })
    }
}

fn build(spec: Spec, function: Option<Object>) -> Result<Box<dyn Objective>> {
    Ok(match spec {
        Spec::OwnObjective { name, log_z, flow } => {
            let none = || {
                Error::missing(
                    "a custom objective",
                    "a function",
                    "give a function to the objective, `OwnObjective(function)`",
                )
            };
            Box::new(PyObjective { function: function.ok_or_else(none)?, name, log_z, flow })
        }
        Spec::TrajectoryBalance { backward } => with_backward(TrajectoryBalance, backward),
        Spec::LogPartitionVariance { backward } => with_backward(LogPartitionVariance, backward),
        Spec::LogPartitionDeviation {} => Box::new(LogPartitionDeviation),
        Spec::RelativeTrajectoryBalance { beta } => Box::new(RelativeTrajectoryBalance::new(beta)?),
        Spec::RelativeLogPartitionVariance { beta } => Box::new(RelativeLogPartitionVariance::new(beta)?),
        Spec::TrustPcl { alpha } => Box::new(TrustPcl::new(alpha)?),
        Spec::DetailedBalance { forward_looking, backward } => {
            with_backward(DetailedBalance { flow: flow(forward_looking) }, backward)
        }
        Spec::ModifiedDetailedBalance { target_network } => {
            let next_exit = target_network.map_or(NextExit::TrainedPolicy, |_| NextExit::TargetNetwork);
            Box::new(ModifiedDetailedBalance { next_exit })
        }
        Spec::SubTrajectoryBalance { weighting, forward_looking, backward } => {
            with_backward(SubTrajectoryBalance::new(weighting)?.with_flow(flow(forward_looking)), backward)
        }
        Spec::AugmentedTrajectoryBalance {} => Box::new(AugmentedTrajectoryBalance),
        Spec::AugmentedDetailedBalance {} => Box::new(AugmentedDetailedBalance),
        Spec::FlowMatching {} => Box::new(FlowMatching::default()),
        Spec::PolicyGradient { advantage, critic } => {
            Box::new(PolicyGradient { critic, ..PolicyGradient::new(advantage)? })
        }
        Spec::ProximalPolicy {
            advantage,
            critic,
            clip,
            kl,
            divergence,
            value_weight,
            epochs,
            n_minibatches,
        } => Box::new(ProximalPolicy {
            advantage,
            critic,
            clip,
            kl,
            divergence,
            value_weight,
            epochs,
            n_minibatches,
        }),
        Spec::MaximumLikelihood {} => Box::new(MaximumLikelihood),
    })
}

/// The scores of a batch of B trajectories, which have T transitions together. A custom objective gets this
/// object. The scores are torch tensors with gradients.
///
///     >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8)
///     >>> scores = trainer.score(trainer.batch())
///     >>> scores.log_reward.shape, len(scores.offsets)
///     (torch.Size([8]), 9)
#[pyclass(frozen, module = "gfn_rs", name = "Scores")]
pub(crate) struct Scores {
    /// log P_F of each transition, `[T]`.
    #[pyo3(get)]
    log_pf: Py<PyAny>,
    /// log P_B of each transition, `[T]`.
    #[pyo3(get)]
    log_pb: Py<PyAny>,
    /// log R of each trajectory's object, `[B]`. This log R includes the environment's correction for
    /// symmetry, if there is one.
    #[pyo3(get)]
    log_reward: Py<PyAny>,
    /// log Z for each trajectory, `[B]`. None unless the objective requests log Z.
    #[pyo3(get)]
    log_z: Option<Py<PyAny>>,
    /// log F of the state before each transition, `[T]`. None unless the objective requests log F.
    #[pyo3(get)]
    log_flow: Option<Py<PyAny>>,
    /// The offsets of transitions, a numpy array `[B + 1]`. Trajectory k has the transitions from
    /// `offsets[k]` to below `offsets[k + 1]`.
    #[pyo3(get)]
    offsets: Py<PyAny>,
    /// The index of the trajectory of each transition, a tensor `[T]`.
    #[pyo3(get)]
    trajectory: Py<PyAny>,
    /// The scores from which a trainer computes its loss. `None` in the scores that a custom objective gets.
    batch: Option<Mutex<BatchScores>>,
}

impl Scores {
    /// Builds the scores of a batch for Python, with log Z and log F if `scores` has them.
    pub(crate) fn from_batch(py: Python<'_>, scores: BatchScores) -> PyResult<Self> {
        let shown = Self::new(py, scores.whole(), true, true)?;
        Ok(Self { batch: Some(Mutex::new(scores)), ..shown })
    }

    /// Returns the scores from which a trainer computes its loss; `None` in the scores that a custom
    /// objective gets.
    pub(crate) fn batch(&self) -> Option<MutexGuard<'_, BatchScores>> {
        self.batch.as_ref().map(|scores| scores.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn new(py: Python<'_>, scores: &CoreScores, log_z: bool, flow: bool) -> PyResult<Self> {
        let tensor = |tensor: &Tensor| tensors::to_python(py, tensor).map(Bound::unbind);
        let offsets: Vec<i64> = scores.offsets.iter().map(|&offset| offset as i64).collect();
        let of =
            offsets.windows(2).enumerate().flat_map(|(k, ends)| (ends[0]..ends[1]).map(move |_| k as i64));
        let trajectory = Tensor::from_slice(&of.collect::<Vec<_>>()).to_device(scores.log_pf.device());
        let estimate =
            |quantity, is_needed: bool| scores.get(quantity).filter(|_| is_needed).map(tensor).transpose();
        Ok(Self {
            log_pf: tensor(&scores.log_pf)?,
            log_pb: tensor(&scores.log_pb)?,
            log_reward: tensor(&scores.log_reward)?,
            log_z: estimate(Quantity::LogZ, log_z)?,
            log_flow: estimate(Quantity::LogFlow, flow)?,
            trajectory: tensor(&trajectory)?,
            offsets: offsets.into_pyarray(py).into_any().unbind(),
            batch: None,
        })
    }
}

#[pymethods]
impl Scores {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let transitions = self.trajectory.bind(py).len()?;
        let ends = self.offsets.bind(py).len()?;
        Ok(format!("Scores({} trajectories, {transitions} transitions)", ends.saturating_sub(1)))
    }
}

/// A custom objective, which is a Python function of scores.
#[derive(Debug)]
struct PyObjective {
    function: Object,
    /// The objective's name in checkpoints. A run resumes only with an objective of the same name.
    name: String,
    log_z: bool,
    flow: bool,
}

/// Describes the lengths of the scores that a custom objective gets.
fn describe_lengths(scores: &CoreScores) -> String {
    let trajectories = scores.offsets.len().saturating_sub(1);
    let transitions = scores.log_pf.numel();
    format!(
        "raised by the function of OwnObjective, for a batch of {trajectories} trajectories with \
         {transitions} transitions: of the scores, log_pf, log_pb, log_flow and trajectory have \
         {transitions} numbers, and log_reward and log_z have {trajectories}; sum numbers of transitions \
         over each trajectory by `torch.zeros_like(scores.log_reward).index_add(0, scores.trajectory, \
         numbers)`, or repeat numbers of trajectories by `numbers[scores.trajectory]`"
    )
}

impl PyObjective {
    fn ask(&self, py: Python<'_>, scores: &CoreScores) -> PyResult<Tensor> {
        let shown = Scores::new(py, scores, self.log_z, self.flow)?;
        let answer = self.function.bind(py).call1((Bound::new(py, shown)?,)).inspect_err(|exception| {
            add_note(py, exception, describe_lengths(scores));
        })?;
        tensors::from_python(&answer).map_err(|_| {
            let kind = answer.get_type().name().map_or_else(|_| "value".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "the objective gave a {kind}: expected the loss, a scalar torch.Tensor with gradient"
            ))
        })
    }
}

impl Objective for PyObjective {
    fn name(&self) -> &'static str {
        "the objective in Python"
    }

    fn needs(&self) -> Quantities {
        let mut needs = Quantities::default();
        if self.log_z {
            needs |= Quantity::LogZ;
        }
        if self.flow {
            needs |= Quantity::LogFlow;
        }
        needs
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "name": self.name, "log_z": self.log_z, "flow": self.flow })
    }

    fn loss(&self, scores: &CoreScores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        if regression.settings() != Regression::default().settings() {
            let expected = "the default, because a custom objective computes its loss without it";
            return Err(Error::config("regression", format!("{regression:?}"), expected));
        }
        call_python("the objective", |py| self.ask(py, scores))
    }
}
