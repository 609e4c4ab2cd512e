//! Whole numbers that come from Python.

use pyo3::prelude::*;

/// A whole number of at least `least`; what else was given is refused by name, a negative number as a value and not as an overflow.
pub(crate) fn count(given: &Bound<'_, PyAny>, name: &str, least: usize) -> PyResult<usize> {
    given.py().import("gfn_rs._checks")?.call_method1("count", (given, name, least))?.extract()
}
