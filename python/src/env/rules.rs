//! Rules in Python, and the exceptions that they raise.

use std::sync::{Arc, Mutex, PoisonError};

use gfn::env::Env;
use gfn::train::{Companion, Context, Persist};
use numpy::PyReadonlyArrayDyn;
use pyo3::prelude::*;

use crate::errors::call_python;
use crate::references::Object;

/// The first exception that a function of Python raised in a call by which the library can't return an error.
/// The trainer raises the exception at the end of its own call.
#[derive(Clone, Default, Debug)]
pub(crate) struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    pub(crate) fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Calls Python. An exception, such as Ctrl-C, is stored until the caller of the library raises it. Until
    /// then no function is called.
    pub(super) fn call<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return None;
        }
        Python::attach(call).map_err(|error| self.keep(error)).ok()
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the stored exception as an error, and empties the store.
    pub(crate) fn raise(&self) -> PyResult<()> {
        self.take().map_or(Ok(()), Err)
    }
}

/// Ends a step in which rules of Python failed, before any update. Masks can't carry an error, so failed
/// rules allow no move, and the loss on such masks must not change parameters.
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

/// A Python object whose methods are called with batches.
pub(super) struct Rules {
    pub(super) object: Option<Object>,
    pub(super) failures: Failures,
}

impl Rules {
    /// Returns the flags of `n` items that a method returned. All are `true` if the object has no such
    /// method, and all are `false` if the method fails.
    pub(super) fn ask(
        &self,
        method: &str,
        n: usize,
        call: impl for<'py> Fn(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Vec<bool> {
        self.try_ask(method, n, call).unwrap_or_else(|| vec![false; n])
    }

    /// Returns the flags of `n` items that a method returned; None if the method fails.
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

/// Reads an array of the dtype `T` and of this shape, with numbers below `below`, from a method's result.
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
