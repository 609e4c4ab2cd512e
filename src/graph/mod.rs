//! Graphs: states, batches, environments that build graphs, rewards, action types, symmetry, and files.

mod action;
mod batch;
mod env;
mod io;
mod reward;
mod state;
mod symmetry;

pub(crate) use action::reverse_move;
pub use action::{
    ActionKind, ActionSet, AddEdge, AddNode, Anchor, GraphActionType, Head, Move, Reverse, Semantics,
    SetAttr, SetEdgeAttr, SetNodeAttr,
};
pub use batch::{GraphArrays, GraphBatch, GraphView, Neighbours};
use env::raise;
pub use env::{
    BackwardRule, BatchMove, Free, GraphEnv, GraphRules, GraphSchema, MoveMask, ReducedGraph, Scaffold,
};
pub(crate) use env::{ReducedStates, check_reduced, contains, misfit};
pub use io::{GraphFormat, MAX_EDGE_LIST_NODES, NamedGraph, read_graphs, write_graphs};
pub use reward::PerGraph;
pub use state::{
    Adjacency, Attributes, Edge, GraphKind, GraphState, GraphStates, MAX_ATTRIBUTES, Node, Weight,
};
pub use symmetry::{
    Canonical, CanonicalKey, Canonizer, MoveSymmetries, SymmetryCount, canonical_key, canonical_keys,
    labelled_key, log_automorphisms, with_canonizer,
};
