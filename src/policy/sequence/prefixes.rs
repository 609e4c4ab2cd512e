//! States of sequence environments as prefixes, which sequence networks take as inputs.

use tch::{Device, Tensor};

use crate::env::{Rows, VectorStates};
use crate::tensor::upload;
use crate::{Error, Result};

/// The layout of states in an environment that writes sequences from left to right.
///
/// ```
/// use gfn::policy::SequenceLayout;
/// // Sequences of up to 8 letters; the four letters are 1 to 4, and 0 marks an unwritten position.
/// let layout = SequenceLayout { values: 5, length: 8, unset: 0 };
/// # let _ = layout;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequenceLayout {
    /// The number of values that an entry can have. The values are `0..values`.
    pub values: usize,
    /// The number of entries of a state, which is the length of the longest sequence.
    pub length: usize,
    /// The value of an entry that isn't written yet: one of `0..values` or any other number.
    pub unset: u16,
}

impl SequenceLayout {
    /// Returns the number of different inputs that a network must accept: the values and the start symbol.
    pub(super) fn n_inputs(&self) -> i64 {
        self.values as i64 + 1
    }

    /// Returns the number of positions of a network's input: one for the start symbol and one per entry.
    pub(super) fn n_positions(&self) -> i64 {
        self.length as i64 + 1
    }
}

/// A batch of states as prefixes. The prefix of a state consists of the entries before its first unset entry.
#[derive(Debug)]
pub(super) struct Prefixes<'a> {
    states: &'a VectorStates,
    lengths: Vec<usize>,
    /// The number that represents the start symbol in the inputs of the network.
    start: u32,
}

impl<'a> Prefixes<'a> {
    /// Finds the prefix of each state.
    ///
    /// # Errors
    /// [`Error::Shape`] for states whose length differs from the layout's; [`Error::Config`] for a state with
    /// a set entry after an unset entry, or with a value that the layout doesn't have.
    pub(super) fn new(layout: &SequenceLayout, states: &'a VectorStates) -> Result<Self> {
        if states.width() != layout.length {
            return Err(Error::shape(
                "the states of a `SequencePolicy`",
                [states.len() as i64, layout.length as i64],
                [states.len() as i64, states.width() as i64],
                "give the layout as its length the number of entries of the environment's states",
            ));
        }
        let mut lengths = Vec::with_capacity(states.len());
        for row in states.rows() {
            let length = row.iter().position(|&x| x == layout.unset).unwrap_or(row.len());
            let (set, rest) = row.split_at(length);
            if set.iter().any(|&x| usize::from(x) >= layout.values) || rest.iter().any(|&x| x != layout.unset)
            {
                return Err(Error::config(
                    "a state of a `SequencePolicy`",
                    format!("{row:?}"),
                    "entries below the layout's `values`, then entries that are `unset`",
                ));
            }
            lengths.push(length);
        }
        Ok(Self { states, lengths, start: layout.values as u32 })
    }

    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the entries of the prefix of state `row`.
    fn entries(&self, row: usize) -> &[u16] {
        &self.states.row(row)[..self.lengths[row]]
    }

    /// Returns the position of the last input of the prefix of state `row`. The start symbol has position 0,
    /// so this is the length of the prefix.
    pub(super) fn position(&self, row: usize) -> usize {
        self.lengths[row]
    }

