//! Graphs.

mod action;
mod batch;
mod bits;
mod canonical;
mod canonical_key;
mod canonical_reduce;
mod canonical_search;
mod classes;
mod contract;
mod describe;
mod enumerable;
mod env;
mod files;
mod fits;
mod relabel;
mod state;
mod states;
mod weights;

pub use action::{
    ActionKind, ActionSet, AddEdge, AddNode, Anchor, Connectivity, Exit, GraphActionType, Head, Move, Placement,
    RemoveEdge, RemoveEdgeAttr, RemoveNode, RemoveNodeAttr, Reversed, Semantics, SetEdgeAttr, SetNodeAttr,
};
pub use batch::GraphBatch;
pub(crate) use batch::sum_rows;
pub use bits::BitRows;
pub use canonical::{Canonical, Canonizer, canonical_key, canonical_keys, log_automorphisms, with_canonizer};
pub use canonical_key::{CanonicalKey, labelled_key};
pub(crate) use contract::{check_by_type, check_fits, check_settings};
pub use env::{BackwardRule, GraphEnv, GraphSchema};
pub use files::{GraphFormat, MAX_EDGE_LIST_NODES, read_graphs, write_graphs};
pub(crate) use fits::misfit;
pub use state::{GraphKind, GraphState};
pub use states::GraphStates;
pub use weights::{Attributes, Edge, MAX_ATTRIBUTES, Node};
