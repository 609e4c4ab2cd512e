//! Graphs.

mod bits;
mod state;
mod weights;

pub use bits::BitRows;
pub use state::{GraphKind, GraphState};
pub use weights::{Attributes, Edge, MAX_ATTRIBUTES, Node};
