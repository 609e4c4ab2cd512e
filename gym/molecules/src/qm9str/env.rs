use gfn::env::{Direction, VectorEnv, VectorRules, VectorStates};
use gfn::{Error, Result};
use gfn_gym::sequence::{SequenceTensors, filled};

use super::BLOCKS;

/// The number of building blocks of a finished string.
pub(super) const LENGTH: usize = 5;
const N: usize = BLOCKS.len();

/// The rules of strings of up to five building blocks, which grow at both ends.
///
/// *States.* A state has five entries. Each entry is the index of a block plus 1, or 0 after the last
/// block. Use the features `KHot::new(5, 12)`. *Forward slots.* Slot `k` from 0 to 10 appends block `k`,
/// and slot `11 + k` prepends it. *Backward slots.* Slot 0 removes the last block, and slot 1 removes the
/// first block. If a string has only one block, or only equal blocks, both backward slots lead to the same
/// parent, and two forward slots lead from there to the string. *End.* There is no exit action. The
/// trajectory ends with the fifth block.
///
/// A string and its reverse are different objects, even if their molecules are equal. The target is a
/// distribution over strings, because the table of scores has an entry for each string.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Qm9Str;

impl Qm9Str {
    /// The number of entries of a state.
    pub const ENTRIES: usize = LENGTH;
    /// The number of values that an entry of a state can have: one for each block, and one for an empty
    /// entry.
    pub const VALUES: usize = N + 1;
    /// The number of distinct finished strings.
    pub const N_TERMINAL: usize = N.pow(LENGTH as u32);

    /// Converts strings of blocks, given by the blocks' indices, into states.
    ///
    /// # Errors
    /// [`Error::Config`] for a string of more than five blocks, and for an index that isn't that of a
    /// block.
    pub fn states_of<B: AsRef<[u16]>>(&self, strings: &[B]) -> Result<VectorStates> {
        let mut entries = Vec::with_capacity(strings.len() * LENGTH);
        for (i, blocks) in strings.iter().map(AsRef::as_ref).enumerate() {
            if blocks.len() > LENGTH || blocks.iter().any(|&block| usize::from(block) >= N) {
                let got = format!("{blocks:?}");
                return Err(Error::config("a string of blocks", got, "at most five numbers, each below 11"));
            }
            entries.extend(blocks.iter().map(|block| block + 1));
            entries.resize((i + 1) * LENGTH, 0);
        }
        VectorStates::from_flat(LENGTH, entries)
    }

    /// Returns the [`VectorEnv`] with these rules.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        VectorEnv::new(*self).with_tensors(SequenceTensors {
            n_tokens: N,
            min_len: None,
            max_len: LENGTH,
            has_two_ends: true,
        })
    }

    /// Returns the indices of the blocks of a state, in the order of the string.
    #[must_use]
    pub fn blocks(row: &[u16]) -> Vec<u16> {
        row[..filled(row)].iter().map(|entry| entry - 1).collect()
    }
}

/// The backward slot that removes the last block.
const REMOVE_LAST: usize = 0;
/// The backward slot that removes the first block.
const REMOVE_FIRST: usize = 1;

impl VectorRules for Qm9Str {
    fn width(&self) -> usize {
        LENGTH
    }
    fn n_values(&self) -> usize {
        Self::VALUES
    }
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { 2 * N } else { 2 }
    }
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, row: &[u16]) -> bool {
        filled(row) == LENGTH
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        let len = filled(row);
        legal.fill(if direction == Direction::Forward { len < LENGTH } else { len > 0 });
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let len = filled(row);
        match direction {
            Direction::Forward if len < LENGTH && slot < N => {
                row[len] = slot as u16 + 1;
                Some(REMOVE_LAST)
            }
            Direction::Forward if len < LENGTH && slot < 2 * N => {
                row.copy_within(..len, 1);
                row[0] = (slot - N) as u16 + 1;
                Some(REMOVE_FIRST)
            }
            Direction::Backward if len > 0 && slot == REMOVE_LAST => {
                let block = usize::from(row[len - 1] - 1);
                row[len - 1] = 0;
                Some(block)
            }
            Direction::Backward if len > 0 && slot == REMOVE_FIRST => {
                let block = usize::from(row[0] - 1);
                row.copy_within(1..len, 0);
                row[len - 1] = 0;
                Some(N + block)
            }
            _ => None,
        }
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        let blocks = Self::blocks(row);
        let name = |block: usize| BLOCKS.get(block).map_or("?", |block| block.smiles);
        match direction {
            Direction::Forward if slot < N => format!("append {} to the blocks {blocks:?}", name(slot)),
            Direction::Forward => format!("prepend {} to the blocks {blocks:?}", name(slot - N)),
            Direction::Backward if slot == REMOVE_LAST => format!("remove the last of the blocks {blocks:?}"),
            Direction::Backward => format!("remove the first of the blocks {blocks:?}"),
        }
    }
}
