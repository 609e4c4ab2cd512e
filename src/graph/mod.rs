//! Graphs.

mod bits;
mod canonical;
mod canonical_key;
mod canonical_search;
mod state;
mod weights;

pub use bits::BitRows;
pub use canonical::{
    Canonical, Canonizer, canonical_key, canonical_keys, log_automorphisms,
    log_automorphisms_batch, with_canonizer,
};
pub use canonical_key::{CanonicalKey, labelled_key};
pub use state::{GraphKind, GraphState};
pub use weights::{Attributes, Edge, MAX_ATTRIBUTES, Node};
