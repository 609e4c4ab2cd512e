//! Legality: the slots of each state, and which of them are legal.

use crate::direction::Direction;
use crate::{Error, Result};

/// One block of logits, `[rows, width]`: the states' rows one after another, `row_ptr[i]..row_ptr[i + 1]` those of state `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The name of its action type, for messages.
    pub name: String,
    /// Columns: logits per anchor row.
    pub width: usize,
    /// Where each state's rows start; its last entry is the number of rows.
    pub row_ptr: Vec<usize>,
}

impl Block {
    /// The number of rows of the whole block.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.row_ptr.last().copied().unwrap_or(0)
    }
}

/// The slots of a batch of states and which are legal.
///
/// A state's slots are its rows of the first block (row by row), then those of the second, and so on. A tensor environment
/// with `A` actions is the case of one block with one row per state and width `A`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masks {
    /// The direction that these are for.
    pub direction: Direction,
    /// The blocks, in the order of the logits that a network gives.
    pub blocks: Vec<Block>,
    /// Where each state's slots start in `legal`.
    pub slot_ptr: Vec<usize>,
    /// `true` for each slot that is legal, state by state.
    pub legal: Vec<bool>,
    /// `true` if the last slot of every state is the exit action.
    pub has_exit: bool,
}

impl Masks {
    /// The masks of a tensor environment: `legal` holds `n` rows of `width`.
    ///
    /// # Errors
    /// [`Error::Shape`] if `legal` isn't a whole number of rows.
    pub fn dense(direction: Direction, width: usize, legal: Vec<bool>, has_exit: bool) -> Result<Self> {
        let n = legal.len().checked_div(width).unwrap_or(0);
        let (whole, got) = ((n * width) as i64, legal.len() as i64);
        if whole != got {
            return Err(Error::shape("mask", [whole], [got], "give one entry per action of each state"));
        }
        Ok(Self::of_rows(direction, n, width, legal, has_exit))
    }

    /// The masks of a tensor environment that has made `n` rows of `width` entries itself: like [`dense`](Self::dense),
    /// where the size can't be wrong.
    #[must_use]
    pub fn of_rows(direction: Direction, n: usize, width: usize, legal: Vec<bool>, has_exit: bool) -> Self {
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

    /// The same slots as one block with a row per state, where all states have as many: what networks on vectors give logits for. Where
    /// they haven't, the blocks stay.
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

    /// The number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slot_ptr.len() - 1
    }

    /// `true` if there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The legality of each slot of state `row`.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[bool] {
        &self.legal[self.slot_ptr[row]..self.slot_ptr[row + 1]]
    }

    /// The number of legal slots of state `row`.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn n_legal(&self, row: usize) -> usize {
        self.row(row).iter().filter(|&&legal| legal).count()
    }

    /// The legal slots of state `row`, in ascending order.
    ///
    /// # Panics
    /// If there is no such row, or it has more slots than 32 bits can number (four gigabytes of masks for one state;
    /// [`Slots::slot`](super::Slots::slot) refuses them with an error).
    pub fn legal_slots(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        let row = self.row(row);
        assert!(row.len() <= u32::MAX as usize, "a state has {} slots, more than 32 bits can number", row.len());
        row.iter().enumerate().filter(|(_, legal)| **legal).map(|(slot, _)| slot as u32)
    }

    /// `true` if a slot of state `row` is the exit action's.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn is_exit(&self, row: usize, slot: u32) -> bool {
        self.has_exit && slot as usize + 1 == self.row(row).len()
    }

    /// Checks that `slot` is legal in state `row`.
    ///
    /// # Errors
    /// [`Error::IllegalAction`]; `detail` says in words what the action would have done.
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
            // A number that is no slot can't be described.
            detail: if (slot as usize) < legal.len() { detail() } else { "there is no such slot".into() },
        })
    }
}
