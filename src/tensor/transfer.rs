//! Copies between the host and a device.

use tch::{Device, Kind, Tensor, kind::Element};

/// Copies the elements of a tensor of any shape to the host, row by row, in double precision.
///
/// ```
/// use gfn::tensor::to_host;
/// assert_eq!(to_host(&tch::Tensor::from_slice(&[0.5f32, 2.0]).view([1, 2])), [0.5, 2.0]);
/// ```
pub fn to_host(values: &Tensor) -> Vec<f64> {
    let values = values.detach().to_device(Device::Cpu).contiguous().view(-1);
    let n = values.numel();
    match values.kind() {
        Kind::Float => {
            let mut out = vec![0f32; n];
            values.copy_data(&mut out, n);
            out.into_iter().map(f64::from).collect()
        }
        _ => {
            let mut out = vec![0f64; n];
            values.to_kind(Kind::Double).copy_data(&mut out, n);
            out
        }
    }
}

/// Creates a flat tensor with this dtype and device from numbers on the host.
///
/// ```
/// let tensor = gfn::tensor::from_host(&[0.5, 2.0], tch::Kind::Float, tch::Device::Cpu);
/// assert_eq!((tensor.size(), tensor.kind()), (vec![2], tch::Kind::Float));
/// ```
pub fn from_host(values: &[f64], kind: Kind, device: Device) -> Tensor {
    match kind {
        Kind::Float => {
            let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            upload(&values, device)
        }
        _ => to_device(&Tensor::from_slice(values).to_kind(kind), device),
    }
}

/// Creates a flat tensor on a device from values on the host. Like [`to_device`], the function doesn't wait
/// for a CUDA device.
///
/// ```
/// let rows = gfn::tensor::upload(&[2i64, 0], tch::Device::Cpu);
/// assert_eq!((rows.size(), rows.kind()), (vec![2], tch::Kind::Int64));
/// ```
pub fn upload<T: Element>(values: &[T], device: Device) -> Tensor {
    to_device(&Tensor::from_slice(values), device)
}

/// Copies a tensor to a device, or returns the tensor itself if it is there already.
///
/// A copy from the host to a CUDA device goes through pinned memory (which the device reads by itself), so
/// that it is queued behind the device's earlier work. [`Tensor::to_device`] would wait until this work is
/// done.
///
/// ```
/// let tensor = tch::Tensor::from_slice(&[0.5, 2.0]);
/// assert_eq!(gfn::tensor::to_device(&tensor, tch::Device::Cpu), tensor);
/// ```
pub fn to_device(tensor: &Tensor, device: Device) -> Tensor {
    match (tensor.device(), device) {
        // A pinned copy would have no gradient.
        (Device::Cpu, Device::Cuda(_)) if !tensor.requires_grad() => {
            tensor.internal_pin_memory(device).to_device_(device, tensor.kind(), true, false)
        }
        _ => tensor.to_device(device),
    }
}

/// Creates a flat tensor on a device from each list of each row. A device receives all lists in one copy.
pub(crate) fn upload_all<const K: usize>(rows: &[[Vec<i64>; K]], device: Device) -> Vec<[Tensor; K]> {
    match device {
        Device::Cpu => rows.iter().map(|row| row.each_ref().map(|list| Tensor::from_slice(list))).collect(),
        _ => upload_packed(rows, device),
    }
}

/// Copies all lists to a device as one buffer. The results are parts of the buffer.
fn upload_packed<const K: usize>(rows: &[[Vec<i64>; K]], device: Device) -> Vec<[Tensor; K]> {
    let buffer = upload(&rows.iter().flatten().flatten().copied().collect::<Vec<_>>(), device);
    let mut end = 0;
    let mut part = |list: &Vec<i64>| {
        let start = end;
        end += list.len() as i64;
        buffer.narrow(0, start, list.len() as i64)
    };
    rows.iter().map(|row| row.each_ref().map(&mut part)).collect()
}

/// Returns the tensors without gradients on the host. Those on a device are copied together, so that the host
/// waits only once for the device. Their elements must be floating-point numbers.
pub(crate) fn fetch_all(tensors: &[&Tensor]) -> Vec<Tensor> {
    let is_away = |tensor: &&&Tensor| tensor.device() != Device::Cpu;
    let mut fetched = fetch_packed(tensors.iter().copied().filter(|tensor| is_away(&tensor))).into_iter();
    let one = |tensor: &&Tensor| if is_away(&tensor) { fetched.next() } else { Some(tensor.detach()) };
    tensors.iter().filter_map(one).collect()
}

/// Copies tensors to the host as one buffer of f64 numbers.
fn fetch_packed<'a>(tensors: impl Iterator<Item = &'a Tensor> + Clone) -> Vec<Tensor> {
    let flat: Vec<Tensor> =
        tensors.clone().map(|tensor| tensor.detach().to_kind(Kind::Double).reshape([-1])).collect();
    if flat.is_empty() {
        return Vec::new();
    }
    let lengths: Vec<i64> = flat.iter().map(|part| part.numel() as i64).collect();
    let parts = Tensor::cat(&flat, 0).to_device(Device::Cpu).split_with_sizes(lengths, 0);
    parts.iter().zip(tensors).map(|(part, tensor)| part.to_kind(tensor.kind()).view_as(tensor)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_lists_equal_separate_ones() {
        let rows = [[vec![3, 1, 2], vec![]], [vec![7], vec![1, 5]]];
        let separate = upload_all(&rows, Device::Cpu);
        let packed = upload_packed(&rows, Device::Cpu);
        assert_eq!(packed, separate);
        let mut lists = packed.iter().flatten();
        assert!(lists.all(|list| list.kind() == Kind::Int64 && list.is_contiguous() && list.dim() == 1));
        let buffer = packed[0][0].data_ptr() as usize;
        assert_eq!(packed[1][1].data_ptr() as usize, buffer + 4 * 8, "one buffer");
        assert_ne!(upload_packed(&[[vec![3, 1], vec![2]], rows[1].clone()], Device::Cpu), separate);
        assert!(upload_packed::<2>(&[], Device::Cpu).is_empty());
    }

    #[test]
    fn tensors_fetched_together_keep_values_kinds_and_shapes() {
        let numbers = Tensor::from_slice(&[0.1f32, f32::NAN, f32::MAX, -0.0]);
        let tensors = [numbers.view([2, 2]).tr(), numbers.to_kind(Kind::Double), Tensor::from(1.5)];
        let leaf = Tensor::from_slice(&[2.0]).set_requires_grad(true);
        let all: Vec<&Tensor> = tensors.iter().chain([&leaf]).collect();
        for (got, expected) in fetch_packed(all.iter().copied()).iter().zip(&all) {
            assert_eq!((got.size(), got.kind()), (expected.size(), expected.kind()));
            let bits = |tensor: &Tensor| to_host(tensor).into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert!(bits(got) == bits(expected) && !got.requires_grad());
        }
        let unchanged = fetch_all(&all);
        assert!(unchanged.iter().zip(&all).all(|(a, b)| a.data_ptr() == b.data_ptr() && !a.requires_grad()));
        assert!(fetch_packed(std::iter::empty()).is_empty());
    }
}
