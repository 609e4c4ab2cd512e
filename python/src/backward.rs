//! Backward passes by torch's own call, which hands on what Python code raises in one: a hook, a function of autograd. libtorch's C++
//! would keep no more of it than a text.

use gfn::Result;
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::python_error;
use crate::tensors;

/// Adds the gradients of a sum to what it depends on.
pub(crate) fn backward(sum: &Tensor) -> Result<()> {
    let done = Python::attach(|py| tensors::to_python(py, sum)?.call_method0("backward").map(drop));
    done.map_err(python_error("a backward pass"))
}
