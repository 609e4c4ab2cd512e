//! Objects of Python that the library calls.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

/// A Python object that several parts of a trainer call, and that counts as one reference.
pub(crate) type Object = Arc<Py<PyAny>>;

/// The Python objects that the parts of a trainer refer to.
///
/// Python's garbage collector finds a cycle only if each reference of the trainer is reported exactly once.
/// An example of a cycle is a trainer whose reward is a method of an object that holds the trainer. So this
/// list owns the references, and the parts share them.
#[derive(Clone, Default, Debug)]
pub(crate) struct References(Arc<Mutex<Vec<Object>>>);

impl References {
    /// Adds an object to the list, and returns it for parts to share.
    pub(crate) fn add(&self, object: Py<PyAny>) -> Object {
        let object = Arc::new(object);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(object.clone());
        object
    }

    /// Reports the objects to the garbage collector without waiting for a lock. If the list is locked, no
    /// object is reported, and all objects count as in use.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock() {
            Ok(objects) => objects.iter().try_for_each(|object| visit.call(object.as_ref())),
            Err(_) => Ok(()),
        }
    }
}
