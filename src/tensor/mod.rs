//! Conversion between tensors and slices of numbers, and sums over the segments of a flat tensor.

mod log_sum_exp;
mod panics;
mod segments;
pub(crate) mod slices;

pub use log_sum_exp::log_sum_exp;
pub(crate) use panics::catch_tch;
pub use segments::{from_host, index_tensor, segment_ids, segment_logsumexp, segment_sum, to_host};
pub(crate) use segments::{segment_max, select_rows};
