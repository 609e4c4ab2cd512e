//! Masks: the slots of each state, and the legal slots among them.

use crate::direction::Direction;
use crate::{Error, Result};

/// A block: the table of an action type's slots in all states of a batch, `[rows, width]`, with one logit per
/// slot. The rows of state `i` are `row_ptr[i]..row_ptr[i + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The name of the action type, for messages.
    pub name: String,
    /// The number of columns of the block, which is the number of logits per row.
    pub width: usize,
    /// The index of the first row of each state in the block, followed by the number of rows of the block.
    pub row_ptr: Vec<usize>,
}

impl Block {
    /// Returns the number of rows of the block, for all states.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.row_ptr.last().copied().unwrap_or(0)
    }
}

/// The slots of a batch of states, and the legal slots among them.
///
/// Each action type has a block, a table of slots in which each state has some rows. A state's slots are its
/// rows of the first block (row by row), followed by its rows of the second block, and so on. An environment
/// with the same `A` actions in every state has one block, with one row per state and width `A`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masks {
    /// The direction of the actions.
    pub direction: Direction,
    /// The blocks (tables of slots), one for each action type, in the order in which a network returns their
    /// logits.
    pub blocks: Vec<Block>,
    /// The index in `legal` of each state's first slot, followed by the number of slots.
    pub slot_ptr: Vec<usize>,
    /// `true` for each slot that is legal, state by state.
    pub legal: Vec<bool>,
    /// `true` if the last slot of every state is the exit action.
    pub has_exit: bool,
}

impl Masks {
    /// Creates the masks of an environment with the same `width` actions in every state. `legal` has a row of
    /// `width` entries per state.
    ///
    /// # Errors
    /// [`Error::Shape`] if `legal` isn't a whole number of rows.
    pub fn dense(direction: Direction, width: usize, legal: Vec<bool>, has_exit: bool) -> Result<Self> {
        let n = legal.len().checked_div(width).unwrap_or(0);
        let whole = (n * width) as i64;
        let got = legal.len() as i64;
        if whole != got {
            return Err(Error::shape("mask", [whole], [got], "give one entry per action of each state"));
        }
        Ok(Self::from_rows(direction, n, width, legal, has_exit))
    }

    /// Creates the same masks as [`dense`](Self::dense), for `n` states. The caller ensures that `legal` has
    /// `n` rows of `width` entries.
    #[must_use]
    pub fn from_rows(direction: Direction, n: usize, width: usize, legal: Vec<bool>, has_exit: bool) -> Self {
        debug_assert_eq!(legal.len(), n * width, "one entry per action of each state");
        let row_ptr: Vec<usize> = (0..=n).collect();
        Self {
            direction,
            slot_ptr: row_ptr.iter().map(|i| i * width).collect(),
            blocks: vec![Block { name: "actions".into(), width, row_ptr }],
            legal,
            has_exit,
        }
    }

    /// Merges the blocks (tables of slots, one per action type) into one block with one row per state, which
    /// networks on vectors need. If states have different numbers of slots, the blocks don't change.
    #[must_use]
    pub fn in_one_block(mut self) -> Self {
        let width = self.slot_ptr.get(1).copied().unwrap_or(0);
        let several = self.blocks.len() > 1 || self.blocks.iter().any(|block| block.rows() != self.len());
        if several && self.slot_ptr.iter().enumerate().all(|(i, &slots)| slots == i * width) {
            let row_ptr = (0..self.slot_ptr.len()).collect();
            self.blocks = vec![Block { name: "actions".into(), width, row_ptr }];
        }
        self
    }

