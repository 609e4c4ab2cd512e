use crate::env::{Direction, VectorEnv, VectorRules};

/// A tiny environment of sequences: words of up to `length` letters, written from left to right and finished anywhere.
///
/// An entry is 0 where nothing is written yet, and a letter's number plus 1 elsewhere. Forward slots: a letter each, then the
/// exit. The one backward slot takes the last letter away.
///
/// ```
/// use gfn::{env::{Direction, DiscreteEnv, Env, VectorStates}, testing::Words};
/// let env = Words::new(2, 3);
/// let states = VectorStates::from_rows([[0u16, 0, 0], [2, 1, 2]]);
/// assert_eq!(env.masks(Direction::Forward, &states).legal, [true, true, true, false, false, true]);
/// assert_eq!(env.masks(Direction::Backward, &states).legal, [false, true]);
/// ```
pub type Words = VectorEnv<WordRules>;

/// The rules of [`Words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordRules {
    letters: u16,
    length: usize,
}

impl Words {
    /// Words of up to `length` of so many letters; at least one of each.
    #[must_use]
    pub fn new(letters: u16, length: usize) -> Self {
        Self(WordRules { letters: letters.max(1), length: length.max(1) })
    }
}

impl VectorRules for WordRules {
    type Key = u64;

    fn width(&self) -> usize {
        self.length
    }
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { usize::from(self.letters) } else { 1 }
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let written = row.iter().take_while(|&&x| x > 0).count();
        match direction {
            Direction::Forward if slot < usize::from(self.letters) => {
                *row.get_mut(written)? = slot as u16 + 1;
                Some(0)
            }
            Direction::Backward if slot == 0 && written > 0 => {
                Some(usize::from(std::mem::take(&mut row[written - 1])) - 1)
            }
            _ => None,
        }
    }
    fn key(&self, row: &[u16]) -> u64 {
        row.iter().fold(0, |key, &x| key * (u64::from(self.letters) + 1) + u64::from(x))
    }
}
