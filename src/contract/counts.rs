//! The law of counts: as many moves forward as backward between two states, weighted by automorphisms up to
//! isomorphism.

use std::collections::BTreeMap;

use super::Budget;
use super::env::BATCH;
use super::moves::Expansion;
use crate::env::{Direction, EnumerableEnv, Moves, Rows, Slots, describe_state};
use crate::{Error, Result};

/// Checks the counts of moves between these states, of which all moves were made, and their children.
///
/// # Errors
/// [`Error::Contract`] naming two states whose counts are wrong; errors of steps and of the symmetry.
pub(super) fn check_counts<E: EnumerableEnv>(forward: &Expansion<'_, E>, budget: &Budget<'_>) -> Result<()> {
    let (env, states) = (forward.env, forward.states);
    let Some(of_parent) = log_symmetry(env, states)? else { return Ok(()) };
    // For each parent and class of children: the number of moves, and one child of the class.
    let mut transitions: BTreeMap<(usize, &E::Key), (usize, usize)> = BTreeMap::new();
    for (k, (&row, key)) in forward.rows.iter().zip(&forward.keys_after).enumerate() {
        if forward.is_whole[row] && !forward.exit[k] {
            transitions.entry((row, key)).or_insert((0, k)).0 += 1;
        }
    }
    let apart = transitions.len().div_ceil(budget.states.max(1)).max(1);
    let pairs: Vec<(usize, usize, usize)> =
        transitions.into_iter().step_by(apart).map(|((row, _), (n, k))| (row, n, k)).collect();
    // Limits the number of parents in memory.
    for pairs in pairs.chunks(BATCH) {
        let children = forward.after.select(&pairs.iter().map(|&(_, _, k)| k).collect::<Vec<_>>());
        let Some(of_child) = log_symmetry(env, &children)? else { return Ok(()) };
        let back = Moves::new(&env.masks(Direction::Backward, &children));
        let mut parents = children.select(&back.rows);
        env.step(Direction::Backward, &mut parents, &Slots(back.slots))?;
        let mut n_backward = vec![0; pairs.len()];
        for (&place, key) in back.rows.iter().zip(env.keys(&parents)) {
            n_backward[place] += usize::from(key == forward.keys[pairs[place].0]);
        }
        for (place, (&(row, n_forward, _), n_backward)) in pairs.iter().zip(n_backward).enumerate() {
            let (before, after) = (of_parent[row], of_child[place]);
            let short = (n_forward as f64).ln() + after - (n_backward as f64).ln() - before;
            if short.abs() <= 1e-6 {
                continue;
            }
            let parent = describe_state(env, states, row);
            let child = describe_state(env, &children, place);
            let remedy = if env.merges_isomorphic() { remedy(short.exp()) } else { String::new() };
            return Err(Error::contract(
                "N_forward |Aut(child)| = N_backward |Aut(parent)| between any two states",
                format!(
                    "{n_forward} moves forward from {parent} to {child}, {n_backward} back; log |Aut| less that of the \
                     initial state {before} and {after}{remedy}"
                ),
            ));
        }
    }
    Ok(())
}

/// Returns log |Aut| of each state, less that of the initial state; `None` if isomorphic states aren't
/// corrected for symmetry.
fn log_symmetry<E: EnumerableEnv>(env: &E, states: &E::States) -> Result<Option<Vec<f64>>> {
    let known = env.symmetry().log_symmetry(states)?;
    if known.is_none() && !env.merges_isomorphic() {
        return Ok(Some(vec![0.0; states.len()]));
    }
    Ok(known)
}

/// Returns the remedy if the number of backward moves must be multiplied by `short`.
fn remedy(short: f64) -> String {
    let (times, way) = if short < 1.0 { (1.0 / short, "forward") } else { (short, "back") };
    if !times.is_finite() || (times - times.round()).abs() > 1e-6 {
        return String::new();
    }
    format!(
        "; there would have to be {} times as many moves {way}. An action that adds several alike nodes at once (a ring) needs so many \
         columns in its backward block, each of which undoes the same; else `GraphRules::log_automorphisms` isn't ln |Aut|",
        times.round()
    )
}
