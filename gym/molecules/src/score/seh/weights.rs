//! Arrays of floating-point numbers from the files that they are published in.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use gfn::{Error, Result};
use serde_pickle::{DeOptions, Value};
use tch::Tensor;

/// The first bytes of a gzipped file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Bytes of a pickle that are read at most.
const MOST: u64 = 64 << 20;

/// The arrays of an `.npz` in the order of their names, or of a gzipped pickle of a list of them in its order.
pub(super) fn read_arrays(path: &Path) -> Result<Vec<Tensor>> {
    let bytes = std::fs::read(path).map_err(|source| Error::io(path, source))?;
    let wrong = |problem: String| Error::file(path, problem, "give an `.npz`, or a gzipped pickle, of 32-bit arrays");
    if !bytes.starts_with(&GZIP) {
        let mut named = Tensor::read_npz(path).map_err(|error| wrong(error.to_string()))?;
        named.sort_by(|a, b| a.0.cmp(&b.0));
        return Ok(named.into_iter().map(|(_, array)| array).collect());
    }
    let mut pickle = Vec::new();
    GzDecoder::new(bytes.as_slice()).take(MOST).read_to_end(&mut pickle).map_err(|error| wrong(error.to_string()))?;
    // No class is made of what the file names: an array is what it would be made from.
    let options = DeOptions::new().replace_unresolved_globals();
    match serde_pickle::value_from_slice(&pickle, options).map_err(|error| wrong(error.to_string()))? {
        Value::List(values) => {
            let arrays: Option<Vec<Tensor>> = values.iter().map(array).collect();
            arrays.ok_or_else(|| wrong("a list of other things than 32-bit arrays".to_owned()))
        }
        _ => Err(wrong("a pickle that is no list".to_owned())),
    }
}

/// An array from numpy's state: version, shape, type, order, bytes.
fn array(value: &Value) -> Option<Tensor> {
    let Value::Tuple(state) = value else { return None };
    let [_, Value::Tuple(shape), _, Value::Bool(false), Value::Bytes(bytes)] = state.as_slice() else { return None };
    let side = |value: &Value| if let Value::I64(side) = value { Some(*side) } else { None };
    let shape: Vec<i64> = shape.iter().map(side).collect::<Option<_>>()?;
    let numbers: Vec<f32> = bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
    let n = shape.iter().try_fold(4i64, |n, &side| n.checked_mul(side))?;
    (n == bytes.len() as i64).then(|| Tensor::from_slice(&numbers).view(shape.as_slice()))
}
