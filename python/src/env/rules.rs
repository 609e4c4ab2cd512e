//! Rules in Python, and the exceptions that they raise.

use std::sync::{Arc, Mutex, PoisonError};

use gfn::env::Env;
use gfn::train::{Companion, Context, Persist};
use numpy::PyReadonlyArrayDyn;
use pyo3::prelude::*;

use crate::errors::call_python;
use crate::references::Object;

/// The first exception of a function of Python that the library calls without a way to return an error. The
/// trainer raises it at the end of its call.
#[derive(Clone, Default, Debug)]
pub(crate) struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    pub(crate) fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Calls Python. An exception, such as Ctrl-C, is stored for the caller of the library, and nothing is
    /// called again until it has been raised.
    pub(super) fn call<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return None;
        }
        Python::attach(call).map_err(|error| self.keep(error)).ok()
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the stored exception as an error.
    pub(crate) fn raise(&self) -> PyResult<()> {
        self.take().map_or(Ok(()), Err)
    }
}

/// Ends a step in which rules of Python failed, before any update. Masks can't carry an error, so failed
/// rules allow nothing, and the loss on such masks must not be learned from.
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
    /// Returns the answers of a method for `n` items: all are allowed if the method doesn't exist, and none
    /// if it fails.
    pub(super) fn ask(
        &self,
        method: &str,
        n: usize,
        call: impl for<'py> Fn(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Vec<bool> {
        self.try_ask(method, n, call).unwrap_or_else(|| vec![false; n])
    }

    /// Returns the answers of a method for `n` items; None if it fails.
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

/// Reads an array of this dtype and shape, with numbers below `below`, from a method's result.
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