    /// Returns the number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slot_ptr.len() - 1
    }

    /// Returns `true` if there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns one entry per slot of state `row`: `true` if the slot is legal.
    ///
    /// # Panics
    /// If there is no state `row`.
    #[must_use]
    pub fn row(&self, row: usize) -> &[bool] {
        &self.legal[self.slot_ptr[row]..self.slot_ptr[row + 1]]
    }

    /// Returns the number of legal slots of state `row`.
    ///
    /// # Panics
    /// If there is no state `row`.
    #[must_use]
    pub fn n_legal(&self, row: usize) -> usize {
        count(self.row(row))
    }

    /// Returns the number of legal slots of state `row` below `slot`. The caller ensures that the state has
    /// this slot.
    pub(crate) fn n_legal_below(&self, row: usize, slot: u32) -> usize {
        count(&self.row(row)[..slot as usize])
    }

    /// Returns the legal slot of state `row` that has `n` legal slots below it; `None` if the state has at
    /// most `n` legal slots.
    pub(crate) fn nth_legal(&self, row: usize, n: usize) -> Option<u32> {
        let mut rest = n;
        let mut start = 0;
        // Parts of 32 slots are counted without branches, because a branch per slot would be mispredicted
        // often.
        for part in self.row(row).chunks(32) {
            let legal = count(part);
            if rest < legal {
                let slots = part.iter().enumerate().filter(|(_, legal)| **legal);
                return slots.map(|(slot, _)| start + slot as u32).nth(rest);
            }
            rest -= legal;
            start += part.len() as u32;
        }
        None
    }

    /// Iterates over the legal slots of state `row`, in ascending order.
    ///
    /// # Panics
    /// If there is no state `row`, or if the number of its slots doesn't fit in 32 bits (four gigabytes of
    /// masks for one state; [`Slots::slot`](super::Slots::slot) refuses such a number with an error).
    pub fn legal_slots(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        let row = self.row(row);
        assert!(
            row.len() <= u32::MAX as usize,
            "a state has {} slots, more than 32 bits can number",
            row.len()
        );
        row.iter().enumerate().filter(|(_, legal)| **legal).map(|(slot, _)| slot as u32)
    }

    /// Returns `true` if a slot of state `row` is the exit action.
    ///
    /// # Panics
    /// If there is no state `row`.
    #[must_use]
    pub fn is_exit(&self, row: usize, slot: u32) -> bool {
        self.has_exit && slot as usize + 1 == self.row(row).len()
    }

    /// Checks that `slot` is legal in state `row`.
    ///
    /// # Errors
    /// [`Error::IllegalAction`] if the slot isn't legal or doesn't exist. `detail` describes the action in
    /// the message.
    pub fn check(&self, row: usize, slot: u32, detail: impl FnOnce() -> String) -> Result<()> {
        let legal = self.row(row);
        if legal.get(slot as usize).copied() == Some(true) {
            return Ok(());
        }
        Err(Error::IllegalAction {
            row,
            direction: self.direction,
            slot: slot as usize,
            n_slots: legal.len(),
            n_legal: self.n_legal(row),
            // `detail` is called only for an existing slot, because it can't describe a slot that doesn't
            // exist.
            detail: if (slot as usize) < legal.len() { detail() } else { "there is no such slot".into() },
        })
    }
}

/// Returns the number of entries that are `true`. Parts are counted in bytes, so that a vector register holds
/// many counters.
fn count(legal: &[bool]) -> usize {
    legal.chunks(255).map(|part| usize::from(part.iter().map(|&legal| u8::from(legal)).sum::<u8>())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn legal_slots_are_counted_and_found() {
        let mut rng = Rng::seeded(0);
        for width in [1, 31, 32, 33, 255, 256, 700] {
            for legal in [0, 1, 50, 100] {
                let row: Vec<bool> = (0..width).map(|_| rng.below(100) < legal).collect();
                let masks = Masks::from_rows(Direction::Forward, 1, width, row.clone(), false);
                let slots: Vec<u32> = (0..width as u32).filter(|&slot| row[slot as usize]).collect();
                assert_eq!(masks.n_legal(0), slots.len());
                let found: Vec<u32> = (0..).map_while(|n| masks.nth_legal(0, n)).collect();
                assert_eq!(found, slots);
                for (n, &slot) in slots.iter().enumerate() {
                    assert_eq!(masks.n_legal_below(0, slot), n);
                }
            }
        }
    }
}
