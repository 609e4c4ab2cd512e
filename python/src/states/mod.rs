//! Batches of states as Python objects, which are `Graphs` or numpy arrays.

mod graphs;

use gfn::env::VectorStates;
pub(crate) use graphs::Graphs;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;

/// A list of numbers that is converted to a one-dimensional numpy array for Python.
pub(crate) struct Array<T>(pub(crate) Vec<T>);

impl<'py, T: numpy::Element> IntoPyObject<'py> for Array<T> {
    type Target = PyArray1<T>;
    type Output = Bound<'py, PyArray1<T>>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<T>>> {
        Ok(self.0.into_pyarray(py))
    }
}

/// Converts indices, sizes or slots to an int64 array.
pub(crate) fn whole(values: impl IntoIterator<Item = usize>) -> Array<i64> {
    Array(values.into_iter().map(|value| value as i64).collect())
}

/// Converts vectors to an int64 numpy array with a row per state.
pub(crate) fn entries<'py>(py: Python<'py>, states: &VectorStates) -> PyResult<Bound<'py, PyAny>> {
    let values: Vec<i64> = states.values().iter().map(|&value| i64::from(value)).collect();
    table(py, values, states.width())
}

/// Builds a two-dimensional numpy array whose rows have `width` entries.
pub(crate) fn table<'py, T: numpy::Element>(
    py: Python<'py>,
    values: Vec<T>,
    width: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = values.len() / width.max(1);
    Ok(values.into_pyarray(py).reshape([rows, width])?.into_any())
}
