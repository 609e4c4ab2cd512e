//! Batches: states and actions as rows, and the legal actions of each state. [`env`](mod@crate::env) exports
//! all items of this module.

mod batch;
mod masks;
mod vectors;

pub use batch::{Classes, Grouping, Rows, Slots};
pub use masks::{Block, Masks};
pub use vectors::{Entry, Reals, VectorStates, Vectors};
