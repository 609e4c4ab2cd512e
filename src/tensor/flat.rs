//! Tensors that lie in one block of memory, so that one operation on the block reads or changes all of them.
//!
//! On a device each operation costs a launch, which takes longer than the arithmetic on a small tensor.

use tch::{TchError, Tensor, no_grad};

/// The number of elements to which the start of each tensor in a block is aligned. Sixteen numbers of 4 bytes
/// are a line of the cache, and libtorch's own allocations have at least this alignment.
const ALIGNMENT: i64 = 16;

/// Returns a flat tensor over the elements of `tensors`, and zeros between them. Tensors that don't lie in
/// one block yet are moved into a new block. Their values and all handles to them stay valid, but they no
/// longer share memory with other tensors. A single tensor is returned as it is.
///
/// The tensors must be dense, with the same kind and device.
pub(crate) fn merge(tensors: &mut [Tensor]) -> Result<Tensor, TchError> {
    if let [single] = tensors {
        return Ok(single.shallow_clone());
    }
    match view(tensors) {
        Some(block) => Ok(block),
        None => no_grad(|| join(tensors)),
    }
}

/// Returns a flat tensor over the elements of `tensors` if they lie in one block, as [`merge`] arranges
/// them; otherwise `None`. The function compares addresses, so it doesn't wait for a device.
pub(crate) fn view(tensors: &[Tensor]) -> Option<Tensor> {
    let first = tensors.first().filter(|first| is_plain(first))?;
    let kind = first.kind();
    let start = first.data_ptr() as usize;
    let (offsets, length) = offsets(tensors);
    for (tensor, offset) in tensors.iter().zip(offsets) {
        let address = start + offset as usize * kind.elt_size_in_bytes();
        if !is_plain(tensor) || tensor.kind() != kind || tensor.data_ptr() as usize != address {
            return None;
        }
    }
    // The operation returns an error if the elements don't lie in the storage of the first tensor, so tensors
    // that follow each other in memory by chance aren't taken for a block.
    first.detach().f_as_strided([length], [1], None).ok()
}

/// Moves tensors into a new block, and returns the block.
fn join(tensors: &mut [Tensor]) -> Result<Tensor, TchError> {
    let (offsets, _) = offsets(tensors);
    let Some(first) = tensors.first() else { return Ok(Tensor::new()) };
    let gap = Tensor::f_zeros([ALIGNMENT], (first.kind(), first.device()))?;
    let mut parts = Vec::with_capacity(2 * tensors.len());
    let mut end = 0;
    for (tensor, &offset) in tensors.iter().zip(&offsets) {
        parts.push(gap.f_narrow(0, 0, offset - end)?);
        parts.push(tensor.detach().f_reshape([-1])?);
        end = offset + tensor.numel() as i64;
    }
    let block = Tensor::f_cat(&parts, 0)?;
    for (tensor, offset) in tensors.iter_mut().zip(offsets) {
        let size = tensor.size();
        let mut strides = vec![1; size.len()];
        for i in (1..size.len()).rev() {
            strides[i - 1] = strides[i] * size[i];
        }
        let _ = tensor.f_set_source_tensor_storage_offset_(&block, offset, size, strides)?;
    }
    Ok(block)
}

/// Returns the index of each tensor's first element in a block, and the number of elements of the block.
fn offsets(tensors: &[Tensor]) -> (Vec<i64>, i64) {
    let mut offsets = Vec::with_capacity(tensors.len());
    let mut end = 0i64;
    for tensor in tensors {
        let offset = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        offsets.push(offset);
        end = offset + tensor.numel() as i64;
    }
    (offsets, end)
}

/// Returns `true` for a dense, contiguous tensor with at least one element.
fn is_plain(tensor: &Tensor) -> bool {
    tensor.defined()
        && !tensor.is_sparse()
        && !tensor.is_mkldnn()
        && tensor.is_contiguous()
        && tensor.numel() > 0
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;

    fn tensors() -> Vec<Tensor> {
        let numbers = |n: i64| Tensor::arange(n, (Kind::Double, Device::Cpu)) + n;
        vec![numbers(6).view([3, 2]).tr(), numbers(1).view([] as [i64; 0]), numbers(20).view([2, 5, 2])]
    }

    #[test]
    fn values_and_handles_survive_the_move_into_a_block() {
        let mut moved = tensors();
        let handles: Vec<Tensor> = moved.iter().map(Tensor::shallow_clone).collect();
        let leaf = moved[2].shallow_clone().set_requires_grad(true);
        assert!(view(&moved).is_none());
        let mut block = merge(&mut moved).unwrap();
        assert_eq!((block.size(), block.sum(Kind::Double).double_value(&[])), (vec![52], 51.0 + 1.0 + 590.0));
        for (handle, expected) in handles.iter().zip(tensors()) {
            assert!(handle.is_contiguous());
            assert_eq!((handle.size(), handle.detach()), (expected.size(), expected));
        }
        assert_eq!(merge(&mut moved).unwrap().data_ptr(), block.data_ptr(), "the second call moves nothing");
        let _ = block.fill_(2.0);
        assert_eq!(handles[2].sum(Kind::Double).double_value(&[]), 40.0);
        leaf.square().sum(Kind::Double).backward();
        assert_eq!(leaf.grad(), Tensor::full([2, 5, 2], 4.0, (Kind::Double, Device::Cpu)));
    }

    #[test]
    fn other_tensors_are_no_block() {
        let mut all = tensors();
        let _ = merge(&mut all).unwrap();
        assert!(view(&all).is_some() && view(&all[1..]).is_some());
        let clone = |i: usize| all[i].shallow_clone();
        assert!(view(&[clone(1), clone(0)]).is_none(), "another order");
        assert!(view(&[clone(0), clone(2)]).is_none(), "a gap");
        assert!(view(&[clone(0), Tensor::new()]).is_none() && view(&[]).is_none());
        assert!(view(&[all[2].to_sparse_sparse_dim(3), clone(1)]).is_none());
        // Two tensors of one storage lie in one block, but a tensor that only begins where the block would go
        // on is in another storage.
        let beyond = Tensor::zeros([16], (Kind::Double, Device::Cpu));
        assert!(beyond.f_as_strided([40], [1], None).is_err());
    }
}
