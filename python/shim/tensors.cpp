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

// Whether a tensor's memory is as long as its sizes say: that of another can be taken from outside, and reading it ends the process.
int gfn_tensor_is_whole(const at::Tensor* tensor) {
  try {
    if (!tensor->defined() || tensor->layout() != at::kStrided || tensor->numel() == 0 || !tensor->has_storage()) {
      return 1;
    }
    int64_t last = tensor->storage_offset();
    for (int64_t d = 0; d < tensor->dim(); ++d) {
      last += (tensor->size(d) - 1) * tensor->stride(d);
    }
    return static_cast<size_t>(last + 1) * tensor->itemsize() <= tensor->storage().nbytes();
  } catch (...) {
    return 0;
  }
}
}
