//! Batches of states as Python sees them: `Graphs`, or numpy arrays.

mod graphs;

use gfn::env::VectorStates;
pub(crate) use graphs::Graphs;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;

/// An int64 array, a row per state.
pub(crate) fn entries<'py>(py: Python<'py>, states: &VectorStates) -> PyResult<Bound<'py, PyAny>> {
    let values: Vec<i64> = states.values().iter().map(|&value| i64::from(value)).collect();
    table(py, values, states.width())
}

/// An array of rows of this width.
pub(crate) fn table<'py, T: numpy::Element>(
    py: Python<'py>,
    values: Vec<T>,
    width: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = values.len() / width.max(1);
    Ok(values.into_pyarray(py).reshape([rows, width])?.into_any())
}
