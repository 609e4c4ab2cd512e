//! Tensors between tch and the Python package torch, memory and gradients shared.
//!
//! The only unsafe code of the package. Both sides are linked to one libtorch (`gfn_rs/__init__.py` refuses any other), so a handle of
//! one is a handle of the other. The interpreter is attached at each call, as the `Python` token says.
#![allow(unsafe_code)]

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tch::Tensor;
use torch_sys::C_tensor;

unsafe extern "C" {
    fn gfn_tensor_to_python(tensor: *mut C_tensor) -> *mut pyo3::ffi::PyObject;
    fn gfn_tensor_from_python(object: *mut pyo3::ffi::PyObject) -> *mut C_tensor;
    fn gfn_tensor_is_whole(tensor: *const C_tensor) -> std::ffi::c_int;
}

/// The `torch.Tensor` of a tensor.
pub(crate) fn to_python<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the pointer is of a live tensor, and only read; what comes back is null with an error set, or a new reference.
    unsafe { Bound::from_owned_ptr_or_err(py, gfn_tensor_to_python(tensor.as_ptr().cast_mut())) }
}

/// The tensor of a `torch.Tensor`.
pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    // SAFETY: the object is alive while it is borrowed; what comes back is null, or a handle that nobody else owns.
    let handle = unsafe { gfn_tensor_from_python(object.as_ptr()) };
    if handle.is_null() {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("expected a torch.Tensor, got {kind}")));
    }
    // SAFETY: as above; from here on the tensor owns it.
    let tensor = unsafe { Tensor::from_ptr(handle) };
    match is_whole(&tensor) {
        true => Ok(tensor),
        false => Err(PyValueError::new_err(format!(
            "a torch.Tensor of shape {:?} has lost its memory: its storage was resized, give one that is whole",
            tensor.size()
        ))),
    }
}

/// Whether a tensor's memory is as long as its sizes say. Whoever has a tensor of torch's can resize its storage, and to read what isn't
/// there ends the process.
pub(crate) fn is_whole(tensor: &Tensor) -> bool {
    // SAFETY: the pointer is of a live tensor, and only read.
    unsafe { gfn_tensor_is_whole(tensor.as_ptr()) != 0 }
}

/// Sets whether this thread keeps gradients, and says whether it did.
pub(crate) fn keep_gradients(keep: bool) -> bool {
    // SAFETY: it takes and gives a number, and touches a flag of this thread.
    unsafe { torch_sys::at_grad_set_enabled(i32::from(keep)) != 0 }
}
