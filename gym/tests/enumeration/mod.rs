//! The enumeration of small environments, which the contract tests share.

use gfn::Result;
use gfn::env::StateGraph;
use gfn::env::{EnumerableEnv, Reward};
use gfn::metrics::{Distances, ExactPolicy};
use gfn::policy::UniformPolicy;

/// Enumerates an environment. Returns the number of states, the number of moves, and log Z. Checks that the
/// policy of the exact flows samples the target.
pub(crate) fn enumerate<E: EnumerableEnv>(
    env: &E,
    reward: &impl Reward<E::States>,
) -> Result<(usize, usize, f64)> {
    let graph = StateGraph::build(env, 1 << 17)?;
    let target = graph.target_distribution(reward, None)?;
    let exact = ExactPolicy::new(&graph, env, &UniformPolicy, reward)?;
    let sampled = graph.terminating_distribution(env, &exact, None)?;
    let distances = Distances::between(&sampled.probs, &target.probs)?;
    assert!(distances.l1 < 1e-9, "{distances:?}");
    Ok((graph.len(), graph.n_moves(), target.log_z))
}
