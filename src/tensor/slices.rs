//! The elements of a host tensor as slices, for the optimiser, whose speed is limited by memory traffic.

#![allow(
    unsafe_code,
    reason = "libtorch has no fused optimiser step that tch binds; a loop over the raw numbers is several \
        times faster (docs/decisions.md)"
)]

use tch::{Device, Kind, TchError, Tensor, no_grad};

/// Calls `f` with the elements of a dense, contiguous f32 tensor on the host, and returns the result of `f`;
/// `None` for any other tensor.
pub(crate) fn read<R>(tensor: &Tensor, f: impl FnOnce(&[f32]) -> R) -> Option<R> {
    let (data, len) = elements(tensor)?;
    // SAFETY: `elements` has checked that `len` aligned f32 lie at `data`. `tensor` keeps the storage alive,
    // and `f` is given no tensor, so nothing on this thread writes to it meanwhile. Access through a clone of
    // the tensor on another thread is excluded by the contract of `Adam::step`, as it is for libtorch's own
    // in-place operations.
    Some(f(unsafe { std::slice::from_raw_parts(data, len) }))
}

/// Calls `f` with the elements of two tensors, which `f` may change, and returns the result of `f`. Both
/// tensors must be f32, dense, contiguous, on the host and of the same size, and must not overlap in memory;
/// otherwise `None` is returned.
pub(crate) fn write<R>(
    a: &mut Tensor,
    b: &mut Tensor,
    f: impl FnOnce(&mut [f32], &mut [f32]) -> R,
) -> Option<R> {
    let ((a_data, a_len), (b_data, b_len)) = (elements(a)?, elements(b)?);
    let apart = a_data.wrapping_add(a_len) <= b_data || b_data.wrapping_add(b_len) <= a_data;
    if a_len != b_len || !(apart || a_len == 0) {
        return None;
    }
    // SAFETY: `elements` has checked both pointers, as in `read`. The check above excludes that the two
    // ranges overlap, so no other slice refers to these elements.
    let (a, b) = unsafe {
        (std::slice::from_raw_parts_mut(a_data, a_len), std::slice::from_raw_parts_mut(b_data, b_len))
    };
    Some(f(a, b))
}

/// Tells autograd that a tensor was modified. An earlier computation that recorded the tensor's old value can
/// then no longer be differentiated. Autograd compares versions of a tensor, and every in-place operation
/// raises the version. The operation used here changes nothing else.
pub(crate) fn mark_modified(tensor: &Tensor) -> Result<(), TchError> {
    no_grad(|| tensor.shallow_clone().f_transpose_(0, 0).map(|_| ()))
}

/// Returns the address and the number of the elements of a dense, contiguous f32 tensor on the host.
fn elements(tensor: &Tensor) -> Option<(*mut f32, usize)> {
    // The order of the checks matters: an undefined or sparse tensor has no dtype or layout that can be
    // requested.
    let plain = tensor.defined()
        && !tensor.is_sparse()
        && !tensor.is_mkldnn()
        && tensor.device() == Device::Cpu
        && tensor.kind() == Kind::Float
        && tensor.is_contiguous();
    if !plain {
        return None;
    }
    let len = tensor.numel();
    if len == 0 {
        // libtorch returns a null pointer for a tensor without elements, but the pointer of a slice can't be
        // null.
        return Some((std::ptr::NonNull::dangling().as_ptr(), 0));
    }
    let data = tensor.data_ptr().cast::<f32>();
    (!data.is_null() && data.is_aligned()).then_some((data, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_the_numbers_of_the_tensor() {
        let mut a = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0]).view([2, 2]);
        let mut b = a.zeros_like();
        assert_eq!(read(&a, <[f32]>::to_vec), Some(vec![1.0, 2.0, 3.0, 4.0]));
        let done = write(&mut a, &mut b, |a, b| {
            b.copy_from_slice(a);
            a[3] = 9.0;
        });
        assert_eq!(done, Some(()));
        assert_eq!(a.flatten(0, 1), Tensor::from_slice(&[1f32, 2.0, 3.0, 9.0]));
        assert_eq!(b.flatten(0, 1), Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0]));
        let empty = Tensor::zeros([0, 3], (Kind::Float, Device::Cpu));
        assert_eq!(read(&empty, <[f32]>::len), Some(0));
    }

    #[test]
    fn other_tensors_are_refused() {
        let a = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0]).view([2, 2]);
        for other in [Tensor::new(), a.tr(), a.to_kind(Kind::Double), a.to_sparse_sparse_dim(2)] {
            assert!(read(&other, |_| ()).is_none(), "{other:?}");
        }
        let mut whole = a.shallow_clone();
        let mut part = a.get(0);
        assert!(write(&mut whole, &mut part, |_, _| ()).is_none());
        let mut same = a.shallow_clone();
        assert!(write(&mut whole, &mut same, |_, _| ()).is_none());
    }
}
