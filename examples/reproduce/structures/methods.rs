//! Methods that sample structures without a policy, and the graphs that they give a policy to learn from.

use gfn_dags::{BayesianStructure, DagReward, LocalScore, OrderSamples, greedy_search};
use gfn_extras::chains::{ChainConfig, Chains, Proposal};

use crate::prelude::*;

/// A method that finds structures without a policy.
#[derive(Clone, Copy)]
pub(super) enum Search {
    OrderMcmc,
    StructureMcmc,
    Greedy,
}

pub(super) const METHODS: &[Choice<Option<Search>>] = &[
    ("policy", None, "A policy that is trained"),
    ("order-mcmc", Some(Search::OrderMcmc), "Markov chains over orders of the nodes"),
    (
        "structure-mcmc",
        Some(Search::StructureMcmc),
        "Markov chains over graphs, by additions and removals of edges",
    ),
    ("greedy", Some(Search::Greedy), "The best graph of greedy searches"),
];

/// The largest number of variables for which chains over orders store the sums over all parent sets. A step
/// then only reads them. Without them it adds the terms of thousands of parent sets.
const MAX_STORED: usize = 20;

/// Returns the default number of steps of each chain over orders of `n` variables.
pub(super) fn order_steps(n: usize) -> usize {
    if n <= MAX_STORED { 500_000 } else { 20_000 }
}

/// The number of independent Markov chains.
const CHAINS: usize = 4;

/// Graphs, and their source.
pub(super) struct FoundGraphs {
    pub(super) graphs: GraphStates,
    pub(super) origin: Origin,
    /// The chains over orders that found the graphs; `None` for another source.
    pub(super) orders: Option<OrderSamples>,
}

/// The source of the graphs of a report.
pub(super) enum Origin {
    /// All graphs, with the probabilities that the policy itself has.
    Exact,
    /// Independent samples of the policy.
    PolicySamples,
    /// Samples of this number of Markov chains, in blocks of equal size.
    Chains(usize),
    /// The best graph of a search, which says nothing about probabilities.
    BestGraph,
}

/// Returns a remark on the quality of the graphs of chains over orders, for readers of a report.
pub(super) fn remark(orders: &OrderSamples) -> String {
    if !orders.is_corrected {
        return "The samples of the chains over orders are not corrected: some graphs fit too many orders to \
                count them, so a graph counts once for each order that it fits. Graphs with few edges are \
                therefore too frequent."
            .into();
    }
    let numbers: Vec<String> = orders.effective_samples.iter().map(|n| format!("{n:.0}")).collect();
    format!(
        "Effective samples of each chain over orders, after the correction for the number of orders that a \
         graph fits: {}.",
        numbers.join(", ")
    )
}

impl Search {
    /// Returns the default of `--steps` for `n` variables.
    pub(super) fn default_steps(self, n: usize) -> usize {
        match self {
            Self::OrderMcmc => order_steps(n),
            Self::StructureMcmc => 200_000,
            Self::Greedy => 20,
        }
    }

    /// Samples `samples` graphs from the posterior, or returns the graph that greedy search finds.
    pub(super) fn run<S: LocalScore + 'static>(
        self,
        env: &BayesianStructure,
        reward: &DagReward<S>,
        steps: usize,
        samples: usize,
        rng: &mut Rng,
    ) -> Result<FoundGraphs> {
        match self {
            Self::OrderMcmc => order_samples(env, reward, steps, samples, rng),
            Self::StructureMcmc => {
                let graphs = graph_samples(env.env(), reward, steps, samples, rng)?;
                Ok(FoundGraphs { graphs, origin: Origin::Chains(CHAINS), orders: None })
            }
            Self::Greedy => {
                let best = greedy_search(env, reward, steps, rng)?.swap_remove(0).0;
                Ok(FoundGraphs { graphs: vec![best].into(), origin: Origin::BestGraph, orders: None })
            }
        }
    }
}

/// Samples graphs by Markov chains over orders, in blocks of equal size.
fn order_samples<S: LocalScore>(
    env: &BayesianStructure,
    reward: &DagReward<S>,
    steps: usize,
    samples: usize,
    rng: &mut Rng,
) -> Result<FoundGraphs> {
    let each = samples.div_ceil(CHAINS);
    let found = OrderSamples::draw(env, reward, CHAINS, each, (steps / each).max(1), rng)?;
    let graphs = found.pooled();
    tell(remark(&found));
    Ok(FoundGraphs { graphs, origin: Origin::Chains(CHAINS), orders: Some(found) })
}

/// Samples graphs by Markov chains over graphs, in blocks of equal size. A quarter of as many steps come
/// before the first sample.
fn graph_samples<S: LocalScore + 'static>(
    env: &GraphEnv,
    reward: &DagReward<S>,
    steps: usize,
    samples: usize,
    rng: &mut Rng,
) -> Result<GraphStates> {
    let each = samples.div_ceil(CHAINS);
    let thin = (steps / each).max(1);
    let config = ChainConfig {
        proposals: vec![(1.0, Proposal::OneMove)],
        score_changes: true,
        ..ChainConfig::default()
    };
    let start = Sampler::new(env, &UniformPolicy).walks(CHAINS, rng)?.terminal;
    let mut chains = Chains::new(env, config, start, None)?;
    let mut blocks = vec![Vec::new(); CHAINS];
    let burn_in = (thin * each).div_ceil(4);
    for round in 1..=burn_in + thin * each {
        chains.round(env, reward, None, rng)?;
        if round > burn_in && (round - burn_in).is_multiple_of(thin) {
            for (block, graph) in blocks.iter_mut().zip(chains.objects().graphs()) {
                block.push(graph.clone());
            }
        }
    }
    Ok(blocks.concat().into())
}

/// Returns a data set of graphs that Markov chains over orders sampled, for a policy to learn from, and
/// the chains.
pub(super) fn chain_data<S: LocalScore>(
    structures: &BayesianStructure,
    reward: &DagReward<S>,
    steps: usize,
    rng: &mut Rng,
) -> Result<(ReplayBuffer<GraphEnv>, Option<OrderSamples>)> {
    let env = structures.env();
    // Counting the orders that a graph fits takes milliseconds for large graphs.
    let n_graphs = if structures.n_nodes() <= MAX_STORED { 10_000 } else { 2_000 };
    let FoundGraphs { graphs, orders, .. } = order_samples(structures, reward, steps, n_graphs, rng)?;
    let log_rewards = log_rewards(reward, &graphs, None)?;
    let (eviction, draw) = NEWEST;
    let mut data =
        ReplayBuffer::new(ReplayConfig { capacity: graphs.len(), eviction, draw })?.terminal_only();
    data.add_objects(env, graphs, &log_rewards)?;
    Ok((data, orders))
}
