//! Calls of rules in Python, and the exceptions that these rules raise.

use std::sync::{Arc, Mutex, PoisonError};

use gfn::env::Env;
use gfn::train::{Companion, Context, Persist};
use numpy::PyReadonlyArrayDyn;
use pyo3::prelude::*;

use crate::errors::call_python;
use crate::references::Object;

/// A store for an exception of Python code. It is needed because the library calls such code in functions
/// that can't return an error. Only the first exception is stored. The trainer raises the stored exception at
/// the end of its call.
#[derive(Clone, Default, Debug)]
pub(crate) struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    pub(crate) fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Calls Python code. If it raises an exception (also for Ctrl-C), the exception is stored until the
    /// caller of the library raises it. As long as an exception is stored, nothing is called, and the result
    /// is `None`.
    pub(crate) fn call<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
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

/// A check that ends a training step before any update, if rules in Python raised an exception in this step.
/// The masks of failed rules allow no move, because masks can't contain an error. A loss from such masks must
/// not change parameters.
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

/// Rules in Python, whose methods are called with batches. The field `object` is `None` if there are no
/// rules.
pub(super) struct Rules {
    pub(super) object: Option<Object>,
    pub(super) failures: Failures,
}

impl Rules {
    /// Calls a method that returns a flag for each of `n` items. All flags are `true` if the object has no
    /// such method, and all are `false` if the method fails.
    pub(super) fn ask(
        &self,
        method: &str,
        n: usize,
        call: impl for<'py> Fn(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Vec<bool> {
        self.try_ask(method, n, call).unwrap_or_else(|| vec![false; n])
    }

    /// Calls a method that returns a flag for each of `n` items. All flags are `true` if the object has no
    /// such method. Returns `None` if the method fails.
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

/// Checks the result of a method of rules, and returns it as an array with elements of the type `T`. The
/// result must be an array of this shape, with numbers below `below`.
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
