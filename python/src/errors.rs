//! The conversion of the library's errors to Python exceptions of a fitting type, with the same message.
//! Exceptions of Python code are raised unchanged.

use gfn::{Error, Result};
use pyo3::exceptions::{PyFloatingPointError, PyIndexError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::wording::in_python;

/// An exception that will be raised in Python. The operator `?` also converts an error of the library to it.
pub(crate) struct PythonError(PyErr);

/// The result of functions that Python calls. The operator `?` accepts errors of the library and exceptions
/// of Python.
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
        // Python's OSError chooses its subclass (FileNotFoundError, PermissionError) by the error number.
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

/// Calls Python from the library. An exception becomes an error of the library, which keeps it. `who` names
/// the called code in errors.
pub(crate) fn call_python<T>(who: &'static str, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    Python::attach(call).map_err(|exception| Error::external(who, exception))
}
