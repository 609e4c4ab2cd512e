use gfn::Result;
use gfn::env::{Direction, VectorEnv, VectorRules};

use super::Words;
use crate::cells::Cells;
use crate::sequence::{SequenceTensors, TokenSequence, filled};

/// Sequences of bits, written word by word from left to right. The states form a tree.
///
/// * *States.* Entry `i` is 0 while word `i` is empty, and the word plus 1 afterwards. The input layer of a
///   network is `KHot::new(words.n_words(), words.values())`.
/// * *Forward slots.* Slot `w` in `0..2^word_size` appends the word `w`.
/// * *Backward slots.* Slot 0 removes the last word.
/// * *End.* There is no exit action: the last word ends the trajectory. (torchgfn adds a forced exit.)
///
/// ```
/// use gfn::env::{Direction, Env, Slots};
/// use gfn_gym::bit_sequence::BitSequence;
/// let env = BitSequence::new(4, 8)?.env();
/// let mut states = env.initial(&[0]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![0b0110]))?;
/// let last = env.step(Direction::Forward, &mut states, &Slots(vec![0b1111]))?;
/// assert!(last.done[0]);
/// assert_eq!(states.row(0), [0b0110 + 1, 0b1111 + 1]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BitSequence {
    words: Words,
    sequence: TokenSequence,
}

impl BitSequence {
    /// Builds the rules of sequences of `seq_size` bits in words of `word_size` bits.
    ///
    /// # Errors
    /// The errors of [`Words::new`].
    pub fn new(word_size: usize, seq_size: usize) -> Result<Self> {
        let words = Words::new(word_size, seq_size)?;
        let sequence = TokenSequence::fixed(words.vocabulary(), words.n_words())?;
        Ok(Self { words, sequence })
    }

    /// Returns the layout of the words that the sequences consist of.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Returns the number of states; `None` if it exceeds the range of `u64`.
    #[must_use]
    pub fn n_states(&self) -> Option<u64> {
        self.sequence.n_states()
    }

    /// Returns the [`VectorEnv`] whose rules `self` defines.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        self.sequence.env()
    }
}

/// Sequences of bits whose words are set in any order.
///
/// * *States.* Entry `i` is 0 while word `i` is empty, and the word plus 1 afterwards. The input layer of a
///   network is `KHot::new(words.n_words(), words.values())`.
/// * *Forward slots.* Slot `position * 2^word_size + word` sets an empty position to `word`.
/// * *Backward slots.* Slot `i` empties position `i`.
/// * *End.* There is no exit action: the last word ends the trajectory. (torchgfn adds a forced exit.)
///
/// ```
/// use gfn::env::{Direction, Env, Slots};
/// use gfn_gym::bit_sequence::NonAutoregressiveBitSequence;
/// let env = NonAutoregressiveBitSequence::new(2, 6)?.env();
/// let mut states = env.initial(&[0]);
/// let step = env.step(Direction::Forward, &mut states, &Slots(vec![1 * 4 + 3]))?;
/// assert_eq!((states.row(0), step.reverse.0[0]), ([0u16, 3 + 1, 0].as_slice(), 1));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NonAutoregressiveBitSequence(Words);

impl NonAutoregressiveBitSequence {
    /// Builds the rules of sequences of `seq_size` bits in words of `word_size` bits.
    ///
    /// # Errors
    /// The errors of [`Words::new`].
    pub fn new(word_size: usize, seq_size: usize) -> Result<Self> {
        Words::new(word_size, seq_size).map(Self)
    }

    /// Returns the layout of the words that the sequences consist of.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.0
    }

    /// Returns the number of states, `(2^word_size + 1)^n_words`; `None` if it exceeds the range of `u64`.
    #[must_use]
    pub fn n_states(&self) -> Option<u64> {
        (self.0.values() as u64).checked_pow(u32::try_from(self.0.n_words()).ok()?)
    }

    /// Returns the [`VectorEnv`] whose rules `self` defines.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        Cells { n: self.0.n_words(), n_values: self.0.vocabulary(), by_value: false }.env()
    }
}

/// Sequences of bits that grow at both ends, word by word.
///
/// * *States.* The words so far come first, each as the word plus 1; the entries after them are 0. The input
///   layer of a network is `KHot::new(words.n_words(), words.values())`.
/// * *Forward slots.* Slot `w` in `0..2^word_size` appends the word `w`, and slot `2^word_size + w` prepends
///   it.
/// * *Backward slots.* Slot 0 removes the last word, and slot 1 removes the first word. If a sequence has one
///   word, or only equal words, both backward slots lead to the same parent, and two forward actions lead
///   from this parent to the sequence.
/// * *End.* There is no exit action: the last word ends the trajectory. (torchgfn's `BitSequencePlus` can't
///   be stepped.)
///
/// ```
/// use gfn::env::{Direction, Env, Slots};
/// use gfn_gym::bit_sequence::PrependAppendBitSequence;
/// let env = PrependAppendBitSequence::new(2, 6)?.env();
/// let mut states = env.initial(&[0]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![3]))?;
/// env.step(Direction::Forward, &mut states, &Slots(vec![4 + 2]))?;
/// assert_eq!(states.row(0), [2 + 1, 3 + 1, 0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrependAppendBitSequence(BitSequence);

impl PrependAppendBitSequence {
    /// Builds the rules of sequences of `seq_size` bits in words of `word_size` bits.
    ///
    /// # Errors
    /// The errors of [`Words::new`].
    pub fn new(word_size: usize, seq_size: usize) -> Result<Self> {
        BitSequence::new(word_size, seq_size).map(Self)
    }

    /// Returns the layout of the words that the sequences consist of.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.0.words
    }

    /// Returns the [`VectorEnv`] whose rules `self` defines.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        let words = self.words();
        VectorEnv::new(*self).with_tensors(SequenceTensors {
            n_tokens: words.vocabulary(),
            min_len: None,
            max_len: words.n_words(),
            has_two_ends: true,
        })
    }
}

/// The backward slot that removes the first word; slot 0 removes the last word.
const REMOVE_FIRST: usize = 1;

impl VectorRules for PrependAppendBitSequence {
    fn width(&self) -> usize {
        self.0.words.n_words()
    }
    fn n_values(&self) -> usize {
        self.0.words.values()
    }
    fn n_moves(&self, direction: Direction) -> usize {
        2 * self.0.sequence.n_moves(direction)
    }
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, row: &[u16]) -> bool {
        self.0.sequence.can_end(row)
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        self.0.sequence.mark(direction, row, legal);
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let len = filled(row);
        let vocabulary = self.0.words.vocabulary();
        if slot < self.0.sequence.n_moves(direction) {
            return self.0.sequence.apply(direction, row, slot);
        }
        match direction {
            Direction::Forward if len < row.len() && slot < 2 * vocabulary => {
                row.copy_within(..len, 1);
                row[0] = (slot - vocabulary) as u16 + 1;
                Some(REMOVE_FIRST)
            }
            Direction::Backward if len > 0 && slot == REMOVE_FIRST => {
                let word = usize::from(row[0].checked_sub(1)?);
                row.copy_within(1..len, 0);
                row[len - 1] = 0;
                Some(vocabulary + word)
            }
            _ => None,
        }
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        let words = &row[..filled(row)];
        let vocabulary = self.0.words.vocabulary();
        match direction {
            _ if slot < self.0.sequence.n_moves(direction) => self.0.sequence.describe(direction, row, slot),
            Direction::Forward => format!("prepend the word {} to {words:?} (words + 1)", slot - vocabulary),
            Direction::Backward => format!("remove the first word of {words:?} (words + 1)"),
        }
    }
}
