//! Rules that decide about all moves of a batch in one call, because each call is expensive.

use super::{Direction, Masks, Rows};

/// Rules that decide about all moves of a batch in one call. Use this trait for rules in another language,
/// where each call is expensive.
///
/// An environment with such rules also has rules of single states, whose method `batched` returns these rules
/// ([`VectorRules`](super::VectorRules::batched), [`GraphRules`](crate::graph::GraphRules::batched)). A move
/// is allowed only if both kinds of rules allow it. A backward move is allowed if its forward move is allowed
/// in the parent; the rules decide about the parents of all backward moves in one call, too. If a method
/// returns too short a list, the moves without an entry are forbidden.
///
/// The type `M` is a move. A move of vectors is the row of its state in the batch, and a slot. A move of
/// graphs is a [`BatchMove`](crate::graph::BatchMove).
///
/// ```
/// use gfn::env::BatchRules;
/// use gfn::graph::*;
///
/// /// At most three edges at a node.
/// struct Thin;
///
/// impl BatchRules<GraphStates, BatchMove> for Thin {
///     fn permits(&self, states: &GraphStates, moves: &[BatchMove]) -> Vec<bool> {
///         let degree = |m: &BatchMove, a| states.graphs()[m.row].degree(a);
///         moves.iter().map(|m| degree(m, m.action.a).max(degree(m, m.action.b)) < 3).collect()
///     }
/// }
///
/// impl GraphRules for Thin {
///     fn batched(&self) -> Option<&dyn BatchRules<GraphStates, BatchMove>> {
///         Some(self)
///     }
/// }
///
/// let kind = GraphKind::Undirected;
/// let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
/// let env = GraphEnv::new(Thin, actions, GraphState::with_nodes(kind, 5))?;
/// // Of 1,024 labelled graphs of five nodes.
/// assert_eq!(gfn::env::StateGraph::build(&env, 2_000)?.len(), 768);
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait BatchRules<S: Rows, M>: Send + Sync {
    /// Returns an entry for each of `moves`, which are forward moves: `true` if the move is allowed. The list
    /// has only moves that the rules of single states allow.
    fn permits(&self, states: &S, moves: &[M]) -> Vec<bool>;

    /// Returns an entry for each state: `true` if some sequence of forward moves builds the state. The
    /// default is `true` for all states.
    fn is_reachable(&self, states: &S) -> Vec<bool> {
        vec![true; states.len()]
    }

    /// Returns an entry for each state: `true` if the state may be a finished object. The default is `true`
    /// for all states.
    fn can_end(&self, states: &S) -> Vec<bool> {
        vec![true; states.len()]
    }
}

/// Removes from the masks of a batch the moves that `rules` forbid.
///
/// `forward(row, slot, at)` returns the forward move of a slot of state `row`, or `None` to forbid the slot.
/// For a backward slot, the result is the forward move that the slot undoes, and the parent in which that
/// move is made. `batch` makes one batch of the parents of all backward slots, and `at` is the index that the
/// parent of this slot has in that batch.
pub(crate) fn restrict<S: Rows, M, P>(
    rules: &dyn BatchRules<S, M>,
    states: &S,
    masks: &mut Masks,
    forward: impl Fn(usize, u32, usize) -> Option<(M, Option<P>)>,
    batch: impl FnOnce(Vec<P>) -> S,
) {
    let mut moves = Vec::new();
    let mut places = Vec::new();
    let mut parents = Vec::new();
    let mut exits = Vec::new();
    for row in 0..states.len() {
        for slot in masks.legal_slots(row).collect::<Vec<_>>() {
            let place = masks.slot_ptr[row] + slot as usize;
            if masks.is_exit(row, slot) {
                exits.push((row, place));
            } else if let Some((action, parent)) = forward(row, slot, parents.len()) {
                moves.push(action);
                places.push(place);
                parents.extend(parent);
            } else {
                masks.legal[place] = false;
            }
        }
    }
    let mut keep = |place: usize, permitted: Option<&bool>| masks.legal[place] &= permitted == Some(&true);
    if !moves.is_empty() {
        let parents = (masks.direction == Direction::Backward).then(|| batch(parents));
        if let Some(parents) = &parents {
            let reachable = rules.is_reachable(parents);
            for (k, &place) in places.iter().enumerate() {
                keep(place, reachable.get(k));
            }
        }
        let permitted = rules.permits(parents.as_ref().unwrap_or(states), &moves);
        for (k, &place) in places.iter().enumerate() {
            keep(place, permitted.get(k));
        }
    }
    if !exits.is_empty() {
        let permitted = rules.can_end(states);
        for &(row, place) in &exits {
            keep(place, permitted.get(row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::env::{StateGraph, VectorEnv, VectorRules, VectorStates};

    /// Rules whose moves add 1 to one of two coordinates, up to 2. No move leads to a state with equal
    /// coordinates. A trajectory can't end in a state whose coordinates sum to 1.
    struct Steps {
        batched: bool,
    }

    fn allowed(row: &[u16], slot: usize) -> bool {
        let mut next = row.to_vec();
        next[slot] += 1;
        next[0] != next[1]
    }

    fn ends(row: &[u16]) -> bool {
        matches!(row.iter().sum::<u16>(), 0 | 2 | 3)
    }

    impl VectorRules for Steps {
        fn width(&self) -> usize {
            2
        }
        fn n_values(&self) -> usize {
            3
        }
        fn n_moves(&self, _: Direction) -> usize {
            2
        }
        fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
            match direction {
                Direction::Forward if slot < 2 && row[slot] < 2 && (self.batched || allowed(row, slot)) => {
                    row[slot] += 1
                }
                Direction::Backward if slot < 2 && row[slot] > 0 => {
                    row[slot] -= 1;
                    if !self.batched && !(allowed(row, slot) && (row[0] != row[1] || row[0] == 0)) {
                        row[slot] += 1;
                        return None;
                    }
                }
                _ => return None,
            }
            Some(slot)
        }
        fn can_end(&self, row: &[u16]) -> bool {
            self.batched || ends(row)
        }
        fn batched(&self) -> Option<&dyn BatchRules<VectorStates, (usize, u32)>> {
            self.batched.then_some(self)
        }
    }

    impl BatchRules<VectorStates, (usize, u32)> for Steps {
        fn permits(&self, states: &VectorStates, moves: &[(usize, u32)]) -> Vec<bool> {
            moves.iter().map(|&(at, slot)| allowed(states.row(at), slot as usize)).collect()
        }
        fn is_reachable(&self, states: &VectorStates) -> Vec<bool> {
            states.rows().map(|row| row[0] != row[1] || row[0] == 0).collect()
        }
        fn can_end(&self, states: &VectorStates) -> Vec<bool> {
            states.rows().map(ends).collect()
        }
    }

    #[test]
    fn rules_of_batches_are_those_of_single_vectors() {
        let single = VectorEnv::new(Steps { batched: false });
        let batched = VectorEnv::new(Steps { batched: true });
        let spaces = [&single, &batched].map(|env| StateGraph::build(env, 100).unwrap());
        assert_eq!((spaces[0].len(), spaces[0].ends()), (spaces[1].len(), spaces[1].ends()));
        // The states are (0, 0), the states (1, 0), (2, 0) and (2, 1), and the mirror images of these three.
        assert_eq!(spaces[1].len(), 7);
        crate::contract::check_env(
            &batched,
            crate::contract::Budget::thorough().with_walks(50),
            &mut Rng::seeded(0),
        )
        .unwrap();
    }
}
