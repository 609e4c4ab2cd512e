//! What takes much memory, made once for all threads that train as one.

use std::any::Any;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use gfn::{Error, Result};

/// What was made so far, in order. Who asks for what is being made waits for it.
#[derive(Default)]
pub(super) struct Made(Mutex<Vec<Box<dyn Any + Send>>>);

/// One thread's view of it: all ask for the same, in the same order.
pub(super) struct Once {
    made: Arc<Made>,
    asked: Cell<usize>,
}

impl Once {
    pub(super) fn of(made: &Arc<Made>) -> Self {
        Self { made: Arc::clone(made), asked: Cell::new(0) }
    }

    /// The next one. Where making it fails, each thread fails by itself.
    pub(super) fn get<T: Clone + Send + 'static>(&self, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let at = self.asked.replace(self.asked.get() + 1);
        let mut made = self.made.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() == at {
            made.push(Box::new(make()?));
        }
        let found = made.get(at).and_then(|one| one.downcast_ref::<T>()).cloned();
        let other = || Error::contract("threads that train as one make the same in the same order", "one made another");
        found.ok_or_else(other)
    }
}
