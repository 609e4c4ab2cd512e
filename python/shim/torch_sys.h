// Defines functions that torch 2.14 removed, by the functions that replaced them. torch-sys 0.26 is written
// for torch 2.13, so with newer versions this header is included before each of its files (build_backend.py).
// The library calls none of these functions.
#pragma once
#include <torch/torch.h>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 14
namespace torch {

inline Tensor cholesky(const Tensor& self, bool upper) {
  return at::linalg_cholesky(self, upper);
}

inline Tensor& cholesky_out(Tensor& out, const Tensor& self, bool upper) {
  return at::linalg_cholesky_out(out, self, upper);
}

inline std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some) {
  return at::linalg_qr(self, some ? "reduced" : "complete");
}

inline std::tuple<Tensor&, Tensor&> qr_out(Tensor& q, Tensor& r, const Tensor& self, bool some) {
  return at::linalg_qr_out(q, r, self, some ? "reduced" : "complete");
}

}  // namespace torch
#endif
