//! An objective in Python: a function of the log-probabilities of a batch.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gfn::objective::{Objective, RegressionLoss, Scores as CoreScores};
use gfn::objective::{Quantities, Quantity};
use gfn::train::BatchScores;
use gfn::{Error, Result};
use numpy::IntoPyArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::python_error;
use crate::references::Object;
use crate::tensors;

/// What an objective sees of a batch of B trajectories with T transitions in all: tensors of torch with gradients, and where each
/// trajectory's transitions begin and end.
#[pyclass(frozen, module = "gfn_rs", name = "Scores")]
pub(crate) struct Scores {
    /// log P_F of each transition, `[T]`.
    #[pyo3(get)]
    log_pf: Py<PyAny>,
    /// log P_B of each transition, `[T]`.
    #[pyo3(get)]
    log_pb: Py<PyAny>,
    /// log R of each trajectory's object, `[B]`, with the correction for symmetry, if there is one.
    #[pyo3(get)]
    log_reward: Py<PyAny>,
    /// log Z for each trajectory, `[B]`; None unless asked for.
    #[pyo3(get)]
    log_z: Option<Py<PyAny>>,
    /// log F of each state that isn't the last of its trajectory, `[T]`; None unless asked for.
    #[pyo3(get)]
    log_flow: Option<Py<PyAny>>,
    /// The transitions of trajectory k are those from `offsets[k]` to below `offsets[k + 1]`, `[B + 1]`, an array of numpy.
    #[pyo3(get)]
    offsets: Py<PyAny>,
    /// The trajectory of each transition, `[T]`, a tensor.
    #[pyo3(get)]
    trajectory: Py<PyAny>,
    /// The scores that a trainer computes its loss of, if a trainer scored the batch.
    batch: Option<Mutex<BatchScores>>,
}

impl Scores {
    /// Scores of a batch, as a trainer gives them: with all estimates that there are.
    pub(crate) fn from_batch(py: Python<'_>, scores: BatchScores) -> PyResult<Self> {
        let shown = Self::new(py, scores.whole(), true, true)?;
        Ok(Self { batch: Some(Mutex::new(scores)), ..shown })
    }

    /// The scores that a trainer computes its loss of; None for scores that an objective was called with.
    pub(crate) fn batch(&self) -> Option<MutexGuard<'_, BatchScores>> {
        self.batch.as_ref().map(|scores| scores.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn new(py: Python<'_>, scores: &CoreScores, log_z: bool, flow: bool) -> PyResult<Self> {
        let tensor = |tensor: &Tensor| tensors::to_python(py, tensor).map(Bound::unbind);
        let offsets: Vec<i64> = scores.offsets.iter().map(|&offset| offset as i64).collect();
        let of = offsets.windows(2).enumerate().flat_map(|(k, ends)| (ends[0]..ends[1]).map(move |_| k as i64));
        let trajectory = Tensor::from_slice(&of.collect::<Vec<_>>()).to_device(scores.log_pf.device());
        let estimate = |quantity, is_needed: bool| scores.get(quantity).filter(|_| is_needed).map(tensor).transpose();
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
        let (transitions, ends) = (self.trajectory.bind(py).len()?, self.offsets.bind(py).len()?);
        Ok(format!("Scores({} trajectories, {transitions} transitions)", ends.saturating_sub(1)))
    }
}

/// A function of Python, as an objective.
#[derive(Debug)]
pub(super) struct PyObjective {
    pub(super) function: Object,
    /// The name in checkpoints: a run resumes only with the objective of the same name.
    pub(super) name: String,
    pub(super) log_z: bool,
    pub(super) flow: bool,
}

impl PyObjective {
    fn ask(&self, py: Python<'_>, scores: &CoreScores) -> PyResult<Tensor> {
        let shown = Scores::new(py, scores, self.log_z, self.flow)?;
        let answer = self.function.bind(py).call1((Bound::new(py, shown)?,))?;
        tensors::from_python(&answer).map_err(|_| {
            let kind = answer.get_type().name().map_or_else(|_| "value".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "the objective gave a {kind}: expected its loss, a scalar torch.Tensor with gradient"
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

    fn loss(&self, scores: &CoreScores, regression: RegressionLoss) -> Result<Tensor> {
        if regression != RegressionLoss::default() {
            let expected = "the default: an objective of your own makes its loss itself";
            return Err(Error::config("regression", format!("{regression:?}"), expected));
        }
        Python::attach(|py| self.ask(py, scores)).map_err(python_error("the objective"))
    }
}
