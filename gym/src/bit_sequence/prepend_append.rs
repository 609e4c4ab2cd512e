use gfn::Result;
use gfn::env::{Direction, VectorEnv, VectorRules};

use super::Words;
use crate::sequence::filled;

/// Sequences of bits that grow at both ends, word by word.
///
/// *States.* The words so far stand first: an entry is a word plus 1, and 0 behind the last;
/// `KHot::new(words.n_words(), words.values())`.
/// *Forward slots.* `0..2^word_size` append that word, `2^word_size..2^(word_size + 1)` prepend it. *Backward slots.* 0 removes the
/// last word, 1 the first. Of a sequence of one word, or of equal words, both lead to one parent, by as many moves as lead on.
/// *End.* No exit action: the last word ends the trajectory. (torchgfn's `BitSequencePlus` can't be stepped.)
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
pub struct PrependAppendBitSequence {
    words: Words,
}

impl PrependAppendBitSequence {
    /// Sequences of `seq_size` bits in words of `word_size`.
    ///
    /// # Errors
    /// Those of [`Words::new`].
    pub fn new(word_size: usize, seq_size: usize) -> Result<Self> {
        Ok(Self { words: Words::new(word_size, seq_size)? })
    }

    /// The words that sequences are cut into.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Returns the environment of these rules.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        VectorEnv::new(*self)
    }
}

/// The backward slots.
const REMOVE_LAST: usize = 0;
const REMOVE_FIRST: usize = 1;

impl VectorRules for PrependAppendBitSequence {
    fn width(&self) -> usize {
        self.words.n_words()
    }
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { 2 * self.words.vocabulary() } else { 2 }
    }
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, row: &[u16]) -> bool {
        filled(row) == row.len()
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        let len = filled(row);
        legal.fill(if direction == Direction::Forward { len < row.len() } else { len > 0 });
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let (len, vocabulary) = (filled(row), self.words.vocabulary());
        match direction {
            Direction::Forward if len < row.len() && slot < vocabulary => {
                row[len] = slot as u16 + 1;
                Some(REMOVE_LAST)
            }
            Direction::Forward if len < row.len() && slot < 2 * vocabulary => {
                row.copy_within(..len, 1);
                row[0] = (slot - vocabulary) as u16 + 1;
                Some(REMOVE_FIRST)
            }
            Direction::Backward if len > 0 && slot == REMOVE_LAST => {
                let word = usize::from(row[len - 1].checked_sub(1)?);
                row[len - 1] = 0;
                Some(word)
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
        let (words, vocabulary) = (&row[..filled(row)], self.words.vocabulary());
        match direction {
            Direction::Forward if slot < vocabulary => format!("append the word {slot} to {words:?} (words + 1)"),
            Direction::Forward => format!("prepend the word {} to {words:?} (words + 1)", slot - vocabulary),
            Direction::Backward if slot == REMOVE_LAST => format!("remove the last word of {words:?} (words + 1)"),
            Direction::Backward => format!("remove the first word of {words:?} (words + 1)"),
        }
    }
}
