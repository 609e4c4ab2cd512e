//! A reward in Python.

use gfn::Result;
use gfn::env::{Reward, Rows};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::passed_on;
use crate::states::Show;
use crate::tensors;

/// A function of a batch of states that gives log R of each; with conditions, a function of states and conditions.
///
/// An object with a method `partial_log_reward` says the same of states that aren't finished.
pub(crate) struct Called<S> {
    function: Py<PyAny>,
    partial: Option<Py<PyAny>>,
    show: Show<S>,
}

impl<S: Rows> Called<S> {
    pub(crate) fn new(function: &Bound<'_, PyAny>, show: Show<S>) -> PyResult<Self> {
        if !function.is_callable() {
            let kind = function.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "the reward is a {kind}: expected one of the library's, or a function of a batch of states that gives log R of each"
            )));
        }
        let partial = function.getattr_opt("partial_log_reward")?.map(Bound::unbind);
        Ok(Self { function: function.clone().unbind(), partial, show })
    }

    fn ask(&self, function: &Py<PyAny>, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        let asked = |py: Python<'_>| {
            let shown = (self.show)(py, states)?;
            let function = function.bind(py);
            let answer = match conditions {
                None => function.call1((shown,))?,
                Some(conditions) => function.call1((shown, tensors::to_python(py, conditions)?))?,
            };
            numbers(&answer, states.len(), ("the reward", "log R"))
        };
        // A reward is no part of what is differentiated.
        tch::no_grad(|| Python::attach(asked)).map_err(passed_on("the reward"))
    }
}

/// One float64 for each of `n` states, from whatever numpy makes an array of. `who` says it, `what` is meant.
pub(crate) fn numbers(answer: &Bound<'_, PyAny>, n: usize, (who, what): (&str, &str)) -> PyResult<Vec<f64>> {
    let values = match answer.extract::<PyReadonlyArray1<'_, f64>>() {
        Ok(values) if !answer.hasattr("mask")? => values.as_array().to_vec(),
        _ => as_float64(answer, (who, what))?,
    };
    match values.len() == n {
        true => Ok(values),
        false => Err(PyValueError::new_err(format!(
            "{who} gave {} numbers for {n} states: expected {what} of each",
            values.len()
        ))),
    }
}

fn as_float64(answer: &Bound<'_, PyAny>, (who, what): (&str, &str)) -> PyResult<Vec<f64>> {
    let py = answer.py();
    let expected = format!("expected {what} of each state, as a flat array or list of numbers");
    // A tensor with gradients, or on another device, isn't an array as it is.
    let answer = match answer.hasattr("detach")? {
        true => answer.call_method0("detach")?.call_method0("cpu")?,
        false => answer.clone(),
    };
    let refused = |cause: Option<PyErr>| {
        let kind = answer.get_type().name().map_or_else(|_| "value".to_owned(), |name| name.to_string());
        let told = PyTypeError::new_err(format!("{who} gave a {kind}: {expected}"));
        told.set_cause(py, cause);
        told
    };
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("asarray", (&answer,)).map_err(|error| refused(Some(error)))?;
    // Booleans, whole and real numbers: of a complex one numpy would take the real part, of a text what it spells.
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !["b", "i", "u", "f"].contains(&kind.as_str()) || answer.hasattr("mask")? {
        return Err(refused(None));
    }
    let array = array.call_method1("astype", ("float64",))?;
    match array.extract::<PyReadonlyArray1<'_, f64>>() {
        Ok(values) => Ok(values.as_array().to_vec()),
        Err(_) => {
            let shape = array.getattr("shape")?;
            Err(PyValueError::new_err(format!("{who} gave an array of shape {shape}: {expected}")))
        }
    }
}

impl<S: Rows> Reward<S> for Called<S> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.ask(&self.function, states, conditions)
    }

    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        let partial = self.partial.as_ref();
        partial.map(|function| self.ask(function, states, conditions)).transpose()
    }
}
