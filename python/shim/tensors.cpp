// Passes tensors between tch and the Python package torch. Both use the same libtorch, so tensor handles are
// passed without a copy.
#include <Python.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/python_variable.h>
#include <optional>
#include <thread>

namespace {
// Returns the torch state of a new thread: autocast, modes, hooks, and the flag for gradients.
const at::ThreadLocalState& of_a_new_thread() {
  static const auto* state = [] {
    std::optional<at::ThreadLocalState> fresh;
    std::thread([&] { fresh.emplace(); }).join();
    return new at::ThreadLocalState(*fresh);
  }();
  return *state;
}

// A guard that gives this thread the torch state of a new thread, until the guard is destroyed. The cache of
// an outer autocast region has casts of older weights, so it is cleared at the beginning and at the end.
// Profilers stay active.
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
// Gives this thread the torch state of a new thread. Returns null if this fails.
Clean* gfn_state_enter() {
  try {
    return new Clean;
  } catch (...) {
    return nullptr;
  }
}

// Restores the torch state that this thread had before `gfn_state_enter`.
void gfn_state_leave(Clean* clean) {
  delete clean;
}

// Returns a new reference to a torch.Tensor that shares memory and autograd history with `tensor`, or null
// with a Python error.
PyObject* gfn_tensor_to_python(at::Tensor* tensor) {
  try {
    return THPVariable_Wrap(*tensor);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

// Returns a new handle to the tensor of a torch.Tensor, or null for any other object.
at::Tensor* gfn_tensor_from_python(PyObject* object) {
  try {
    return THPVariable_Check(object) ? new at::Tensor(THPVariable_Unpack(object)) : nullptr;
  } catch (...) {
    return nullptr;
  }
}

// Returns 1 if both handles refer to the same tensor, otherwise 0.
int gfn_tensor_is_same(const at::Tensor* tensor, const at::Tensor* other) {
  return tensor->is_same(*other);
}

// Returns 1 if a tensor's memory is large enough for its sizes, otherwise 0. Other code can shrink the memory
// of a tensor, and a read beyond it ends the process. A tensor whose operations are in Python (a fake tensor)
// has no memory, so the result is 0.
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
