use gfn::Result;
use gfn::env::{Direction, VectorEnv, VectorRules};

use super::Words;

/// Sequences of bits whose words are set in any order.
///
/// *States.* Entry `i` is 0 while word `i` is empty, and the word plus 1 afterwards: `KHot::new(words.n_words(), words.values())`.
/// *Forward slots.* `position * 2^word_size + word` sets an empty position. *Backward slots.* The position to be emptied.
/// *End.* No exit action: the last word ends the trajectory (torchgfn has a forced exit on top).
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
pub struct NonAutoregressiveBitSequence {
    words: Words,
}

impl NonAutoregressiveBitSequence {
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

    /// The number of states, `(2^word_size + 1)^n_words`; `None` if it passes `u64`.
    #[must_use]
    pub fn n_states(&self) -> Option<u64> {
        (self.words.values() as u64).checked_pow(u32::try_from(self.words.n_words()).ok()?)
    }

    /// Returns the environment of these rules.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        VectorEnv::new(*self)
    }
}

impl VectorRules for NonAutoregressiveBitSequence {
    fn width(&self) -> usize {
        self.words.n_words()
    }
    fn n_moves(&self, direction: Direction) -> usize {
        match direction {
            Direction::Forward => self.words.n_words() * self.words.vocabulary(),
            Direction::Backward => self.words.n_words(),
        }
    }
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, row: &[u16]) -> bool {
        row.iter().all(|&x| x > 0)
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        match direction {
            Direction::Forward => {
                let positions = legal.chunks_exact_mut(self.words.vocabulary());
                positions.zip(row).for_each(|(legal, &x)| legal.fill(x == 0));
            }
            Direction::Backward => legal.iter_mut().zip(row).for_each(|(legal, &x)| *legal = x > 0),
        }
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        match direction {
            Direction::Forward => {
                let (position, word) = (slot / self.words.vocabulary(), slot % self.words.vocabulary());
                let entry = row.get_mut(position).filter(|entry| **entry == 0)?;
                *entry = word as u16 + 1;
                Some(position)
            }
            Direction::Backward => {
                let entry = row.get_mut(slot).filter(|entry| **entry > 0)?;
                let word = usize::from(*entry - 1);
                *entry = 0;
                Some(slot * self.words.vocabulary() + word)
            }
        }
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        match direction {
            Direction::Forward => {
                let (position, word) = (slot / self.words.vocabulary(), slot % self.words.vocabulary());
                format!("set position {position} of {row:?} (words + 1, 0 empty) to the word {word}")
            }
            Direction::Backward => format!("empty position {slot} of {row:?} (words + 1, 0 empty)"),
        }
    }
}