    /// Returns the inputs of a network for state `row`: the start symbol, followed by the entries of the
    /// prefix.
    pub(super) fn inputs(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.start).chain(self.entries(row).iter().map(|&x| u32::from(x)))
    }

    /// Finds the maximal prefixes, which aren't a prefix of another prefix of the same group, in O(n log n)
    /// comparisons. `group` holds the number of each state's group: the states with the same condition.
    pub(super) fn maximal(&self, group: &[usize]) -> Maximal {
        // If a sequence is a prefix of any other sequence of its group, it is also a prefix of the next
        // sequence in lexicographic order, so only neighbours are compared.
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&row| (group[row], self.entries(row)));
        let mut maximal = Maximal { rows: Vec::new(), sequence_of_row: vec![0; self.len()] };
        for &row in order.iter().rev() {
            match maximal.rows.last() {
                Some(&last)
                    if group[last] == group[row] && self.entries(last).starts_with(self.entries(row)) => {}
                _ => maximal.rows.push(row),
            }
            maximal.sequence_of_row[row] = maximal.rows.len() - 1;
        }
        maximal
    }

    /// Returns the network's inputs for the maximal prefixes, `[sequences, T]`, where T is the number of
    /// inputs for the longest prefix. Also returns, for each state, the index of its last input in the
    /// flattened inputs, `[states]`. Shorter sequences are padded with the start symbol at the end. The
    /// padding doesn't affect the outputs that are used, because the network is causal.
    pub(super) fn batch(&self, maximal: &Maximal, device: Device) -> (Tensor, Tensor) {
        let steps = 1 + maximal.rows.iter().map(|&row| self.lengths[row]).max().unwrap_or(0);
        let mut inputs = vec![i64::from(self.start); maximal.rows.len() * steps];
        for (line, &row) in inputs.chunks_exact_mut(steps).zip(&maximal.rows) {
            for (entry, input) in line.iter_mut().zip(self.inputs(row)) {
                *entry = i64::from(input);
            }
        }
        let last = maximal.sequence_of_row.iter().zip(&self.lengths);
        let last = last.map(|(&sequence, &length)| (sequence * steps + length) as i64);
        let last: Vec<i64> = last.collect();
        let inputs = upload(&inputs, device).view([maximal.rows.len() as i64, steps as i64]);
        (inputs, upload(&last, device))
    }
}

/// The maximal prefixes of a batch, which aren't a prefix of another prefix of the batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Maximal {
    /// The row of the state of each maximal prefix.
    pub(super) rows: Vec<usize>,
    /// The index in `rows`, for each state, of a maximal prefix that begins with the prefix of the state.
    sequence_of_row: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LAYOUT: SequenceLayout = SequenceLayout { values: 3, length: 4, unset: 9 };

    proptest! {
        #[test]
               fn rows_are_prefixes_of_their_sequence_and_sequences_are_maximal(
            words in proptest::collection::vec(proptest::collection::vec(0u16..3, 0..5), 1..40),
            n_groups in 1usize..3,
        ) {
            let group: Vec<usize> = (0..words.len()).map(|k| k % n_groups).collect();
            let flat =
                words.iter().flat_map(|word| (0..4).map(|i| word.get(i).copied().unwrap_or(9))).collect();
            let states = VectorStates::from_flat(4, flat).unwrap();
            let prefixes = Prefixes::new(&LAYOUT, &states).unwrap();
            let maximal = prefixes.maximal(&group);
            for (row, word) in words.iter().enumerate() {
                let sequence = maximal.rows[maximal.sequence_of_row[row]];
                prop_assert!(words[sequence].starts_with(word) && group[sequence] == group[row]);
            }
            for (i, &a) in maximal.rows.iter().enumerate() {
                for (j, &b) in maximal.rows.iter().enumerate() {
                    prop_assert!(i == j || group[a] != group[b] || !words[b].starts_with(&words[a]));
                }
            }
            let (inputs, last) = prefixes.batch(&maximal, Device::Cpu);
            let lasts = Vec::<i64>::try_from(inputs.reshape([-1]).index_select(0, &last)).unwrap();
            for (word, last) in words.iter().zip(lasts) {
                prop_assert_eq!(last, i64::from(word.last().copied().unwrap_or(3)));
            }
        }
    }

    #[test]
    fn states_that_are_no_prefixes_are_refused() {
        let message = |row: [u16; 4]| {
            let states = VectorStates::from_rows([row]);
            Prefixes::new(&LAYOUT, &states).unwrap_err().to_string()
        };
        assert!(message([0, 9, 1, 9]).contains("[0, 9, 1, 9]"));
        assert!(message([0, 3, 9, 9]).contains("below the layout's `values`"));
        let short = VectorStates::from_rows([[0u16, 9]]);
        assert!(Prefixes::new(&LAYOUT, &short).unwrap_err().to_string().contains("expected [1, 4]"));
    }

    /// Checks that `unset` may be one of `0..values`, for example 0 if tokens start at 1.
    #[test]
    fn unset_may_be_one_of_the_values() {
        let layout = SequenceLayout { values: 3, length: 3, unset: 0 };
        let states = VectorStates::from_rows([[0u16, 0, 0], [2, 1, 0], [1, 1, 1]]);
        assert_eq!(Prefixes::new(&layout, &states).unwrap().lengths, [0, 2, 3]);
    }
}
