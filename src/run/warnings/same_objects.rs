//! The rows of a batch that are one object, and what equal rows tell of log Z.

use crate::env::{Env, Grouping, Rows};

/// `true` if Z is at least each reward: where no two objects are ever equal, R may be a density, and above Z;
/// where symmetry isn't corrected
/// for, Z sums R / |Aut|.
pub(super) fn bounds_log_z<E: Env>(env: &E, terminal: &E::States) -> bool {
    let counts_whole =
        || env.symmetry().classes(terminal).is_none() || !matches!(env.symmetry().log_symmetry(terminal), Ok(None));
    terminal.group().merges() && counts_whole()
}

/// The groups of rows that are one object.
pub(super) fn objects<E: Env>(env: &E, states: &E::States) -> Grouping {
    env.symmetry().classes(states).map_or_else(|| states.group(), |classes| classes.grouping)
}

/// The groups of equal objects among the best one, which comes first, and these rows; `None` where equal
/// objects may be labelled differently and
/// nobody looks.
pub(super) fn with_best<E: Env>(env: &E, best: &E::States, states: &E::States, rows: &[usize]) -> Option<Grouping> {
    let mut all = best.clone();
    all.append(states.select(rows));
    match env.symmetry().classes(&all) {
        Some(classes) => Some(classes.grouping),
        None if !matches!(env.symmetry().log_symmetry(best), Ok(None)) => None,
        None => Some(all.group()),
    }
}
