//! Rows of a batch that are one object, and the bound on log Z that follows from repeated objects.

use crate::env::{Env, Grouping, Rows};

/// Returns `true` if Z is at least each reward. It may be smaller if no two objects are ever equal, because R may be
/// a density, and if symmetry isn't corrected for, because Z then sums R / |Aut|.
pub(super) fn bounds_log_z<E: Env>(env: &E, terminal: &E::States) -> bool {
    let counts_whole =
        || env.symmetry().classes(terminal).is_none() || !matches!(env.symmetry().log_symmetry(terminal), Ok(None));
    terminal.group().merges() && counts_whole()
}

/// Groups rows by equal objects.
pub(super) fn objects<E: Env>(env: &E, states: &E::States) -> Grouping {
    env.symmetry().classes(states).map_or_else(|| states.group(), |classes| classes.grouping)
}

/// Groups the best object, which comes first, and these rows by equal objects. Returns `None` if equal objects may
/// be labelled differently and the environment doesn't compare them.
pub(super) fn with_best<E: Env>(env: &E, best: &E::States, states: &E::States, rows: &[usize]) -> Option<Grouping> {
    let mut all = best.clone();
    all.append(states.select(rows));
    match env.symmetry().classes(&all) {
        Some(classes) => Some(classes.grouping),
        None if !matches!(env.symmetry().log_symmetry(best), Ok(None)) => None,
        None => Some(all.group()),
    }
}
