//! The number of threads of the library.

use std::sync::Once;

use gfn::runtime::{DeviceKind, Runtime, Threads};
use pyo3::prelude::*;

use crate::errors::raised;

/// One thread for what the library does itself, as torch gets one for small networks, unless another number was chosen: a step is so
/// short that a second one costs more than it does.
pub(crate) fn prepare() {
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
pub(crate) fn set_threads(n: &Bound<'_, PyAny>) -> PyResult<()> {
    let n = n.py().import("gfn_rs._checks")?.call_method1("count", (n, "threads", 1))?.extract()?;
    Runtime::new(Threads { rayon: n, libtorch: n }, DeviceKind::Cpu).map(|_| ()).map_err(raised)
}
