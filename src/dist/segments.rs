//! Sums and log-sum-exps over the segments of a flat tensor; a segment is a graph's slots, or a trajectory's transitions.

use tch::{Device, Kind, Tensor};

/// The segment of each entry, `[total]`, from offsets `[segments + 1]`.
pub fn segment_ids(offsets: &[usize], device: Device) -> Tensor {
    let mut ids = Vec::with_capacity(offsets.last().copied().unwrap_or(0));
    for (segment, ends) in offsets.windows(2).enumerate() {
        ids.resize(ends[1], segment as i64);
    }
    Tensor::from_slice(&ids).to_device(device)
}

/// The sum of each segment, `[segments]`; an empty segment gives 0.
pub fn segment_sum(values: &Tensor, ids: &Tensor, segments: usize) -> Tensor {
    Tensor::zeros([segments as i64], (values.kind(), values.device())).index_add(0, ids, values)
}

/// The log of the sum of exponentials of each segment, `[segments]`; an empty segment gives 0.
///
/// `max` is each segment's largest value, `[segments]`, taken as a constant: it cancels.
pub fn segment_logsumexp(values: &Tensor, ids: &Tensor, max: &Tensor, empty: &Tensor) -> Tensor {
    let scaled = (values - max.index_select(0, ids)).exp();
    // An empty segment sums to the 1 that `empty` holds for it, so that no log of zero meets a gradient.
    empty.index_add(0, ids, &scaled).log() + max
}

/// The elements of a tensor of any shape, row by row, on the host and in double precision; without their gradient.
///
/// ```
/// use gfn::dist::to_host;
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

/// A flat tensor of a kind on a device, from numbers on the host.
///
/// ```
/// let tensor = gfn::dist::from_host(&[0.5, 2.0], tch::Kind::Float, tch::Device::Cpu);
/// assert_eq!((tensor.size(), tensor.kind()), (vec![2], tch::Kind::Float));
/// ```
pub fn from_host(values: &[f64], kind: Kind, device: Device) -> Tensor {
    match kind {
        Kind::Float => {
            let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            Tensor::from_slice(&values).to_device(device)
        }
        _ => Tensor::from_slice(values).to_kind(kind).to_device(device),
    }
}

/// Indices as a tensor of 64-bit integers, for `index_select` and `index_add`.
///
/// ```
/// let rows = gfn::dist::index_tensor(&[2, 0], tch::Device::Cpu);
/// let values = tch::Tensor::from_slice(&[1.0, 2.0, 3.0]).index_select(0, &rows);
/// assert_eq!(values, tch::Tensor::from_slice(&[3.0, 1.0]));
/// ```
pub fn index_tensor(values: &[usize], device: Device) -> Tensor {
    let values: Vec<i64> = values.iter().map(|&v| v as i64).collect();
    Tensor::from_slice(&values).to_device(device)
}
