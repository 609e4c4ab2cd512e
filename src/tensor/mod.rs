//! Conversion between tensors and slices of numbers, and sums over the segments of a flat tensor.

mod segments;
pub(crate) mod slices;

pub(crate) use segments::segment_max;
pub use segments::{from_host, index_tensor, segment_ids, segment_logsumexp, segment_sum, to_host};
