//! What rules in Python are asked, and what becomes of what they raise.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::kept::Object;

/// What Python raised where the library has no place for an error; the trainer raises it once it is back.
#[derive(Clone, Default, Debug)]
pub(crate) struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    pub(crate) fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(super) fn are_there(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An object with methods that are asked about batches.
pub(super) struct Rules {
    pub(super) object: Option<Object>,
    pub(super) failures: Failures,
}

impl Rules {
    /// What a method says of `n` things; all are allowed where there is no such method, none where it fails, and none from then on: what
    /// was raised, Ctrl-C among it, is on its way.
    pub(super) fn ask(
        &self,
        method: &str,
        n: usize,
        call: impl Fn(&Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Vec<bool> {
        self.told(method, n, call).unwrap_or_else(|| vec![false; n])
    }

    /// The same; None where it fails.
    pub(super) fn told(
        &self,
        method: &str,
        n: usize,
        call: impl Fn(&Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Option<Vec<bool>> {
        if self.failures.are_there() {
            return None;
        }
        let asked = |py: Python<'_>| -> PyResult<Vec<bool>> {
            let Some(object) = &self.object else { return Ok(vec![true; n]) };
            let Some(function) = object.bind(py).getattr_opt(method)? else { return Ok(vec![true; n]) };
            answers(call(&function)?.bind(py), method, n)
        };
        Python::attach(asked).map_err(|error| self.failures.keep(error)).ok()
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
