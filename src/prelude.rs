//! What most programs name, for one `use`: environments of graphs and of vectors, rewards, networks, objectives, training.
//!
//! `Result` and `Error` aren't here, so that a program's own keep their meaning; they are [`gfn::Result`](crate::Result) and
//! [`gfn::Error`](crate::Error).
//!
//! ```
//! use gfn::prelude::*;
//! // Graphs of at most three nodes, grown node by node and edge by edge, up to isomorphism.
//! let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 3)).with(AddEdge::new(1));
//! let env = GraphEnv::new(Free, actions, GraphState::undirected(0))?;
//! let trained = Experiment::new(env, PerGraph(|graph: &GraphState| graph.n_edges() as f64)).steps(10).train()?;
//! // None, one of 1 node, two of 2 nodes, four of 3 nodes.
//! assert_eq!(trained.exact(100)?.space.len(), 8);
//! # Ok::<(), gfn::Error>(())
//! ```

pub use tch;

pub use crate::Rng;
pub use crate::env::{Clipped, Direction, Env, Reward, Rows, StateGraph, VectorEnv, VectorRules, VectorStates};
pub use crate::experiment::{ExactEvaluation, Experiment, Trained};
pub use crate::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, Edge, Free, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState,
    GraphStates, Move, MoveMask, Node, PerGraph, Semantics, SetEdgeAttr, SetNodeAttr,
};
pub use crate::metrics::Distances;
pub use crate::nn::{BackwardPolicy, ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig};
pub use crate::objective::{
    DetailedBalance, FlowMatching, LogPartitionVariance, Objective, SubTrajectoryBalance, TrajectoryBalance,
};
pub use crate::optim::Schedule;
pub use crate::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy};
pub use crate::runtime::{DeviceKind, Runtime};
pub use crate::train::{Fit, Trainer, TrainerConfig};
