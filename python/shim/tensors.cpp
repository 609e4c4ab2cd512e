// Tensors between tch and the Python package torch: the same libtorch, so that a handle is passed on and nothing is copied.
#include <Python.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/python_variable.h>
#include <optional>
#include <thread>

namespace {
// What a thread has of torch's own (autocast, modes, hooks, whether gradients are kept), as a new thread has it.
const at::ThreadLocalState& of_a_new_thread() {
  static const auto* state = [] {
    std::optional<at::ThreadLocalState> fresh;
    std::thread([&] { fresh.emplace(); }).join();
    return new at::ThreadLocalState(*fresh);
  }();
  return *state;
}

// A thread in that state, until this is gone. Casts that an outer autocast keeps are those of other weights: it has none inside, and
// begins anew behind. Profilers go on.
struct Clean {
  std::shared_ptr<c10::ThreadLocalDebugInfo> watched = c10::ThreadLocalDebugInfo::current();
  at::RecordFunctionTLS recorded = at::get_record_function_tls_();
  at::ThreadLocalStateGuard guard{of_a_new_thread()};
  int regions = at::autocast::increment_nesting() - 1;

  Clean() {
    c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(watched);
    at::set_record_function_tls_(recorded);
    while (at::autocast::decrement_nesting() > 0) {
    }
    at::autocast::clear_cache();
  }

  ~Clean() {
    at::autocast::clear_cache();
    for (int i = 0; i < regions; ++i) {
      at::autocast::increment_nesting();
    }
  }
};
}  // namespace

extern "C" {
// Gives this thread torch's state of a new one; null where that fails.
Clean* gfn_state_enter() {
  try {
    return new Clean;
  } catch (...) {
    return nullptr;
  }
}

// Gives this thread back what it had.
void gfn_state_leave(Clean* clean) {
  delete clean;
}

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

// Whether two handles are of one tensor.
int gfn_tensor_is_same(const at::Tensor* tensor, const at::Tensor* other) {
  return tensor->is_same(*other);
}

// Whether a tensor's memory is as long as its sizes say: that of another can be taken from outside, and reading it ends the process. One
// whose operations are Python's (a fake one) has none.
int gfn_tensor_is_whole(const at::Tensor* tensor) {
  try {
    if (tensor->defined() && tensor->key_set().has(c10::DispatchKey::Python)) {
      return 0;
    }
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
