//! Some graphs of a batch, by what Python puts in brackets.

use gfn::Error;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PySlice};

use crate::errors::raised;

/// The places of what is asked for, of `n`: a number, a slice, a list or an array of numbers, a mask of `n` bool.
pub(super) fn rows(index: &Bound<'_, PyAny>, n: usize) -> PyResult<Vec<usize>> {
    if let Ok(slice) = index.cast::<PySlice>() {
        let part = slice.indices(n as isize)?;
        return Ok((0..part.slicelength as isize).map(|k| (part.start + k * part.step) as usize).collect());
    }
    let one = |asked: isize| {
        let row = if asked < 0 { asked + n as isize } else { asked };
        let row = usize::try_from(row).ok().filter(|row| *row < n);
        row.ok_or_else(|| raised(Error::out_of_range(asked.unsigned_abs(), n)))
    };
    // True is no place, though it is a number to Python.
    if !index.is_instance_of::<PyBool>()
        && let Ok(asked) = index.extract::<isize>()
    {
        return Ok(vec![one(asked)?]);
    }
    let refused = || {
        let kind = index.get_type().name().map_or_else(|_| "value".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "graphs can't be chosen by a {kind}: expected a number, a slice, a flat array of whole numbers, or a mask of bool"
        ))
    };
    if index.is_instance_of::<PyBool>() {
        return Err(refused());
    }
    let array = index.py().import("numpy")?.call_method1("asarray", (index,)).map_err(|_| refused())?;
    if let Ok(mask) = array.extract::<PyReadonlyArray1<'_, bool>>() {
        let mask = mask.as_array();
        if mask.len() != n {
            let got = mask.len();
            return Err(PyIndexError::new_err(format!("a mask of {got} for {n} graphs: expected one bool for each")));
        }
        return Ok((0..n).filter(|&row| mask[row]).collect());
    }
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let empty = array.len().is_ok_and(|len| len == 0);
    if !(kind == "i" || kind == "u" || empty) {
        return Err(refused());
    }
    let numbers = array.call_method1("astype", ("int64",))?;
    let numbers = numbers.extract::<PyReadonlyArray1<'_, i64>>().map_err(|_| refused())?;
    let unsigned = kind == "u";
    let place = |&asked: &i64| {
        if unsigned && asked < 0 {
            // It was too large for a signed number.
            Err(raised(Error::out_of_range(asked as usize, n)))
        } else {
            one(asked as isize)
        }
    };
    numbers.as_array().iter().map(place).collect()
}
