//! The Python objects that the library calls, with their support for Python's garbage collector.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

/// A Python object that several parts of a trainer share. All parts together count as one reference.
pub(crate) type Object = Arc<Py<PyAny>>;

/// The Python objects that the parts of a trainer refer to.
///
/// Python's garbage collector finds a cycle only if each reference of the trainer is reported exactly once.
/// (For example, a trainer is in a cycle if its reward is a method of an object that holds the trainer.) So
/// this list owns the references, and the parts share the objects.
#[derive(Clone, Default, Debug)]
pub(crate) struct References(Arc<Mutex<Vec<Object>>>);

impl References {
    /// Adds an object to the list, and returns a shared pointer to this object.
    pub(crate) fn add(&self, object: Py<PyAny>) -> Object {
        let object = Arc::new(object);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(object.clone());
        object
    }

    /// Reports the objects to Python's garbage collector, without waiting for a lock. If the list is locked,
    /// no object is reported, so the collector treats all objects as in use.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock() {
            Ok(objects) => objects.iter().try_for_each(|object| visit.call(object.as_ref())),
            Err(_) => Ok(()),
        }
    }
}
