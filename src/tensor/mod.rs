//! Conversion between tensors and slices of numbers, and sums over the segments of a flat tensor.

pub(crate) mod flat;
mod log_sum_exp;
mod panics;
mod segments;
pub(crate) mod slices;
mod transfer;

pub use log_sum_exp::log_sum_exp;
pub(crate) use panics::catch_tch;
pub use segments::{index_tensor, segment_ids, segment_logsumexp, segment_sum};
pub(crate) use segments::{segment_max, select_rows};
pub(crate) use transfer::{fetch_all, upload_all};
pub use transfer::{from_host, to_device, to_host, upload};
