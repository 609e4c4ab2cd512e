//! Counts the threads of Python that are inside the library, and sets the library's number of threads.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use gfn::runtime::{DeviceKind, Runtime, Threads};
use gfn::{Error, Result};
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;

use crate::errors::Outcome;
use crate::tensors::Clean;

/// `true` once the interpreter is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// `true` if this process was forked. The threads of the process that it was forked from don't exist here.
static FORKED: AtomicBool = AtomicBool::new(false);
/// The number of calls of the library that haven't returned.
static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of unfinished calls of the library that this thread made.
    static OWN_CALLS: Cell<usize> = const { Cell::new(0) };
    /// `true` if this thread is the only thread of its rayon pool.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// A guard of a call of the library that takes long or calls Python. It is created and dropped by a thread
/// that holds the interpreter.
pub(crate) struct Inside {
    _clean: Clean,
}

impl Inside {
    /// # Errors
    /// `SystemExit`, which ends a thread quietly, if the interpreter is about to end.
    pub(crate) fn enter(py: Python<'_>) -> PyResult<Self> {
        if ENDING.load(SeqCst) {
            return Err(exit_error());
        }
        if FORKED.load(SeqCst) {
            alone();
        }
        let _clean = Clean::enter(py)?;
        CALLS.fetch_add(1, SeqCst);
        OWN_CALLS.set(OWN_CALLS.get() + 1);
        Ok(Self { _clean })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, SeqCst);
        OWN_CALLS.set(OWN_CALLS.get().saturating_sub(1));
    }
}

fn exit_error() -> PyErr {
    PySystemExit::new_err("Python is about to end")
}

/// Returns an error once the interpreter is about to end, so that a daemon thread stops: if it returned to
/// the interpreter later, the process would abort.
pub(crate) fn check_ending() -> Result<()> {
    if ENDING.load(SeqCst) {
        return Err(Error::external("the end of Python", exit_error()));
    }
    Ok(())
}

/// Makes all calls of the library end soon, and prevents new calls.
#[pyfunction]
pub(crate) fn end() {
    ENDING.store(true, SeqCst);
}

/// Returns the number of calls from Python into the library, on all threads, that haven't returned yet.
#[pyfunction]
pub(crate) fn calls() -> usize {
    CALLS.load(SeqCst)
}

/// Records that this process was forked. Its single thread then works without a pool of other threads.
#[pyfunction]
pub(crate) fn forked() {
    FORKED.store(true, SeqCst);
    CALLS.store(OWN_CALLS.get(), SeqCst);
}

/// Makes this thread a rayon pool of one thread. The parent's pool has no threads in this process, so waiting
/// for that pool would never end.
fn alone() {
    static TORCH: Once = Once::new();
    TORCH.call_once(|| tch::set_num_threads(1));
    if !ALONE.replace(true) {
        // The call fails if the thread already belongs to a pool, for example of a program that embeds
        // Python. That pool is then used.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        std::mem::forget(pool);
    }
}

/// Sets one thread for the library's own work unless the user chose another number. A step of a small network
/// is so short that a second thread costs more than it saves.
pub(crate) fn prepare_threads() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        if std::env::var_os("RAYON_NUM_THREADS").is_none() {
            // The call fails if a number was chosen before. That number then stays in effect.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
        }
    });
}

/// Sets the number of threads of the library and of torch for the rest of the process; call it before the
/// first trainer. A process forked from this one has a single thread, because threads aren't copied.
#[pyfunction]
pub(crate) fn set_threads(n: &Bound<'_, PyAny>) -> Outcome<()> {
    let n = n.py().import("gfn_rs._checks")?.call_method1("count", (n, "threads", 1))?.extract()?;
    Runtime::new(Threads { rayon: n, libtorch: n }, DeviceKind::Cpu)?;
    Ok(())
}
