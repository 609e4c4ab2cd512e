//! The names that most programs use, for one `use` line: environments of graphs and of vectors, rewards,
//! networks, objectives, training.
//!
//! Short names that a program may define itself are left out: [`Node`](crate::graph::Node),
//! [`Edge`](crate::graph::Edge), [`Move`](crate::graph::Move), [`Rows`](crate::env::Rows), and `Result` and
//! `Error`, which are [`gfn::Result`](crate::Result) and [`gfn::Error`](crate::Error).
//!
//! ```
//! use gfn::prelude::*;
//! // Graphs of at most three nodes, grown node by node and edge by edge, up to isomorphism.
//! let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 3)).with(AddEdge::new(1));
//! let env = GraphEnv::free(actions, GraphState::undirected(0))?;
//! let trained =
//!     Experiment::new(env, PerGraph(|graph: &GraphState| graph.n_edges() as f64)).steps(10).train()?;
//! // None, one of 1 node, two of 2 nodes, four of 3 nodes.
//! assert_eq!(trained.exact(100)?.space.len(), 8);
//! # Ok::<(), gfn::Error>(())
//! ```

pub use tch;

pub use crate::Rng;
pub use crate::env::{Clipped, Direction, Env, Reward, StateGraph, VectorEnv, VectorRules, VectorStates};
pub use crate::experiment::{ExactEvaluation, Experiment, Trained};
pub use crate::graph::{
    ActionSet, AddEdge, AddNode, BackwardRule, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState,
    GraphStates, MoveMask, PerGraph, Semantics, SetEdgeAttr, SetNodeAttr,
};
pub use crate::metrics::Distances;
pub use crate::nn::{BackwardPolicy, ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig};
pub use crate::objective::{
    DetailedBalance, FlowMatching, LogPartitionVariance, Objective, SubTrajectoryBalance, TrajectoryBalance,
};
pub use crate::optim::Schedule;
pub use crate::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy};
pub use crate::replay::{ReplayBuffer, ReplayConfig};
pub use crate::rollout::Sampler;
pub use crate::run::Fit;
pub use crate::runtime::{DeviceKind, Runtime};
pub use crate::train::{Trainer, TrainerConfig};
