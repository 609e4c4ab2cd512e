//! Rows of a batch that are one graph up to isomorphism: a policy is asked about one of them, and slots are renamed.

use smallvec::SmallVec;

use crate::env::{Classes, Direction, Grouping, Slots};
use crate::graph::state::MIN_GRAPHS_PER_THREAD;
use crate::graph::{GraphEnv, GraphStates};
use crate::{Result, parallel};

/// Larger graphs hardly meet in a batch, and finding their canonical order would be for nothing.
const MAX_NODES: usize = 8;

/// Groups isomorphic rows; `None` where that wouldn't pay.
pub(in crate::graph) fn classes(env: &GraphEnv, states: &GraphStates) -> Option<Classes> {
    if env.schema().max_nodes > MAX_NODES {
        return None;
    }
    let canonical = parallel::map(states.graphs(), MIN_GRAPHS_PER_THREAD, |graph| env.canonical(graph));
    let mix = |hash: u64, &word: &u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hashes: Vec<u64> = canonical.iter().map(|c| c.key.words().iter().fold(0, mix)).collect();
    let grouping = Grouping::by(&hashes, |i, j| canonical[i].key == canonical[j].key);
    Some(Classes { grouping, orders: canonical.into_iter().map(|c| c.order).collect() })
}

/// Renames actions of rows as the first rows of their classes name them, or (`back`) the other way round.
pub(in crate::graph) fn translate(
    env: &GraphEnv,
    direction: Direction,
    states: &GraphStates,
    classes: &Classes,
    rows: &[usize],
    actions: &Slots,
    back: bool,
) -> Result<Slots> {
    let pairs: Vec<(usize, u32)> = rows.iter().copied().zip(actions.0.iter().copied()).collect();
    let renamed = parallel::map(&pairs, MIN_GRAPHS_PER_THREAD, |&(row, slot)| {
        let first = classes.grouping.first[classes.grouping.of[row]];
        let (from, to) = if back { (first, row) } else { (row, first) };
        if from == to {
            return Ok(slot);
        }
        let mut names: SmallVec<[u32; 16]> = SmallVec::from_elem(0, classes.orders[from].len());
        for (&a, &b) in classes.orders[from].iter().zip(&classes.orders[to]) {
            names[a as usize] = b;
        }
        let (from, to) = (&states.graphs()[from], &states.graphs()[to]);
        let (kind, action_type, action) = env.actions().decode(direction, from, slot)?;
        env.actions().encode(direction, to, kind, action_type.rename(direction, action, &names, from, to))
    });
    renamed.into_iter().collect::<Result<_>>().map(Slots)
}
