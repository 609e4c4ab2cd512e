//! Counts the calls from Python into the library that haven't returned, and sets the library's number of
//! threads.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use gfn::runtime::{DeviceKind, Runtime, Threads};
use gfn::{Error, Result};
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;

use crate::errors::Outcome;
use crate::tensors::Clean;

/// `true` once the Python interpreter is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// `true` if this process was forked. The parent's threads don't exist in a forked process.
static FORKED: AtomicBool = AtomicBool::new(false);
/// The number of calls from Python into the library that haven't returned, on all threads.
static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of calls into the library by this thread that haven't returned.
    static OWN_CALLS: Cell<usize> = const { Cell::new(0) };
    /// `true` if this thread is the only thread of its rayon pool.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// A guard that exists during a call into the library, if the call takes long or calls Python code. The
/// thread that creates or drops the guard must hold the interpreter.
pub(crate) struct Inside {
    _clean: Clean,
}

impl Inside {
    /// Counts a call into the library until the returned guard is dropped.
    ///
    /// # Errors
    /// `SystemExit` if the interpreter is about to end. This exception ends a thread without a message.
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

/// Returns an error once the interpreter is about to end, so that a daemon thread stops working. The process
/// would abort if a daemon thread returned to the interpreter after its end.
pub(crate) fn check_ending() -> Result<()> {
    if ENDING.load(SeqCst) {
        return Err(Error::external("the end of Python", exit_error()));
    }
    Ok(())
}

/// Makes all calls into the library end soon with an error, and prevents new calls.
#[pyfunction]
pub(crate) fn end() {
    ENDING.store(true, SeqCst);
}

/// Returns the number of calls from Python into the library that haven't returned, on all threads.
#[pyfunction]
pub(crate) fn calls() -> usize {
    CALLS.load(SeqCst)
}

/// Records that this process was forked. From then on, a thread that calls the library does all of the work
/// itself, because a forked process doesn't have the threads of its parent.
#[pyfunction]
pub(crate) fn forked() {
    FORKED.store(true, SeqCst);
    CALLS.store(OWN_CALLS.get(), SeqCst);
}

/// Makes a rayon pool whose only thread is this thread. This process was forked, and the threads of its
/// parent's pool don't exist here, so waiting for that pool would never end.
fn alone() {
    static TORCH: Once = Once::new();
    TORCH.call_once(|| tch::set_num_threads(1));
    if !ALONE.replace(true) {
        // The call fails if the thread already belongs to a pool, for example of a program that embeds
        // Python. In this case that pool is used.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        std::mem::forget(pool);
    }
}

/// Sets the number of the library's own threads to 1, unless the user chose a number. A step of a small
/// network is so short that a second thread costs more time than it saves.
pub(crate) fn prepare_threads() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        if std::env::var_os("RAYON_NUM_THREADS").is_none() {
            // The call fails if a number of threads was chosen before. In this case that number stays in
            // effect.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
        }
    });
}

/// Sets the number of threads of the library and of torch for the rest of the process; call this function
/// before the first trainer is built. A process that is forked from this process has a single thread, because
/// threads aren't copied. A second call with another number is an error.
///
///     >>> gfn.set_threads(1)
#[pyfunction]
pub(crate) fn set_threads(n: &Bound<'_, PyAny>) -> Outcome<()> {
    let n = n.py().import("gfn_rs._checks")?.call_method1("count", (n, "threads", 1))?.extract()?;
    Runtime::new(Threads { rayon: n, libtorch: n }, DeviceKind::Cpu)?;
    Ok(())
}
