//! Classes of isomorphic graphs in a batch. A policy is evaluated once per class, and slots are renamed for
//! the other graphs.

use smallvec::SmallVec;

use crate::env::{Classes, Direction, Grouping, Slots};
use crate::graph::state::MIN_GRAPHS_PER_THREAD;
use crate::graph::{GraphEnv, GraphStates};
use crate::{Result, parallel};

/// The largest number of nodes of environments whose graphs are grouped. Larger graphs are hardly ever
/// isomorphic in a batch, so their canonical forms would cost more than they save.
const MAX_NODES: usize = 8;

/// Groups isomorphic rows; `None` if graphs can have more than 8 nodes, because that wouldn't pay.
pub(in crate::graph) fn group_isomorphic(env: &GraphEnv, states: &GraphStates) -> Option<Classes> {
    if env.schema().max_nodes > MAX_NODES {
        return None;
    }
    let canonical = parallel::map(states.graphs(), MIN_GRAPHS_PER_THREAD, |graph| env.canonical(graph));
    let mix = |hash: u64, &word: &u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hashes: Vec<u64> = canonical.iter().map(|c| c.key.words().iter().fold(0, mix)).collect();
    let grouping = Grouping::by(&hashes, |i, j| canonical[i].key == canonical[j].key);
    Some(Classes { grouping, orders: canonical.into_iter().map(|c| c.order).collect() })
}

/// Renames the actions of rows to the labels of the first rows of their classes, or with `is_from_first` from
/// those labels to the labels of the rows.
pub(in crate::graph) fn translate(
    env: &GraphEnv,
    direction: Direction,
    states: &GraphStates,
    classes: &Classes,
    rows: &[usize],
    actions: &Slots,
    is_from_first: bool,
) -> Result<Slots> {
    let pairs: Vec<(usize, u32)> = rows.iter().copied().zip(actions.0.iter().copied()).collect();
    let renamed = parallel::map(&pairs, MIN_GRAPHS_PER_THREAD, |&(row, slot)| {
        let first = classes.grouping.first[classes.grouping.of[row]];
        let (from, to) = if is_from_first { (first, row) } else { (row, first) };
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
