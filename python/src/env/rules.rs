//! Rules in Python, and the exceptions that they raise.

use std::sync::{Arc, Mutex, PoisonError};

use gfn::env::Env;
use gfn::train::{Companion, Context, Persist};
use numpy::PyReadonlyArrayDyn;
use pyo3::prelude::*;

use crate::errors::call_python;
use crate::references::Object;

/// The first exception of a function of Python that the library calls where it can't return an error. The trainer raises it when its call
/// ends.
#[derive(Clone, Default, Debug)]
pub(crate) struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    pub(crate) fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Calls Python. Its exception, Ctrl-C for example, is kept for the caller of the library, and nothing is called until it was raised.
    pub(super) fn call<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return None;
        }
        Python::attach(call).map_err(|error| self.keep(error)).ok()
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
        call_python("the rules", |_| self.0.raise())
    }
}

/// An object with methods that are called with batches.
pub(super) struct Rules {
    pub(super) object: Option<Object>,
    pub(super) failures: Failures,
}

impl Rules {
    /// The answers of a method for `n` items: all are allowed without such a method, and none if it fails.
    pub(super) fn ask(
        &self,
        method: &str,
        n: usize,
        call: impl for<'py> Fn(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Vec<bool> {
        self.try_ask(method, n, call).unwrap_or_else(|| vec![false; n])
    }

    /// The same; None if it fails.
    pub(super) fn try_ask(
        &self,
        method: &str,
        n: usize,
        call: impl for<'py> Fn(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Option<Vec<bool>> {
        self.failures.call(|py| {
            let Some(object) = &self.object else { return Ok(vec![true; n]) };
            let Some(function) = object.bind(py).getattr_opt(method)? else { return Ok(vec![true; n]) };
            read_answer(&call(&function)?, method, "bool", &[n], 0)
        })
    }
}

/// Reads an array of a kind of numpy's and of this shape, its numbers below `below`, which a method gave.
pub(super) fn read_answer<T: numpy::Element + Copy>(
    answer: &Bound<'_, PyAny>,
    method: &str,
    kind: &str,
    shape: &[usize],
    below: usize,
) -> PyResult<Vec<T>> {
    let checks = answer.py().import("gfn_rs._checks")?;
    let array: PyReadonlyArrayDyn<'_, T> =
        checks.call_method1("answers", (answer, method, kind, shape.to_vec(), below))?.extract()?;
    Ok(array.as_array().iter().copied().collect())
}
