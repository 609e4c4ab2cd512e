// Tensors between tch and the Python package torch: the same libtorch, so that a handle is passed on and nothing is copied.
#include <Python.h>
#include <torch/csrc/autograd/python_variable.h>

extern "C" {
// A new reference to a torch.Tensor that shares memory and autograd history; null with a Python error.
PyObject* gfn_tensor_to_python(at::Tensor* tensor) {
  try {
    return THPVariable_Wrap(*tensor);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

// A new handle to the tensor of a torch.Tensor; null for any other object.
at::Tensor* gfn_tensor_from_python(PyObject* object) {
  try {
    return THPVariable_Check(object) ? new at::Tensor(THPVariable_Unpack(object)) : nullptr;
  } catch (...) {
    return nullptr;
  }
}
}
