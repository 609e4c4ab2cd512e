//! The exchange of tensors between tch and the Python package torch, with shared memory and gradients.
//!
//! This module has the only unsafe code of the package. tch and the package torch are linked to the same
//! libtorch (`gfn_rs/__init__.py` refuses to load another one), so a tensor handle of one is valid for the
//! other. The interpreter is attached at each call, as the `Python` token proves.
#![allow(unsafe_code)]

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use tch::Tensor;
use torch_sys::C_tensor;

use crate::errors::call_python;

unsafe extern "C" {
    fn gfn_tensor_to_python(tensor: *mut C_tensor) -> *mut pyo3::ffi::PyObject;
    fn gfn_tensor_from_python(object: *mut pyo3::ffi::PyObject) -> *mut C_tensor;
    fn gfn_tensor_is_whole(tensor: *const C_tensor) -> std::ffi::c_int;
    fn gfn_tensor_is_same(tensor: *const C_tensor, other: *const C_tensor) -> std::ffi::c_int;
    fn gfn_state_enter() -> *mut std::ffi::c_void;
    fn gfn_state_leave(state: *mut std::ffi::c_void);
}

/// A guard that resets this thread's torch state to the state of a new thread, until the guard is dropped.
/// The caller's state (autocast, `no_grad`, inference mode, dispatch modes, hooks of saved tensors) must not
/// affect the library's computations. Python code that the library calls gets the reset state, too.
pub(crate) struct Clean(*mut std::ffi::c_void);

impl Clean {
    pub(crate) fn enter(_: Python<'_>) -> PyResult<Self> {
        // SAFETY: the function takes no arguments. The result is null, or a pointer that is valid for one
        // call of `gfn_state_leave` on this thread. The pointer can't move to another thread, because it
        // isn't `Send`.
        let state = unsafe { gfn_state_enter() };
        if state.is_null() {
            return Err(PyRuntimeError::new_err(
                "torch can't reset the state of this thread: this is an error of torch or of the library; \
                 please report it",
            ));
        }
        Ok(Self(state))
    }
}

impl Drop for Clean {
    fn drop(&mut self) {
        // SAFETY: `gfn_state_enter` returned the pointer on this thread, and the pointer is used once.
        unsafe { gfn_state_leave(self.0) }
    }
}

/// Returns a `torch.Tensor` that shares memory and gradients with `tensor`.
pub(crate) fn to_python<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the pointer belongs to a live tensor, and is only read. The result is null with an error set,
    // or a new reference.
    unsafe { Bound::from_owned_ptr_or_err(py, gfn_tensor_to_python(tensor.as_ptr().cast_mut())) }
}

/// A tensor that is passed to or from Python as a `torch.Tensor`.
pub(crate) struct PyTensor(pub(crate) Tensor);

/// Returns the tensor of an optional argument, if Python passed it.
pub(crate) fn optional(tensor: &Option<PyTensor>) -> Option<&Tensor> {
    tensor.as_ref().map(|tensor| &tensor.0)
}

impl<'py> FromPyObject<'_, 'py> for PyTensor {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        from_python(&object).map(Self)
    }
}

impl<'py> IntoPyObject<'py> for PyTensor {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0)
    }
}

/// Returns a tensor that shares memory and gradients with the `torch.Tensor` `object`.
pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    // SAFETY: the object is alive while it is borrowed; the result is null, or a handle without another
    // owner.
    let handle = unsafe { gfn_tensor_from_python(object.as_ptr()) };
    if handle.is_null() {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("expected a torch.Tensor, got {kind}")));
    }
    // SAFETY: the handle isn't null and has no other owner. The new tensor becomes its owner.
    let tensor = unsafe { Tensor::from_ptr(handle) };
    if is_whole(&tensor) {
        Ok(tensor)
    } else {
        Err(PyValueError::new_err(format!(
            "a torch.Tensor of shape {:?} has no memory, because its storage was resized, or because it is a \
             fake tensor: give a tensor with memory",
            tensor.size()
        )))
    }
}

/// Returns `true` if a tensor's memory is large enough for its sizes. Python code can resize the storage of a
/// tensor, and a read beyond the storage would end the process.
pub(crate) fn is_whole(tensor: &Tensor) -> bool {
    // SAFETY: the pointer belongs to a live tensor, and is only read.
    unsafe { gfn_tensor_is_whole(tensor.as_ptr()) != 0 }
}

/// Returns `true` if two handles refer to the same tensor.
pub(crate) fn is_same(tensor: &Tensor, other: &Tensor) -> bool {
    // SAFETY: the pointers belong to live tensors, and are only read.
    unsafe { gfn_tensor_is_same(tensor.as_ptr(), other.as_ptr()) != 0 }
}

/// Runs the backward pass of a scalar, by the method of `torch.Tensor` in Python. If Python code in the
/// backward pass raises an exception (in a hook or an autograd function), this method keeps the exception.
/// The C++ function of libtorch would keep only the exception's text.
pub(crate) fn backward(sum: &Tensor) -> gfn::Result<()> {
    call_python("a backward pass", |py| to_python(py, sum)?.call_method0("backward").map(drop))
}
