//! Rules in Python, and the exceptions that they raise.

use std::sync::{Arc, Mutex, PoisonError};

use gfn::env::Env;
use gfn::train::{Companion, Context, Persist};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::python_error;
use crate::references::Object;

/// The first exception of a function of Python that the library calls where it can't return an error. The trainer raises it when its call
/// ends.
#[derive(Clone, Default, Debug)]
pub(crate) struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    pub(crate) fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(super) fn is_some(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the exception as an error.
    pub(crate) fn raise(&self) -> PyResult<()> {
        self.take().map_or(Ok(()), Err)
    }
}

/// Ends a step in which rules of Python failed, before anything is updated: masks have no place for an error, so nothing is allowed then,
/// and the loss on such masks isn't one to learn from.
pub(crate) struct FailureCheck(pub(crate) Failures);

impl<E: Env> Persist<E> for FailureCheck {
    fn name(&self) -> &str {
        "failure_check"
    }
}

impl<E: Env> Companion<E> for FailureCheck {
    fn before_update(&mut self, _: &Context<E>) -> gfn::Result<()> {
        self.0.raise().map_err(python_error("the rules"))
    }
}

/// An object with methods that are called with batches.
pub(super) struct Rules {
    pub(super) object: Option<Object>,
    pub(super) failures: Failures,
}

impl Rules {
    /// The answers of a method for `n` items: all are allowed without such a method, and none if it fails, nor from then on: an exception
    /// will be raised, Ctrl-C for example.
    pub(super) fn ask(
        &self,
        method: &str,
        n: usize,
        call: impl Fn(&Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Vec<bool> {
        self.try_ask(method, n, call).unwrap_or_else(|| vec![false; n])
    }

    /// The same; None if it fails.
    pub(super) fn try_ask(
        &self,
        method: &str,
        n: usize,
        call: impl Fn(&Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Option<Vec<bool>> {
        if self.failures.is_some() {
            return None;
        }
        let ask = |py: Python<'_>| -> PyResult<Vec<bool>> {
            let Some(object) = &self.object else { return Ok(vec![true; n]) };
            let Some(function) = object.bind(py).getattr_opt(method)? else { return Ok(vec![true; n]) };
            answers(call(&function)?.bind(py), method, n)
        };
        Python::attach(ask).map_err(|error| self.failures.keep(error)).ok()
    }
}

fn answers(answer: &Bound<'_, PyAny>, method: &str, n: usize) -> PyResult<Vec<bool>> {
    let Ok(array) = answer.extract::<PyReadonlyArray1<'_, bool>>() else {
        let what = match answer.getattr_opt("dtype")? {
            Some(dtype) => format!("an array of {dtype} and shape {}", answer.getattr("shape")?),
            None => format!("a {}", answer.get_type().name()?),
        };
        return Err(PyTypeError::new_err(format!(
            "`{method}` gave {what}: expected a flat array of bool, {n} of them"
        )));
    };
    if array.as_array().len() == n {
        Ok(array.as_array().to_vec())
    } else {
        Err(PyValueError::new_err(format!("`{method}` gave {} answers: expected {n}", array.as_array().len())))
    }
}
