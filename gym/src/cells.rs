//! The rules of vectors whose empty entries are set one at a time, in any order.

use gfn::env::{Direction, VectorRules};

/// The rules of vectors whose empty entries are set one at a time, in any order. An entry is 0 while it is
/// empty, and its value plus 1 afterwards. A backward slot is the index of the entry that it empties. Setting
/// the last empty entry ends the trajectory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cells {
    pub(crate) n: usize,
    pub(crate) n_values: usize,
    /// The order of forward slots, for `n` entries with `n_values` values each. If `true`, setting `entry` to
    /// `value` has the slot `value * n + entry`; if `false`, the slot `entry * n_values + value`.
    pub(crate) by_value: bool,
}

impl Cells {
    /// Returns the entry and the value of a forward slot.
    fn split(&self, slot: usize) -> (usize, usize) {
        if self.by_value {
            (slot % self.n, slot / self.n)
        } else {
            (slot / self.n_values, slot % self.n_values)
        }
    }
}

impl VectorRules for Cells {
    fn width(&self) -> usize {
        self.n
    }
    fn n_values(&self) -> usize {
        self.n_values + 1
    }
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { self.n * self.n_values } else { self.n }
    }
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, row: &[u16]) -> bool {
        row.iter().all(|&x| x > 0)
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        let is_forward = direction == Direction::Forward;
        if is_forward && !self.by_value {
            let entries = legal.chunks_exact_mut(self.n_values);
            for (legal, &x) in entries.zip(row) {
                legal.fill(x == 0);
            }
            return;
        }
        for values in legal.chunks_exact_mut(self.n) {
            for (legal, &x) in values.iter_mut().zip(row) {
                *legal = (x == 0) == is_forward;
            }
        }
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        if slot >= self.n_moves(direction) {
            return None;
        }
        if direction == Direction::Forward {
            let (place, value) = self.split(slot);
            let entry = row.get_mut(place).filter(|entry| **entry == 0)?;
            *entry = value as u16 + 1;
            return Some(place);
        }
        let entry = row.get_mut(slot).filter(|entry| **entry > 0)?;
        let value = usize::from(*entry - 1);
        *entry = 0;
        Some(if self.by_value { value * self.n + slot } else { slot * self.n_values + value })
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        match (direction, self.split(slot)) {
            (Direction::Forward, (place, value)) => {
                format!("set entry {place} of {row:?} (values + 1, 0 if empty) to the value {value}")
            }
            (Direction::Backward, _) => format!("clear entry {slot} of {row:?} (values + 1, 0 if empty)"),
        }
    }
}
