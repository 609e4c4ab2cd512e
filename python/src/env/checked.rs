//! Environments that are looked at before anything is trained on them.

use gfn::contract::{Budget, Coverage, WaysBack, check_env, check_graph_env};
use gfn::{Error, Result, Rng};

use super::EnvKind;
use crate::watch::Watch;

/// Looks at the states of this many random walks, and at all ways back from them: how many states were visited, and how many in all
/// were seen, unless there are too many.
pub(super) fn check(kind: &EnvKind, walks: usize, seed: u64) -> Result<(usize, Option<usize>)> {
    let (rng, watch) = (&mut Rng::seeded(seed), Watch::new());
    let look = || watch.look();
    let budget = Budget::thorough().with_walks(walks).with_watch(&look);
    let Coverage { visited, ways_back } = match kind {
        EnvKind::Graphs { env, .. } => check_graph_env(env, budget, rng)?,
        EnvKind::Vectors(vectors) => check_env(&vectors.env, budget, rng)?,
        EnvKind::Structures(of) => check_env(of.env(), budget, rng)?,
        EnvKind::Box(_) | EnvKind::Line(_) | EnvKind::Diffusion(_) => {
            let expected = "one whose moves can be listed: graphs, vectors, acyclic graphs";
            return Err(Error::config("an environment to be checked", "one of points", expected));
        }
    };
    let states = match ways_back {
        WaysBack::All { states } => Some(states),
        WaysBack::Drawn { .. } => None,
    };
    Ok((visited, states))
}
