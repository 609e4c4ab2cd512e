//! Methods that sample structures without a policy, and the graphs that they give a policy to learn from.

use gfn::rollout::ReplayEnv;
use gfn_dags::{BayesianStructure, DagReward, LocalScore, OrderSamples, greedy_search};
use gfn_extras::chains::{ChainConfig, Chains, Proposal};

use crate::prelude::*;

/// A method that samples structures.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Method {
    Policy,
    Orders,
    Graphs,
    Greedy,
}

pub(super) const METHODS: &[Choice<Method>] = &[
    ("policy", Method::Policy, "A policy that is trained"),
    ("order-mcmc", Method::Orders, "Markov chains over orders of the nodes"),
    ("structure-mcmc", Method::Graphs, "Markov chains over graphs, by additions and removals of edges"),
    ("greedy", Method::Greedy, "The best graph of greedy searches"),
];

/// The default number of steps of each chain over orders. With up to 20 variables, whose sums are stored, a
/// step takes less than a microsecond.
pub(super) const ORDER_STEPS: usize = 500_000;
/// The number of independent Markov chains.
const CHAINS: usize = 4;

impl Method {
    /// Returns the number of Markov chains that the samples come from, in equal blocks; 1 for independent
    /// samples.
    pub(super) fn n_chains(self) -> usize {
        if [Self::Orders, Self::Graphs].contains(&self) { CHAINS } else { 1 }
    }

    /// Returns the default of `--steps`; `None` for a policy.
    pub(super) fn default_steps(self) -> Option<usize> {
        match self {
            Self::Policy => None,
            Self::Orders => Some(ORDER_STEPS),
            Self::Graphs => Some(200_000),
            Self::Greedy => Some(20),
        }
    }

    /// Samples `samples` graphs from the posterior, or returns the graph that greedy search finds.
    pub(super) fn sample<S: LocalScore + 'static>(
        self,
        env: &BayesianStructure,
        reward: &DagReward<S>,
        steps: usize,
        samples: usize,
        rng: &mut Rng,
    ) -> Result<GraphStates> {
        match self {
            Self::Orders => order_samples(env, reward, steps, samples, rng),
            Self::Graphs => graph_samples(env.env(), reward, steps, samples, rng),
            Self::Policy | Self::Greedy => {
                let best = greedy_search(env, reward, steps, rng)?.swap_remove(0).0;
                Ok(vec![best].into())
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
) -> Result<GraphStates> {
    let each = samples.div_ceil(CHAINS);
    let found = OrderSamples::draw(env, reward, CHAINS, each, (steps / each).max(1), rng)?;
    if !found.is_corrected {
        tell(
            "some graphs fit too many orders to count them: a graph counts once for each order that it fits",
        );
    }
    Ok(found.pooled())
}

/// Samples graphs by Markov chains over graphs, in blocks of equal size. A fifth of the steps come before the
/// first sample.
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
    for round in 1..=thin * (each + each / 4) {
        chains.round(env, reward, None, rng)?;
        if round > thin * (each / 4) && round % thin == 0 {
            for (block, graph) in blocks.iter_mut().zip(chains.objects().graphs()) {
                block.push(graph.clone());
            }
        }
    }
    Ok(blocks.concat().into())
}

/// Returns a data set of graphs that Markov chains over orders sampled, for a policy to learn from.
pub(super) fn chain_data<S: LocalScore>(
    structures: &BayesianStructure,
    reward: &DagReward<S>,
    steps: usize,
    rng: &mut Rng,
) -> Result<ReplayBuffer<GraphEnv>> {
    let env = structures.env();
    let graphs = order_samples(structures, reward, steps, GIVEN_GRAPHS, rng)?;
    let log_rewards = log_rewards(reward, &graphs, None)?;
    let uniform = env.uniform();
    let walks = Sampler::new(env, &uniform).backward(&graphs, rng)?.walks(env)?;
    let (eviction, draw) = NEWEST;
    let mut data =
        ReplayBuffer::new(ReplayConfig { capacity: graphs.len(), eviction, draw })?.terminal_only();
    data.add(env, &walks, &log_rewards)?;
    Ok(data)
}

/// The number of graphs that the chains give a policy to learn from.
const GIVEN_GRAPHS: usize = 10_000;
