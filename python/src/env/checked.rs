//! Environments that are looked at before anything is trained on them.

use gfn::testing::{Coverage, WaysBack, check_env_watched, check_graph_env_watched};
use gfn::{Error, Result, Rng};

use super::EnvKind;
use crate::watch::Watch;

/// Looks at the states of this many random walks, and at all ways back from them: how many states were visited, and how many in all
/// were seen, unless there are too many.
pub(super) fn check(kind: &EnvKind, walks: usize, seed: u64) -> Result<(usize, Option<usize>)> {
    let (rng, watch) = (&mut Rng::seeded(seed), Watch::new());
    let watch = &mut || watch.look();
    let Coverage { visited, ways_back } = match kind {
        EnvKind::Graphs { env, .. } => check_graph_env_watched(env, walks, rng, watch)?,
        EnvKind::Vectors(vectors) => check_env_watched(&vectors.env, walks, rng, watch)?,
        EnvKind::Structures(of) => check_env_watched(of.env(), walks, rng, watch)?,
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
