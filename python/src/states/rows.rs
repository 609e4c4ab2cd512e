//! Batches that are numpy arrays in Python.

use gfn::env::{Reals, VectorStates};
use gfn::graph::GraphStates;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;

/// An int64 array, a row per state.
pub(crate) fn entries<'py>(py: Python<'py>, states: &VectorStates) -> PyResult<Bound<'py, PyAny>> {
    let values: Vec<i64> = states.values().iter().map(|&value| i64::from(value)).collect();
    table(py, values, states.width())
}

/// A float64 array, a row per state.
pub(super) fn reals<'py>(py: Python<'py>, states: &Reals) -> PyResult<Bound<'py, PyAny>> {
    table(py, states.values().to_vec(), states.width())
}

/// A bool array, `[states, from, to]`.
pub(super) fn adjacency<'py>(py: Python<'py>, n: usize, states: &GraphStates) -> PyResult<Bound<'py, PyAny>> {
    let graphs = states.graphs();
    let mut values = vec![false; graphs.len() * n * n];
    for (matrix, graph) in values.chunks_exact_mut((n * n).max(1)).zip(graphs) {
        graph.edges().for_each(|(a, b)| matrix[a as usize * n + b as usize] = true);
    }
    Ok(values.into_pyarray(py).reshape([graphs.len(), n, n])?.into_any())
}

/// An array of rows of this width.
pub(super) fn table<'py, T: numpy::Element>(
    py: Python<'py>,
    values: Vec<T>,
    width: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = values.len() / width.max(1);
    Ok(values.into_pyarray(py).reshape([rows, width])?.into_any())
}
