//! Environments for [`gfn`]. Each has a reward, and quantities that are known exactly.
//!
//! | environment | states | reward | log Z known | modes known | semantics | enumerable |
//! |---|---|---|---|---|---|---|
//! | [`graph_building::GraphBuilding`] | graphs within limits, grown node by node and edge by edge | user-defined: a closure, or [`gfn::graph::PerGraph`] | no | no | your choice | small limits only |
//! | [`ring::Ring`] | all graphs on `n` labelled nodes | 100 for a Hamiltonian ring, otherwise a floor | closed form | (n-1)!, directed; (n-1)!/2, undirected | labelled | directed to n = 5 (2^20), undirected to n = 6 (2^15) |
//! | [`triangle::Triangle`] | graphs of at most 3 coloured nodes | 100 for a triangle, otherwise a floor | closed form | closed form | up to isomorphism | always: 256 states with 5 colours (directed: 1,501) |
//! | [`colored_graphs::ColoredGraphs`] | connected graphs of at most N two-coloured nodes | three: numbers of nodes, even numbers of neighbours, cliques | by enumeration | by enumeration | up to isomorphism | to N = 7 (72,297 states) |
//! | [`hypergrid::HyperGrid`] | points of a grid, one step along an axis at a time | nine rewards with a [name](hypergrid::RewardKind) and presets, and [one](hypergrid::ConditionalReward) under a condition; [table](hypergrid) | closed form, except for two rewards | closed form, except for three rewards | each point is one object | to 20^4 (160,000 states) |
//! | [`graph_problems::GraphProblem`] | input graphs with a mark on each node: independent sets, cliques, dominating sets, cuts | exp(beta size); also for unfinished states | by enumeration | by enumeration | labelled; an instance for each graph | small graphs |
//! | [`discrete_ebm::DiscreteEbm`] | binary coordinates, set in any order | Ising energy with any couplings or those of a lattice; also for unfinished states | to 9 x 9 spins on a lattice, otherwise to 24 spins | no | each vector is one object | 3^n states |
//! | [`bit_sequence::BitSequence`] | words appended from left to right | distance from the nearest mode | to 1,000 bits with one mode, to about 250 bits with two modes, to about 24 bits with many | given, or drawn from motifs | each sequence is one object | 2^bits sequences |
//! | [`bit_sequence::PrependAppendBitSequence`] | words added at either end | the same | the same | the same | the same | the same states |
//! | [`bit_sequence::NonAutoregressiveBitSequence`] | words set in any order | the same | the same | the same | the same | (2^word + 1)^words states |
//! | [`sequence::TokenSequence`] | tokens appended, fixed or variable length; TFBind8 | a table from a file | closed form | no | each sequence is one object | to 4^8 (87,381 states) and beyond |
//! | [`perfect_tree::PerfectBinaryTree`] | nodes of a binary tree, from the root to a leaf | user-defined: a function of the node | to depth 24 | no | each leaf is one object | 2^(depth + 1) - 1 states |
//! | [`set_addition::SetAddition`] | sets that items are added to, of fixed or variable size | sum of weights; also for unfinished states | closed form | no | each set is one object | sum of C(n, k) states |
//! | [`toy_dag::ToyDag`] | the 11 states of the *GFlowNet Foundations* | one number per terminating state | closed form | no | each state is one object | always |
//! | [`diffusion::DiffusionSampling`] | points in R^d that take Gaussian steps | nine targets, or a closure or TorchScript file; [table](diffusion) | closed form or quadrature, except for three targets | known for mixtures | each point is one object | no: continuous |
//! | [`phylo_tree::PhyloTree`] | forests of rooted trees over n species | parsimony of their sequences; also for unfinished states | to 8 species | no | species are labelled | to n = 7 (27,007 states) |
//! | [`boxes::BoxEnv`] | points of the unit box, Cartesian in any dimension or polar in the plane | the original reward of the grid; also for unfinished states | closed form | four regions of the square | each point is one object | continuous |
//! | [`line::Line`] | a position after a fixed number of steps | a sum of Gaussians | closed form | given | each position is one object | continuous |
//!
//! Molecules are in the package `gfn-molecules`, structures of Bayesian networks in `gfn-dags`, distances
//! between sets of points in `gfn-extras`.
//!
//! Environments whose trajectories have a forced end (a sequence is full, one tree is left, all steps of a
//! line are made) have no exit action: the last action ends the trajectory. Sequences of variable length,
//! sets of variable size, the toy DAG, the grid, the box and the graphs have an exit action.
//!
//! An environment and its reward are separate, so either can be replaced: a reward is anything that
//! implements [`gfn::env::Reward`] for the environment's states, closures included.
//!
//! ```
//! use gfn::{env::Reward, policy::UniformPolicy, rollout::Sampler, Rng};
//! use gfn::graph::GraphKind;
//! use gfn_gym::ring::{Ring, RingReward};
//!
//! let ring = Ring::new(4, GraphKind::Directed)?;
//! let reward = RingReward::default();
//! let trajectories = Sampler::new(ring.env(), &UniformPolicy).forward(8, &mut Rng::seeded(0))?;
//! assert_eq!(reward.log_reward(trajectories.terminal_states(), None)?.len(), 8);
//! assert!((reward.log_z(&ring) - 6.39694).abs() < 1e-5);
//! # Ok::<(), gfn::Error>(())
//! ```

pub mod bit_sequence;
pub mod boxes;
mod cells;
pub mod colored_graphs;
mod continuous;
pub mod diffusion;
pub mod discrete_ebm;
pub mod graph_building;
pub mod graph_problems;
pub mod hypergrid;
mod levels;
pub mod line;
pub mod perfect_tree;
pub mod phylo_tree;
pub mod rewards;
pub mod ring;
pub mod sequence;
pub mod set_addition;
mod tensors;
pub mod toy_dag;
pub mod triangle;
