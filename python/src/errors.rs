//! Errors of the library as Python exceptions of a fitting type, with their message; what Python code raised comes back as it was.

use gfn::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyFloatingPointError, PyIndexError, PyOSError, PyRuntimeError, PyValueError};

use crate::wording::in_python;

/// The exception for an error.
pub(crate) fn raised(error: Error) -> PyErr {
    let message = in_python(&error.to_string());
    match error {
        Error::External { source, .. } => match source.downcast::<PyErr>() {
            Ok(exception) => *exception,
            Err(_) => PyRuntimeError::new_err(message),
        },
        // OSError finds its subclass (FileNotFoundError, PermissionError) by the number.
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

/// The error that carries an exception of Python code through the library.
pub(crate) fn python_error(who: &'static str) -> impl Fn(PyErr) -> Error {
    move |exception| Error::external(who, exception)
}
