use super::check_env::{BATCH, visited_states};
use super::{Coverage, check_env_watched};
use crate::env::Rows;
use crate::graph::{
    GraphEnv, check_by_type, check_fits, check_initial_kept, check_reduced, check_relabelled, check_settings,
};
use crate::testing::broken;
use crate::{Result, Rng};

/// Labellings of each graph that it is compared with.
const LABELLINGS: usize = 8;

/// Checks a graph environment: all of [`check_env`](fn@crate::testing::check_env), and what only graphs have.
///
/// - Graphs can hold what the schema says, slots can be numbered in 32 bits, and graphs keep to the schema: kind, number of nodes,
///   classes, attributes.
/// - Up to isomorphism the same is legal in a graph and in the same under other labels, of which 8 are drawn.
/// - No move gives back what moves before it took of the initial graph.
/// - Every graph is reachable by what the environment says of it.
/// - Moves are at nodes that stay in [`GraphRules::reduced`](crate::graph::GraphRules::reduced).
/// - Backward masks that are given by type ([`BackwardRule::ByType`](crate::graph::BackwardRule::ByType)) are those that derivation
///   finds.
///
/// ```
/// use gfn::{testing::{check_graph_env, Triangles}, Rng};
/// check_graph_env(&Triangles::env(), 20, &mut Rng::seeded(0))?;
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`](crate::Error::Contract) naming the check and the state; [`Error::Config`](crate::Error::Config) for a schema
/// that no graph can keep to.
pub fn check_graph_env(env: &GraphEnv, n: usize, rng: &mut Rng) -> Result<Coverage> {
    check_graph_env_watched(env, n, rng, &mut || Ok(()))
}

/// Same as [`check_graph_env`], with a function that is called after every few hundred states, as
/// [`check_env_watched`] calls it.
///
/// # Errors
/// As for [`check_graph_env`]; those of `watch`.
pub fn check_graph_env_watched(
    env: &GraphEnv,
    n: usize,
    rng: &mut Rng,
    watch: &mut dyn FnMut() -> Result<()>,
) -> Result<Coverage> {
    check_settings(env)?;
    // The same walks as those of `check_env`.
    let visited = visited_states(env, n, &mut rng.clone())?;
    let (rows, mut labels): (Vec<usize>, _) = ((0..visited.len()).collect(), rng.clone());
    for rows in rows.chunks(BATCH) {
        let states = visited.select(rows);
        check_initial_kept(env, &states)?;
        for _ in 0..LABELLINGS {
            watch()?;
            check_relabelled(env, &states, usize::MAX, &mut labels)?;
        }
    }
    let coverage = check_env_watched(env, n, rng, watch)?;
    for graph in visited.graphs() {
        watch()?;
        check_fits(env.schema(), graph)?;
        if !env.rules().is_reachable(graph) {
            return Err(broken("`is_reachable` holds for every graph that forward moves build", graph.to_string()));
        }
    }
    check_by_type(env, &visited)?;
    check_reduced(env, &visited)?;
    Ok(coverage)
}
