//! Threads of Python inside of the library, and its own.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use gfn::runtime::{DeviceKind, Runtime, Threads};
use gfn::{Error, Result};
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;

use crate::errors::Outcome;
use crate::tensors::Clean;

/// Whether the interpreter is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Whether this process was forked from one that may have had threads, of which none is here.
static FORKED: AtomicBool = AtomicBool::new(false);
/// Calls of the library that haven't returned.
static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Calls of this thread.
    static OWN_CALLS: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread has a pool of its own.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// A call of the library: whatever works for long, or calls Python, holds one. It is made and dropped by a thread that has the interpreter.
pub(crate) struct Inside {
    _clean: Clean,
}

impl Inside {
    /// # Errors
    /// `SystemExit`, which ends a thread quietly, where the interpreter is about to end.
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

/// Ends what a daemon thread does once the interpreter is about to end: a thread that comes back to it later ends the process by an abort.
pub(crate) fn check_ending() -> Result<()> {
    if ENDING.load(SeqCst) {
        return Err(Error::external("the end of Python", exit_error()));
    }
    Ok(())
}

/// Has all calls end soon, and lets no other begin.
#[pyfunction]
pub(crate) fn end() {
    ENDING.store(true, SeqCst);
}

/// Calls that haven't ended yet.
#[pyfunction]
pub(crate) fn calls() -> usize {
    CALLS.load(SeqCst)
}

/// Says that this process was forked: the one thread that it has works alone.
#[pyfunction]
pub(crate) fn forked() {
    FORKED.store(true, SeqCst);
    CALLS.store(OWN_CALLS.get(), SeqCst);
}

/// Makes this thread a pool of rayon's: the one that there was has no threads in this process, and who waits for it waits for ever.
fn alone() {
    static TORCH: Once = Once::new();
    TORCH.call_once(|| tch::set_num_threads(1));
    if !ALONE.replace(true) {
        // A thread that is a pool's already, one of a program around Python say, has it.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        std::mem::forget(pool);
    }
}

/// One thread for what the library does itself, as torch gets one for small networks, unless another number was chosen: a step is so
/// short that a second one costs more than it does.
pub(crate) fn prepare_threads() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        if std::env::var_os("RAYON_NUM_THREADS").is_none() {
            // It fails where a number was chosen before, which then holds.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
        }
    });
}

/// Gives the library and torch so many threads, for the rest of the process; before its first trainer. A process that is forked from it has
/// one: the others aren't there.
#[pyfunction]
pub(crate) fn set_threads(n: &Bound<'_, PyAny>) -> Outcome<()> {
    let n = n.py().import("gfn_rs._checks")?.call_method1("count", (n, "threads", 1))?.extract()?;
    Runtime::new(Threads { rayon: n, libtorch: n }, DeviceKind::Cpu)?;
    Ok(())
}
