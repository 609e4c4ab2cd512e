//! A reward in Python.

use gfn::Result;
use gfn::env::{Reward, Rows};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::passed_on;
use crate::kept::Object;
use crate::states::Show;
use crate::tensors;

/// The method for states that aren't finished.
const PARTIAL: &str = "partial_log_reward";

/// A function of a batch of states that gives log R of each; with conditions, a function of states and conditions.
///
/// An object with a method `partial_log_reward` says the same of states that aren't finished.
pub(crate) struct Called<S> {
    function: Object,
    has_partial: bool,
    show: Show<S>,
}

impl<S: Rows> Called<S> {
    pub(crate) fn new(py: Python<'_>, function: Object, show: Show<S>) -> PyResult<Self> {
        let object = function.bind(py);
        if !object.is_callable() {
            let kind = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "the reward is a {kind}: expected one of the library's, or a function of a batch of states that gives log R of each"
            )));
        }
        let has_partial = object.getattr_opt(PARTIAL)?.is_some();
        Ok(Self { function, has_partial, show })
    }

    /// Log R by the function itself, or by its method of that name.
    fn ask(&self, method: Option<&str>, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        let asked = |py: Python<'_>| {
            let shown = (self.show)(py, states)?;
            let object = self.function.bind(py);
            let function = method.map_or_else(|| Ok(object.clone()), |name| object.getattr(name))?;
            let answer = match conditions {
                None => function.call1((shown,))?,
                Some(conditions) => function.call1((shown, tensors::to_python(py, conditions)?))?,
            };
            numbers(&answer, states.len(), "the reward", "log R")
        };
        // A reward is no part of what is differentiated.
        tch::no_grad(|| Python::attach(asked)).map_err(passed_on("the reward"))
    }
}

/// One float64 for each of `n` states, from whatever numpy makes an array of. `who` says it, `what` is meant.
pub(crate) fn numbers(answer: &Bound<'_, PyAny>, n: usize, who: &str, what: &str) -> PyResult<Vec<f64>> {
    let checks = answer.py().import("gfn_rs._checks")?;
    let values: PyReadonlyArray1<'_, f64> = checks.call_method1("numbers", (answer, n, who, what))?.extract()?;
    Ok(values.as_array().to_vec())
}

impl<S: Rows> Reward<S> for Called<S> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.ask(None, states, conditions)
    }

    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.has_partial.then(|| self.ask(Some(PARTIAL), states, conditions)).transpose()
    }
}
