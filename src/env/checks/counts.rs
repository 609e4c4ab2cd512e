//! As many moves forward as backward between two states, weighted by automorphisms up to isomorphism.

use std::collections::BTreeMap;

use crate::env::{Direction, EnumerableEnv, InnerMoves, Moves, Rows, Slots, describe_state};
use crate::{Error, Result};

/// Children whose parents are in memory at once.
const AT_ONCE: usize = 256;

/// Checks the counts of moves between these states and what they lead to; of so many pairs, where there are more.
///
/// # Errors
/// [`Error::Contract`] naming two states between which they are wrong; those of steps and of symmetry.
pub(crate) fn check_counts<E: EnumerableEnv>(env: &E, states: &E::States, most: usize) -> Result<()> {
    let InnerMoves { rows, slots, .. } = Moves::of(&env.masks(Direction::Forward, states)).inner();
    let mut after = states.select(&rows);
    env.step(Direction::Forward, &mut after, &slots)?;
    let keys_after = env.keys(&after);
    let symmetry = |states: &E::States| -> Result<Option<Vec<f64>>> {
        Ok(match env.symmetry().log_symmetry(states)? {
            None if env.merges_isomorphic() => None,
            None => Some(vec![0.0; states.len()]),
            known => known,
        })
    };
    let keys = env.keys(states);
    // For each parent and class of children: moves there, and one child of the class.
    let mut transitions: BTreeMap<(usize, &E::Key), (usize, usize)> = BTreeMap::new();
    for (k, (&row, key)) in rows.iter().zip(&keys_after).enumerate() {
        transitions.entry((row, key)).or_insert((0, k)).0 += 1;
    }
    let apart = transitions.len().div_ceil(most).max(1);
    let pairs: Vec<_> = transitions.iter().step_by(apart).collect();
    let children = after.select(&pairs.iter().map(|&(_, &(_, k))| k).collect::<Vec<_>>());
    let (Some(of_parent), Some(of_child)) = (symmetry(states)?, symmetry(&children)?) else {
        return Ok(());
    };
    let mut n_backward = vec![0; pairs.len()];
    for start in (0..pairs.len()).step_by(AT_ONCE) {
        let places: Vec<usize> = (start..pairs.len().min(start + AT_ONCE)).collect();
        let some = children.select(&places);
        let back = Moves::of(&env.masks(Direction::Backward, &some));
        let mut parents = some.select(&back.rows);
        env.step(Direction::Backward, &mut parents, &Slots(back.slots))?;
        for (&row, key) in back.rows.iter().zip(env.keys(&parents)) {
            n_backward[places[row]] += usize::from(key == keys[pairs[places[row]].0.0]);
        }
    }
    for (place, (&(row, _), &(n_forward, _))) in pairs.into_iter().enumerate() {
        let n_backward = n_backward[place];
        let short = (n_forward as f64).ln() + of_child[place] - (n_backward as f64).ln() - of_parent[row];
        if short.abs() > 1e-6 {
            let detail = format!(
                "{n_forward} moves forward from {} to {}, {n_backward} back; log |Aut| less that of the initial state {} and {}{}",
                describe_state(env, states, row),
                describe_state(env, &children, place),
                of_parent[row],
                of_child[place],
                if env.merges_isomorphic() { remedy(short.exp()) } else { String::new() }
            );
            return Err(Error::contract(
                "N_forward |Aut(child)| = N_backward |Aut(parent)| between any two states",
                detail,
            ));
        }
    }
    Ok(())
}

/// The remedy for moves back that would have to be `short` times as many.
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
