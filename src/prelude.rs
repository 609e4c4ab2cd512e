//! The names that most programs use, for one `use` line: environments of graphs and of vectors, rewards,
//! networks, objectives, training.
//!
//! `Result` and `Error` aren't in the list, because the standard library has these names, too. Write
//! [`gfn::Result`](crate::Result) and [`gfn::Error`](crate::Error). A name that your program defines or
//! imports itself takes precedence over the name in the list.
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

// Numbers and devices.
pub use crate::Rng;
pub use crate::runtime::{DeviceKind, Runtime};
pub use tch;
pub use tch::{Device, Kind, Tensor};

// Training and exact results.
pub use crate::env::StateGraph;
pub use crate::experiment::{ExactEvaluation, Experiment, Trained};
pub use crate::metrics::Distances;
pub use crate::optim::{AdamConfig, Schedule};
pub use crate::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
pub use crate::rollout::Sampler;
pub use crate::run::Fit;
pub use crate::train::{Trainer, TrainerConfig};

// Environments of graphs, and custom rules and action types.
pub use crate::contract::{Budget, check_action_type, check_graph_env};
pub use crate::env::{Direction, Env};
pub use crate::graph::{
    ActionSet, AddEdge, AddNode, Anchor, BackwardRule, Edge, Free, GraphActionType, GraphArrays, GraphEnv,
    GraphKind, GraphRules, GraphSchema, GraphState, GraphStates, GraphView, Head, Move, MoveMask, Node,
    Semantics, SetEdgeAttr, SetNodeAttr,
};

// Environments of vectors.
pub use crate::contract::check_env;
pub use crate::env::{Rows, VectorEnv, VectorRules, VectorStates};

// Rewards.
pub use crate::env::{Clipped, PerVector, Reward};
pub use crate::graph::PerGraph;

// Policies, networks, and custom torsos.
pub use crate::nn::{
    BackwardPolicy, ConvKind, Embeddings, Engine, EstimatorsConfig, GraphNet, GraphNetConfig, GraphNetwork,
    Linear, Mlp, MlpConfig, Scope, Torso,
};
pub use crate::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy};

// Objectives, and custom objectives.
pub use crate::objective::{
    DetailedBalance, FlowMatching, LogPartitionVariance, ModifiedDetailedBalance, Objective, Quantities,
    Quantity, Regression, RegressionLoss, Residuals, Scores, SubTrajectoryBalance, TrajectoryBalance,
};
