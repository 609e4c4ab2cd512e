//! Extensions of [`gfn`] from single papers, written with the public traits of [`gfn`] only.
//!
//! | module | is |
//! |---|---|
//! | [`chains`] | Markov chains over finished objects, alone or as a source of training trajectories |
//! | [`condition`] | one policy for a family of rewards: reward exponents, preferences, goal directions, hindsight |
//! | [`explore`] | an adaptive teacher, Thompson sampling, search among objects, intrinsic rewards |
//! | [`pareto`] | Pareto fronts, hypervolume and other metrics of sets of objective vectors |
//! | [`transport`] | distances between two sets of points: optimal transport, maximum mean discrepancy |

pub mod chains;
pub mod condition;
pub mod explore;
pub mod pareto;
pub mod transport;
