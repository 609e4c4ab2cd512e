//! The legal forward moves of many states, as one flat list.

use super::{Masks, Slots};
use crate::Rng;

/// The number of states that a policy or an environment processes in one call.
pub(crate) const CHUNK: usize = 2048;

/// The legal forward moves of a batch of states, one state after another.
pub(crate) struct Moves {
    pub(crate) rows: Vec<usize>,
    pub(crate) slots: Vec<u32>,
    /// `true` for each move that is the exit.
    pub(crate) exit: Vec<bool>,
}

impl Moves {
    pub(crate) fn new(masks: &Masks) -> Self {
        let mut out = Self { rows: Vec::new(), slots: Vec::new(), exit: Vec::new() };
        for row in 0..masks.len() {
            for slot in masks.legal_slots(row) {
                out.rows.push(row);
                out.slots.push(slot);
                out.exit.push(masks.is_exit(row, slot));
            }
        }
        out
    }

    /// Returns the moves that aren't the exit.
    pub(crate) fn inner(&self) -> InnerMoves {
        let places: Vec<usize> = (0..self.exit.len()).filter(|&k| !self.exit[k]).collect();
        let rows = places.iter().map(|&k| self.rows[k]).collect();
        let slots = Slots(places.iter().map(|&k| self.slots[k]).collect());
        InnerMoves { places, rows, slots }
    }
}

/// The moves of a list that lead to another state, which are all moves except exits.
pub(crate) struct InnerMoves {
    /// The index of each move in the list that includes exits.
    pub(crate) places: Vec<usize>,
    pub(crate) rows: Vec<usize>,
    pub(crate) slots: Slots,
}

/// Draws one legal move other than the exit, uniformly, for each state that has such a move. Returns the rows
/// of these states, and the slots of the moves.
pub(crate) fn random_moves(masks: &Masks, rng: &mut Rng) -> (Vec<usize>, Slots) {
    let mut rows = Vec::new();
    let mut slots = Vec::new();
    for row in 0..masks.len() {
        let options: Vec<u32> = masks.legal_slots(row).filter(|&slot| !masks.is_exit(row, slot)).collect();
        if !options.is_empty() {
            rows.push(row);
            slots.push(options[rng.below(options.len())]);
        }
    }
    (rows, Slots(slots))
}
