//! A reward in Python.

use std::sync::Arc;

use gfn::Result;
use gfn::env::{Reward, Rows};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tch::Tensor;

use crate::border::Border;
use crate::errors::python_error;
use crate::references::Object;
use crate::tensors;

/// The method for states that aren't finished.
const PARTIAL: &str = "partial_log_reward";

/// A function of a batch of states that returns log R of each; with conditions, a function of states and conditions.
///
/// The method `partial_log_reward` of an object returns the same for states that aren't finished.
pub(crate) struct PyReward<S> {
    function: Object,
    has_partial: bool,
    border: Arc<dyn Border<S>>,
}

impl<S: Rows + 'static> PyReward<S> {
    pub(crate) fn new(py: Python<'_>, function: Object, border: Arc<dyn Border<S>>) -> PyResult<Self> {
        let object = function.bind(py);
        if !object.is_callable() {
            let kind = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "the reward is a {kind}: expected one of the library's, or a function of a batch of states that gives log R of each"
            )));
        }
        let has_partial = object.getattr_opt(PARTIAL)?.is_some();
        Ok(Self { function, has_partial, border })
    }

    /// Calls the function, or its method of this name.
    fn call(&self, method: Option<&str>, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        let call = |py: Python<'_>| {
            let shown = self.border.show(py, states)?;
            let object = self.function.bind(py);
            let function = match method {
                None => object.clone(),
                Some(name) => object.getattr(name)?,
            };
            let answer = match conditions {
                None => function.call1((shown,))?,
                Some(conditions) => function.call1((shown, tensors::to_python(py, conditions)?))?,
            };
            numbers(&answer, states.len(), "the reward", "log R")
        };
        // A reward isn't differentiated.
        tch::no_grad(|| Python::attach(call)).map_err(python_error("the reward"))
    }
}

/// One float64 for each of `n` states, from whatever numpy makes an array of. `who` and `what` name them in errors.
pub(crate) fn numbers(answer: &Bound<'_, PyAny>, n: usize, who: &str, what: &str) -> PyResult<Vec<f64>> {
    let checks = answer.py().import("gfn_rs._checks")?;
    let values: PyReadonlyArray1<'_, f64> = checks.call_method1("numbers", (answer, n, who, what))?.extract()?;
    Ok(values.as_array().to_vec())
}

impl<S: Rows + 'static> Reward<S> for PyReward<S> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.call(None, states, conditions)
    }

    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.has_partial.then(|| self.call(Some(PARTIAL), states, conditions)).transpose()
    }
}
