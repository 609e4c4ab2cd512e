//! Reading of arrays of floating-point numbers from published files.

use std::path::Path;

use gfn::{Error, Result};
use serde_pickle::Value;
use tch::Tensor;

use crate::score::pickle::{is_gzipped, unpickled};

/// Reads the arrays of a file. The file is either an `.npz` file, whose arrays are returned in the order of
/// their names, or a gzipped pickled list, whose arrays are returned in the order of the list.
pub(super) fn read_arrays(path: &Path) -> Result<Vec<Tensor>> {
    let bytes = std::fs::read(path).map_err(|source| Error::io(path, source))?;
    let wrong =
        |problem: String| Error::file(path, problem, "give an `.npz` or a gzipped pickle with 32-bit arrays");
    if !is_gzipped(&bytes) {
        let mut named = Tensor::read_npz(path).map_err(|error| wrong(error.to_string()))?;
        named.sort_by(|a, b| a.0.cmp(&b.0));
        return Ok(named.into_iter().map(|(_, array)| array).collect());
    }
    match unpickled(&bytes).map_err(wrong)? {
        Value::List(values) => {
            let arrays: Option<Vec<Tensor>> = values.iter().map(array).collect();
            arrays.ok_or_else(|| wrong("the pickle has entries that aren't 32-bit arrays".to_owned()))
        }
        _ => Err(wrong("the pickle isn't a list".to_owned())),
    }
}

/// Converts the pickled state of a numpy array, which consists of version, shape, type, order and bytes.
/// Returns `None` unless it is an array of 32-bit floats in C order.
fn array(value: &Value) -> Option<Tensor> {
    let Value::Tuple(state) = value else { return None };
    let [_, Value::Tuple(shape), _, Value::Bool(false), Value::Bytes(bytes)] = state.as_slice() else {
        return None;
    };
    let side = |value: &Value| if let Value::I64(side) = value { Some(*side) } else { None };
    let shape: Vec<i64> = shape.iter().map(side).collect::<Option<_>>()?;
    let numbers: Vec<f32> = bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
    let n = shape.iter().try_fold(4i64, |n, &side| n.checked_mul(side))?;
    (n == bytes.len() as i64).then(|| Tensor::from_slice(&numbers).view(shape.as_slice()))
}
