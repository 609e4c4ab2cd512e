//! Sums and log-sum-exps over the segments of a flat tensor. A segment is a range of entries, for example the
//! slots of one graph or the transitions of one trajectory.

use tch::{Device, Tensor};

use super::{from_host, to_host, upload};

/// Returns the index of the segment of each entry, `[total]`. `offsets`, `[segments + 1]`, holds the index of
/// each segment's first entry, followed by the number of entries.
pub fn segment_ids(offsets: &[usize], device: Device) -> Tensor {
    let mut ids = Vec::with_capacity(offsets.last().copied().unwrap_or(0));
    for (segment, ends) in offsets.windows(2).enumerate() {
        ids.resize(ends[1], segment as i64);
    }
    upload(&ids, device)
}

/// Returns the sum of each segment, `[segments]`; 0 for an empty segment. `ids` holds the segment of each
/// entry.
pub fn segment_sum(values: &Tensor, ids: &Tensor, segments: usize) -> Tensor {
    Tensor::zeros([segments as i64], (values.kind(), values.device())).index_add(0, ids, values)
}

/// Returns the log of the sum of exponentials of each segment, `[segments]`; 0 for an empty segment.
///
/// `max`, `[segments]`, is the largest value of each segment. The largest value is subtracted before the
/// exponential and added again, so that no exponential overflows. `empty`, `[segments]`, is 1 for an empty
/// segment and 0 for other segments.
pub fn segment_logsumexp(values: &Tensor, ids: &Tensor, max: &Tensor, empty: &Tensor) -> Tensor {
    let scaled = (values - max.index_select(0, ids)).exp();
    // The sum of an empty segment is set to 1, because the gradient of the log of zero isn't finite.
    empty.index_add(0, ids, &scaled).log() + max
}

/// Returns the largest value of each segment, `[segments]`, on the device of the values and without gradient.
/// The result is 0 for a segment that is empty or whose largest value isn't finite.
pub(crate) fn segment_max(values: &Tensor, offsets: &[usize]) -> Tensor {
    match values.device() {
        Device::Cpu => segment_max_on_host(values, offsets),
        _ => segment_max_on_device(values, offsets),
    }
}

fn segment_max_on_host(values: &Tensor, offsets: &[usize]) -> Tensor {
    let host = to_host(values);
    let largest = |ends: &[usize]| host[ends[0]..ends[1]].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let max = offsets.windows(2).map(largest).map(|max| if max.is_finite() { max } else { 0.0 });
    from_host(&max.collect::<Vec<_>>(), values.kind(), values.device())
}

/// Computes [`segment_max`] on the device of the values, because a copy to the host would wait for the
/// device.
fn segment_max_on_device(values: &Tensor, offsets: &[usize]) -> Tensor {
    let lengths: Vec<i64> = offsets.windows(2).map(|ends| (ends[1] - ends[0]) as i64).collect();
    let lengths = upload(&lengths, values.device());
    let none = None::<&Tensor>;
    let least = f64::NEG_INFINITY;
    let max = Tensor::segment_reduce(&values.detach(), "max", Some(&lengths), none, none, 0, true, least);
    max.where_scalarother(&max.isfinite(), 0.0)
}

/// Converts indices to a tensor of 64-bit integers, for `index_select` and `index_add`.
///
/// ```
/// let rows = gfn::tensor::index_tensor(&[2, 0], tch::Device::Cpu);
/// let values = tch::Tensor::from_slice(&[1.0, 2.0, 3.0]).index_select(0, &rows);
/// assert_eq!(values, tch::Tensor::from_slice(&[3.0, 1.0]));
/// ```
pub fn index_tensor(values: &[usize], device: Device) -> Tensor {
    let values: Vec<i64> = values.iter().map(|&v| v as i64).collect();
    upload(&values, device)
}

/// Returns the rows of a tensor at these indices, in this order.
pub(crate) fn select_rows(values: &Tensor, rows: &[usize]) -> Tensor {
    values.index_select(0, &index_tensor(rows, values.device()))
}

#[cfg(test)]
mod tests {
    use tch::Kind;

    use super::*;

    #[test]
    fn segments_have_one_maximum_wherever_it_is_found() {
        let offsets = [0, 2, 2, 5, 6, 7];
        let expected = [5.0, 0.0, -1.5, 0.0, 3.0];
        let values = Tensor::from_slice(&[1.0, 5.0, -2.0, -1.5, f64::NEG_INFINITY, f64::NEG_INFINITY, 3.0]);
        for kind in [Kind::Float, Kind::Double] {
            let values = values.to_kind(kind).set_requires_grad(true);
            for max in [segment_max_on_host, segment_max_on_device].map(|max| max(&values, &offsets)) {
                assert_eq!((max.kind(), max.requires_grad()), (kind, false));
                assert_eq!(to_host(&max), expected);
            }
        }
    }
}
