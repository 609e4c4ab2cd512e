//! The conversion of the library's errors to Python exceptions. The exception has a fitting type and the
//! error's message, with Rust names replaced by Python names. Exceptions of Python code are raised unchanged.

use gfn::{Error, Result};
use pyo3::exceptions::{PyFloatingPointError, PyIndexError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::wording::in_python;

/// A Python exception. The operator `?` also converts errors of the library to this type.
pub(crate) struct PythonError(PyErr);

/// The result of a function that Python calls. In such a function, the operator `?` accepts errors of the
/// library and Python exceptions.
pub(crate) type Outcome<T> = std::result::Result<T, PythonError>;

impl From<Error> for PythonError {
    fn from(error: Error) -> Self {
        Self(to_exception(error))
    }
}

impl From<PyErr> for PythonError {
    fn from(exception: PyErr) -> Self {
        Self(exception)
    }
}

impl From<PythonError> for PyErr {
    fn from(error: PythonError) -> Self {
        error.0
    }
}

/// Returns the Python exception for an error of the library.
pub(crate) fn to_exception(error: Error) -> PyErr {
    let message = in_python(&error.to_string());
    match error {
        Error::External { source, .. } => match source.downcast::<PyErr>() {
            Ok(exception) => *exception,
            Err(_) => PyRuntimeError::new_err(message),
        },
        // If Python's `OSError` is called with the number of the system's error (`errno`), it returns an
        // object of the fitting subclass, such as `FileNotFoundError`.
        Error::Io { path, source } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, source.to_string(), path)),
            None => PyOSError::new_err(message),
        },
        Error::OutOfRange { .. } => PyIndexError::new_err(message),
        Error::NonFinite { .. } | Error::NonFiniteGradient { .. } | Error::GradientOverflow { .. } => {
            PyFloatingPointError::new_err(message)
        }
        Error::StepLimit { .. }
        | Error::SymmetryLimit { .. }
        | Error::TooManyStates { .. }
        | Error::Peer { .. }
        | Error::Torch(_)
        | Error::Warned(_) => PyRuntimeError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// Adds a note to an exception, which Python shows below the exception's message.
pub(crate) fn add_note(py: Python<'_>, exception: &PyErr, note: String) {
    // Exceptions have no notes before Python 3.11. The exception itself is more important than its note.
    let _ = exception.value(py).call_method1("add_note", (note,));
}

/// Calls Python code from the library. An exception is returned as an error of the library that contains the
/// exception. Error messages name the called code by `who`.
pub(crate) fn call_python<T>(who: &'static str, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    Python::attach(call).map_err(|exception| Error::external(who, exception))
}
