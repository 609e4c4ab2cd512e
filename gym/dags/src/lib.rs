//! Structure learning of Bayesian networks for [`gfn`]: directed acyclic graphs are sampled in proportion to
//! their posterior probability given data (Deleu et al., *Bayesian structure learning with generative flow
//! networks*, UAI 2022).
//!
//! Nodes are variables, so they are distinguishable, and each labelled graph is one object. This table
//! lists the steps from data to a distribution over graphs:
//!
//! | step | item |
//! |---|---|
//! | data | [`ContinuousData`] and [`DiscreteData`] from CSV files, with or without interventions; [`DiscreteNetwork`] from BIF files |
//! | simulated data | a graph from a [`GraphLaw`], then a [`Sem`] (linear or random networks) or a [`DiscreteNetwork`] |
//! | scores | [`Bge`], [`LinearGaussianBic`], [`Bde`], or a custom [`LocalScore`]; [`CachedScores`] caches them |
//! | reward | [`DagReward`]: the scores and a [`StructurePrior`], of a whole graph or as the change by an edge |
//! | environment | [`BayesianStructure`], rules of [`GraphEnv`](gfn::graph::GraphEnv), with the expert knowledge of a [`StructureConfig`] |
//! | policy | [`MlpPolicy`](gfn::policy::MlpPolicy) on [`AdjacencyFeatures`], or a [`GraphPolicy`](gfn::policy::GraphPolicy) with a graph network: [`GraphNet`](gfn::nn::GraphNet), or [`EdgeTransformer`] with attention between pairs of nodes |
//! | baselines, and data for a policy | [`OrderSamples`] and [`greedy_search`] |
//! | exact posterior | [`ExactPosterior`] to 5 nodes (6 takes long), [`EdgeMarginals`] to 20 |
//! | comparison | [`Marginals`] of edges, paths and Markov blankets, [`PairMatrix`], [`EdgeComparison`] with known edges, of graphs or of their [`cpdags`], [`held_out_log_likelihoods`], [`most_probable`] |
//!
//! [`StateGraph::terminating_distribution`](gfn::env::StateGraph::terminating_distribution) computes the
//! exact distribution of a policy over all graphs, if there are few nodes.
//! [`write_graphs`](gfn::graph::write_graphs) writes samples to files. [`acyclic`] builds a graph from its
//! edges, and [`Ancestry`] finds ancestors and paths.
//!
//! ```
//! use gfn::{env::StateGraph, metrics::Distances};
//! use gfn::{Rng, policy::UniformPolicy};
//! use gfn_dags::*;
//!
//! let mut rng = Rng::seeded(0);
//! let truth = GraphLaw::ErdosRenyi { edges: 4.0 }.draw(4, &mut rng)?;
//! let data = Sem::draw(truth.clone(), SemConfig::Linear, 0.1, &mut rng)?.sample(100, &mut rng)?;
//! let scores = CachedScores::ahead(Bge::new(&data, BgeConfig::default())?, None)?;
//! let structures = BayesianStructure::new(StructureConfig::new(4))?;
//! let env = structures.env();
//! let reward = DagReward::new(scores, StructurePrior::Uniform)?;
//!
//! let graph = StateGraph::build(env, 1000)?;
//! let posterior = ExactPosterior::from_states(graph.states(), &reward)?;
//! let sampled = graph.terminating_distribution(env, &UniformPolicy, None)?;
//! assert!(Distances::between(&sampled.probs, posterior.probs())?.jsd > 0.1);
//! let edge = EdgeMarginals::sum(&structures, &reward)?.edge;
//! assert!(edge.rmse(&posterior.marginals()?.edge)? < 1e-9);
//! # Ok::<(), gfn::Error>(())
//! ```

mod data;
mod env;
mod on_device;
mod policy;
mod posterior;
mod reward;
mod scores;
mod search;

pub use data::{
    ContinuousData, DiscreteData, DiscreteNetwork, FromTable, GraphLaw, Labels, Mechanism, Observations, Sem,
    SemConfig, TextTable, named_edges,
};
pub use env::{AddArc, Ancestry, BayesianStructure, MAX_NODES, NodeSet, StructureConfig, acyclic};
pub use policy::{AdjacencyFeatures, EdgeTransformer, EdgeTransformerConfig};
pub use posterior::{
    Detection, EdgeComparison, EdgeMarginals, ExactPosterior, MAX_SUMMED_NODES, Marginals, PairMatrix, cpdag,
    cpdags, held_out_log_likelihoods, log_model_average, most_probable,
};
pub use reward::DagReward;
pub use scores::{
    Bde, BdeConfig, Bge, BgeConfig, CachedScores, CellPrior, LinearGaussianBic, LocalScore, StructurePrior,
};
pub use search::{OrderChain, OrderSamples, greedy_search, log_linear_extensions, order_weights};
