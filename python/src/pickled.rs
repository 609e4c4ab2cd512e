//! Results that Python pickles: made again from what they show, by name.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// What pickle makes an object with: the arguments of its class, of which all have names.
pub(crate) type Again<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>);

/// The values of these names, which are what the class takes.
pub(crate) fn again<'py, T>(result: &Bound<'py, T>, names: &[&str]) -> PyResult<Again<'py>> {
    let values = PyDict::new(result.py());
    for name in names {
        values.set_item(name, result.as_any().getattr(*name)?)?;
    }
    Ok((PyTuple::empty(result.py()), values))
}
