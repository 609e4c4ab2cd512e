//! The law of counts: as many moves forward as backward between two states, weighted by automorphisms up to
//! isomorphism.

use std::collections::BTreeMap;

use super::Budget;
use super::env::BATCH;
use crate::env::{Direction, EnumerableEnv, InnerMoves, Moves, Rows, Slots, describe_state};
use crate::{Error, Result};

/// Checks the counts of moves between these states and their children. A limited budget leaves out states of
/// many moves.
///
/// # Errors
/// [`Error::Contract`] naming two states whose counts are wrong; errors of steps and of the symmetry.
pub(super) fn check_counts<E: EnumerableEnv>(env: &E, states: &E::States, budget: &Budget<'_>) -> Result<()> {
    let masks = env.masks(Direction::Forward, states);
    let mut n_moves = 0;
    let mut few = Vec::new();
    for row in 0..states.len() {
        if n_moves + masks.n_legal(row) <= budget.total_moves() {
            n_moves += masks.n_legal(row);
            few.push(row);
        }
    }
    let states = states.select(&few);
    let Some(of_parent) = log_symmetry(env, &states)? else { return Ok(()) };
    let keys = env.keys(&states);
    let InnerMoves { rows, slots, .. } = Moves::of(&env.masks(Direction::Forward, &states)).inner();
    let mut after = states.select(&rows);
    env.step(Direction::Forward, &mut after, &slots)?;
    let keys_after = env.keys(&after);
    // For each parent and class of children: the number of moves, and one child of the class.
    let mut transitions: BTreeMap<(usize, &E::Key), (usize, usize)> = BTreeMap::new();
    for (k, (&row, key)) in rows.iter().zip(&keys_after).enumerate() {
        transitions.entry((row, key)).or_insert((0, k)).0 += 1;
    }
    let apart = transitions.len().div_ceil(budget.states.max(1)).max(1);
    let pairs: Vec<(usize, usize, usize)> =
        transitions.into_iter().step_by(apart).map(|((row, _), (n, k))| (row, n, k)).collect();
    // Limits the number of parents in memory.
    for pairs in pairs.chunks(BATCH) {
        let children = after.select(&pairs.iter().map(|&(_, _, k)| k).collect::<Vec<_>>());
        let Some(of_child) = log_symmetry(env, &children)? else { return Ok(()) };
        let back = Moves::of(&env.masks(Direction::Backward, &children));
        let mut parents = children.select(&back.rows);
        env.step(Direction::Backward, &mut parents, &Slots(back.slots))?;
        let mut n_back = vec![0; pairs.len()];
        for (&place, key) in back.rows.iter().zip(env.keys(&parents)) {
            n_back[place] += usize::from(key == keys[pairs[place].0]);
        }
        for (place, &(row, n_forward, _)) in pairs.iter().enumerate() {
            let n_backward = n_back[place];
            let short = (n_forward as f64).ln() + of_child[place] - (n_backward as f64).ln() - of_parent[row];
            if short.abs() <= 1e-6 {
                continue;
            }
            let detail = format!(
                "{n_forward} moves forward from {} to {}, {n_backward} back; log |Aut| less that of the initial state {} and {}{}",
                describe_state(env, &states, row),
                describe_state(env, &children, place),
                of_parent[row],
                of_child[place],
                if env.merges_isomorphic() { remedy(short.exp()) } else { String::new() }
            );
            let law = "N_forward |Aut(child)| = N_backward |Aut(parent)| between any two states";
            return Err(Error::contract(law, detail));
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
         columns in its backward block, all of which undo the same; else `GraphRules::log_automorphisms` isn't ln |Aut|",
        times.round()
    )
}
