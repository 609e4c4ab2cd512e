//! Rules of vectors that are asked about whole batches: for authors to whom a call costs more than a vector.

use super::{Direction, Masks, Rows, VectorRules, VectorStates};

/// What [`VectorRules`] say vector by vector, said of a batch at once: rules in another language, where each call has a price.
///
/// They forbid on top of the rules whose [`batched`](VectorRules::batched) gives them. Backward moves are derived from the forward
/// ones: the vectors that they lead to are asked about in one batch, too. An answer that is too short forbids what it leaves out.
pub trait BatchVectorRules: Send + Sync {
    /// Which of these forward moves are allowed, of those that the rules of single vectors allow: each is the place of a vector in the
    /// batch and a slot.
    fn permits(&self, states: &VectorStates, moves: &[(usize, u32)]) -> Vec<bool>;

    /// False for vectors that no sequence of forward moves builds; none, by default.
    fn is_reachable(&self, states: &VectorStates) -> Vec<bool> {
        vec![true; states.len()]
    }

    /// Which of these vectors can be the end, where trajectories end by an exit; all, by default.
    fn can_end(&self, states: &VectorStates) -> Vec<bool> {
        vec![true; states.len()]
    }
}

/// Forbids in the masks of a batch what the rules of batches forbid.
pub(super) fn restrict<R: VectorRules>(
    rules: &R,
    batched: &dyn BatchVectorRules,
    states: &VectorStates,
    masks: &mut Masks,
) {
    let (mut moves, mut places, mut exits) = (Vec::new(), Vec::new(), Vec::new());
    let mut parents = Vec::new();
    for row in 0..states.len() {
        let first = masks.slot_ptr[row];
        for slot in masks.legal_slots(row) {
            let place = first + slot as usize;
            if masks.is_exit(row, slot) {
                exits.push((row, place));
            } else if masks.direction == Direction::Forward {
                moves.push((row, slot));
                places.push(place);
            } else {
                let mut parent = states.row(row).to_vec();
                if let Some(forward) = rules.apply(Direction::Backward, &mut parent, slot as usize) {
                    moves.push((places.len(), forward as u32));
                    places.push(place);
                    parents.append(&mut parent);
                }
            }
        }
    }
    let mut forbid = |place: usize, permitted: Option<&bool>| {
        if permitted != Some(&true) {
            masks.legal[place] = false;
        }
    };
    if !moves.is_empty() {
        let permitted = match parents.is_empty() {
            true => batched.permits(states, &moves),
            false => match VectorStates::from_flat(rules.width(), parents) {
                Ok(parents) => {
                    let reachable = batched.is_reachable(&parents);
                    let permitted = batched.permits(&parents, &moves);
                    permitted.iter().zip(reachable).map(|(&permitted, reachable)| permitted && reachable).collect()
                }
                Err(_) => Vec::new(),
            },
        };
        places.iter().enumerate().for_each(|(k, &place)| forbid(place, permitted.get(k)));
    }
    if !exits.is_empty() {
        let permitted = batched.can_end(states);
        exits.iter().for_each(|&(row, place)| forbid(place, permitted.get(row)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::env::{StateGraph, VectorEnv};

    /// Steps along two axes to at most 2, never onto the diagonal beyond the origin; sums of 1 are no ends.
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
        type Key = Vec<u16>;
        fn width(&self) -> usize {
            2
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
        fn key(&self, row: &[u16]) -> Vec<u16> {
            row.to_vec()
        }
        fn can_end(&self, row: &[u16]) -> bool {
            self.batched || ends(row)
        }
        fn batched(&self) -> Option<&dyn BatchVectorRules> {
            self.batched.then_some(self)
        }
    }

    impl BatchVectorRules for Steps {
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
        let (single, batched) = (VectorEnv(Steps { batched: false }), VectorEnv(Steps { batched: true }));
        let spaces = [&single, &batched].map(|env| StateGraph::build(env, 100).unwrap());
        assert_eq!((spaces[0].len(), spaces[0].ends()), (spaces[1].len(), spaces[1].ends()));
        // (0, 0), and (1, 0), (2, 0), (2, 1) with their mirror images.
        assert_eq!(spaces[1].len(), 7);
        crate::testing::check_env(&batched, 50, &mut Rng::seeded(0)).unwrap();
    }
}
