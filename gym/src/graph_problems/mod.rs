//! Problems on input graphs: maximum independent set, maximum clique, minimum dominating set, maximum cut.
//!
//! Each input graph is an instance of one environment. A state is the graph with a mark on each node. A
//! solution is a set of nodes, and its reward is `exp(beta size)` (`exp(-beta size)` if small solutions are
//! good). One policy learns `p(x | G)` for all graphs G. The method is that of Zhang et al., *Let the Flows
//! Tell: Solving Graph Combinatorial Optimization Problems with GFlowNets*, 2023.
//!
//! | problem | an action | marks that it forces | a trajectory ends | solutions that can be built |
//! |---|---|---|---|---|
//! | [`Problem::IndependentSet`] | adds a node to the solution | neighbours of the node are out | when each node is in or out | all maximal independent sets |
//! | [`Problem::Clique`] | adds a node to the solution | nodes without an edge to the node are out | when each node is in or out | all maximal cliques |
//! | [`Problem::DominatingSet`] | removes a node from the solution | nodes without which a node would not be dominated are in | when each node is in or out | all minimal dominating sets |
//! | [`Problem::Cut`] | moves a node to the other side | none | at any time | all sets of nodes |
//!
//! The marks depend on the set of chosen nodes, not on the order in which they were chosen. Therefore a
//! backward action can undo the choice of any chosen node. A node of a clique forces out the nodes to which
//! it has no edge. Messages along edges don't reach these nodes; a network of `ConvKind::GinVirtual` has a
//! virtual node for this purpose. A clique is also an independent set of the
//! [complement](Instances::complements). Local search for one good solution, with or without a policy, is in
//! the package `gfn-solver`. [`Problem::check`] returns the size of a set of nodes, or the reason why it is
//! no solution, independently of the environment.
//!
//! ```
//! use gfn::{
//!     Rng,
//!     env::{Env, StateGraph},
//!     graph::GraphFormat,
//! };
//! use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, SizeReward};
//! // A cycle of 5 nodes, in graph6.
//! let ring = Instances::new(GraphFormat::Graph6.read(b"Dhc")?)?;
//! let env = GraphProblem::new(Problem::IndependentSet, &ring)?.into_env();
//! let space = StateGraph::build(&env, 100)?;
//! let solutions: Vec<_> = space
//!     .ends()
//!     .iter()
//!     .map(|&end| Problem::IndependentSet.solution(&space.states().graphs()[end]))
//!     .collect();
//! assert_eq!(solutions.len(), 5);
//! assert_eq!(Problem::IndependentSet.check(&ring.graphs()[0], &solutions[0])?, 2);
//! let target = space.target_distribution(&SizeReward::new(Problem::IndependentSet, 2.0)?, None)?;
//! assert!((target.log_z - (5.0 * 4f64.exp()).ln()).abs() < 1e-12);
//! # Ok::<(), gfn::Error>(())
//! ```

mod dimacs;
mod env;
mod generators;
mod instances;
mod mark_node;
mod optimum;
mod problem;
mod reduced;
mod reward;

pub use dimacs::{read_dimacs, write_dimacs};
pub use env::GraphProblem;
pub use generators::{RbModel, barabasi_albert, erdos_renyi};
pub use instances::Instances;
pub use mark_node::{Mark, MarkNode};
pub use optimum::{maximum_clique, maximum_independent_set};
pub use problem::Problem;
pub use reward::SizeReward;
