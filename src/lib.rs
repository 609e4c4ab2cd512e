//! Generative Flow Networks: policies that build an object step by step, trained so that they sample finished
//! objects with probability proportional to a reward R(x).
//!
//! The library is made for graph generation. A state is a petgraph graph ([`graph::GraphState`]), a minibatch
//! is encoded as one sparse edge index ([`graph::GraphBatch`]), a policy is a graph network on libtorch
//! ([`nn::GraphNet`]), and one softmax per graph covers all actions of all types
//! ([`distribution::GraphActionCategorical`]). States that are vectors use the same sampler, losses, buffers
//! and trainer.
//!
//! # A tour
//!
//! The modules are listed from the lowest layer up. A module imports only from modules of lower layers, which
//! a test checks.
//!
//! | module | contents |
//! |---|---|
//! | [`error`](mod@error), [`rng`], [`runtime`] | typed errors, one seeded random stream, threads and devices |
//! | [`group`] | replicas of a run that train as one |
//! | [`tensor`] | conversion between tensors and slices, sums over segments |
//! | [`distribution`] | the categorical distribution over actions, exploration |
//! | [`mod@env`] | the traits of environments, masks, rewards, the list of all states of a small environment |
//! | [`condition`] | one policy for a family of rewards: condition vectors, their sources, hindsight |
//! | [`graph`] | graph states, batches, action types, graph environments, symmetry, files |
//! | [`nn`] | parameters, layers, networks over graphs and sequences, copies of networks on the host |
//! | [`policy`] | estimators of P_F, P_B and flows |
//! | [`rollout`] | sampling forwards and backwards, stored trajectories, data files |
//! | [`objective`] | the log-probabilities of trajectories ([`score`](objective::score)), and losses computed from them |
//! | [`replay`], [`optim`] | buffers; Adam, schedules, averages |
//! | [`metrics`] | exact distributions, exact flows, and estimates for spaces that are too large to list |
//! | [`train`] | the trainer, the loop around it, its observers and its checkpoints |
//! | [`experiment`] | training and exact evaluation of a policy from an environment, a reward, and settings with defaults |
//! | [`contract`] | the laws of environments, action types, policies and rewards, for your own tests |
//! | [`examples`] | small environments to try things on |
//! | [`prelude`] | the names that most programs need, for one `use` line |
//!
//! # Features
//!
//! All features are on by default. A library that depends on this crate should turn the default features off.
//!
//! | feature | effect |
//! |---|---|
//! | `signals` | [`run::Fit::stop_on_interrupt`]: Ctrl-C ends a run after a step |
//!
//! # A run
//!
//! ```
//! use gfn::prelude::*;
//! // The 8 undirected graphs on three labelled nodes, built edge by edge; R(x) is e to the number of edges.
//! let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
//! let env = GraphEnv::free(actions, GraphState::undirected(3))?;
//! let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
//! let trained = Experiment::new(env, reward).steps(200).train()?;
//! // Not an estimate: the policy's distribution over all graphs, against the one that the reward asks for.
//! assert!(trained.exact(1_000)?.distances.tv < 0.05);
//! # Ok::<(), gfn::Error>(())
//! ```
//!
//! [`experiment`] combines parts of the other modules: a network ([`nn::GraphNet`]) and its policy
//! ([`policy::GraphPolicy`]), an objective, a [`train::Trainer`] with its settings, a training loop
//! ([`run::Fit`]), and [`env::StateGraph`] with [`metrics`].

pub mod condition;
pub mod contract;
mod direction;
pub mod distribution;
pub mod env;
pub mod error;
pub mod examples;
pub mod experiment;
pub mod graph;
pub mod group;
mod io;
pub mod metrics;
pub mod nn;
pub mod objective;
pub mod optim;
mod parallel;
pub mod policy;
pub mod prelude;
mod quantity;
pub mod replay;
pub mod rng;
pub mod rollout;
mod rows;
pub mod run;
pub mod runtime;
pub mod tensor;
pub mod train;

pub use error::{Error, Result};
pub use rng::Rng;
/// The bindings of libtorch, in the version with which this crate is built.
pub use tch;
pub use train::{load, load_with_env};

/// The README's example, compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
