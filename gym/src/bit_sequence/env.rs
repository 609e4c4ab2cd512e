use gfn::Result;
use gfn::env::{Direction, VectorEnv, VectorRules};

use super::Words;
use crate::sequence::TokenSequence;

/// Sequences of bits, written word by word from left to right: a tree.
///
/// *States.* Entry `i` is 0 while word `i` is empty, and the word plus 1 afterwards: `KHot::new(words.n_words(), words.values())`.
/// *Forward slots.* `0..2^word_size` append that word. *Backward slots.* 0 removes the last word.
/// *End.* No exit action: the last word ends the trajectory (torchgfn has a forced exit on top).
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
    /// Sequences of `seq_size` bits in words of `word_size`.
    ///
    /// # Errors
    /// Those of [`Words::new`].
    pub fn new(word_size: usize, seq_size: usize) -> Result<Self> {
        let words = Words::new(word_size, seq_size)?;
        let sequence = TokenSequence::fixed(words.vocabulary(), words.n_words())?;
        Ok(Self { words, sequence })
    }

    /// The words that sequences are cut into.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The number of states; `None` if it passes `u64`.
    #[must_use]
    pub fn n_states(&self) -> Option<u64> {
        self.sequence.n_states()
    }

    /// Returns the environment of these rules.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        VectorEnv::new(*self)
    }
}

impl VectorRules for BitSequence {
    fn width(&self) -> usize {
        self.sequence.width()
    }
    fn n_moves(&self, direction: Direction) -> usize {
        self.sequence.n_moves(direction)
    }
    fn has_exit(&self) -> bool {
        self.sequence.has_exit()
    }
    fn can_end(&self, row: &[u16]) -> bool {
        self.sequence.can_end(row)
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        self.sequence.mark(direction, row, legal);
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        self.sequence.apply(direction, row, slot)
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        self.sequence.describe(direction, row, slot)
    }
}
