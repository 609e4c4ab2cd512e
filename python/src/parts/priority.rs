//! The weights of objects in a buffer by a function of Python.

use gfn::replay::{Priority, StoredObject};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::env::Failures;
use crate::references::Object;

/// A function of an object's log R and of its last loss, None of one that was never visited, that gives the log of its weight.
///
/// Its exception is raised when the trainer returns; the library gets NaN, which it refuses.
pub(crate) struct PyPriority {
    pub(crate) function: Object,
    pub(crate) failures: Failures,
}

impl Priority for PyPriority {
    fn log_weight(&self, stored: StoredObject) -> f64 {
        let call = |py: Python<'_>| {
            let answer = self.function.bind(py).call1((stored.log_reward, stored.loss))?;
            answer.extract::<f64>().map_err(|_| {
                let kind = answer.get_type().name().map_or_else(|_| "value".to_owned(), |name| name.to_string());
                PyTypeError::new_err(format!(
                    "Replay.draw gave a {kind}: expected a number, the log of an object's weight"
                ))
            })
        };
        Python::attach(call).unwrap_or_else(|error| {
            self.failures.keep(error);
            f64::NAN
        })
    }
}
