//! Objects of Python that the library calls.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

/// An object of Python that is called from several places, but counted as one reference.
pub(crate) type Object = Arc<Py<PyAny>>;

/// All objects that a trainer's parts refer to.
///
/// Python's collector finds a cycle, such as a trainer whose reward is a method of what holds the trainer, if it is told each reference
/// of the trainer's once: so all of them are kept here, and its parts have a share in one that is here.
#[derive(Clone, Default, Debug)]
pub(crate) struct Kept(Arc<Mutex<Vec<Object>>>);

impl Kept {
    /// Keeps a reference, for parts to share.
    pub(crate) fn keep(&self, object: Py<PyAny>) -> Object {
        let object = Arc::new(object);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(object.clone());
        object
    }

    /// Tells the collector what is kept. It may not wait; what it isn't told counts as in use.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock() {
            Ok(kept) => kept.iter().try_for_each(|object| visit.call(object.as_ref())),
            Err(_) => Ok(()),
        }
    }
}
