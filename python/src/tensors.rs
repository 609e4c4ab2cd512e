//! Tensors between tch and the Python package torch, memory and gradients shared.
//!
//! The only unsafe code of the package. Both sides are linked to one libtorch (`gfn_rs/__init__.py` refuses any other), so a handle of
//! one is a handle of the other. The interpreter is attached at each call, as the `Python` token says.
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

/// This thread with torch's state of a new one, until it is dropped: what the caller is inside of (autocast, `no_grad`, inference, modes,
/// hooks of saved tensors) is its own business, and would change or end what the library computes. What the library calls is inside of
/// it, too.
pub(crate) struct Clean(*mut std::ffi::c_void);

impl Clean {
    pub(crate) fn enter(_: Python<'_>) -> PyResult<Self> {
        // SAFETY: it takes nothing; what comes back is null, or what `gfn_state_leave` takes once, on this thread: a pointer isn't `Send`.
        let state = unsafe { gfn_state_enter() };
        if state.is_null() {
            return Err(PyRuntimeError::new_err("torch did not give a clean state of this thread"));
        }
        Ok(Self(state))
    }
}

impl Drop for Clean {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { gfn_state_leave(self.0) }
    }
}

/// The `torch.Tensor` of a tensor.
pub(crate) fn to_python<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the pointer is of a live tensor, and only read; what comes back is null with an error set, or a new reference.
    unsafe { Bound::from_owned_ptr_or_err(py, gfn_tensor_to_python(tensor.as_ptr().cast_mut())) }
}

/// A tensor that Python gets or gives as a `torch.Tensor`.
pub(crate) struct PyTensor(pub(crate) Tensor);

/// The tensor that Python gave, if it gave one.
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
    if is_whole(&tensor) {
        Ok(tensor)
    } else {
        Err(PyValueError::new_err(format!(
            "a torch.Tensor of shape {:?} has lost its memory, or never had any (its storage was resized, or it is a fake one): give one that is whole",
            tensor.size()
        )))
    }
}

/// Whether a tensor's memory is as long as its sizes say. Whoever has a tensor of torch's can resize its storage, and to read what isn't
/// there ends the process.
pub(crate) fn is_whole(tensor: &Tensor) -> bool {
    // SAFETY: the pointer is of a live tensor, and only read.
    unsafe { gfn_tensor_is_whole(tensor.as_ptr()) != 0 }
}

/// Whether two handles are of one tensor.
pub(crate) fn is_same(tensor: &Tensor, other: &Tensor) -> bool {
    // SAFETY: the pointers are of live tensors, and only read.
    unsafe { gfn_tensor_is_same(tensor.as_ptr(), other.as_ptr()) != 0 }
}

/// Adds the gradients of a sum to what it depends on, by torch's own call, which hands on what Python code raises in it: a hook, a function
/// of autograd. libtorch's C++ would keep no more of it than a text.
pub(crate) fn backward(sum: &Tensor) -> gfn::Result<()> {
    call_python("a backward pass", |py| to_python(py, sum)?.call_method0("backward").map(drop))
}
