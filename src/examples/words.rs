use crate::env::{Direction, VectorEnv, VectorRules};

/// Returns a tiny environment of sequences: words of at most `length` letters from an alphabet of `letters`
/// letters. Words are written from left to right, and any word can be finished. If `letters` or `length` is
/// 0, it counts as 1.
///
/// An entry of a state is 0 at a position that isn't written yet. At other positions it is the number of the
/// letter, from 1 to `letters`. The forward slots are one slot for each letter, followed by the exit. The
/// only backward slot removes the last letter.
///
/// ```
/// use gfn::{env::{Direction, DiscreteEnv, Env, VectorStates}, examples::word_env};
/// let env = word_env(2, 3);
/// let states = VectorStates::from_rows([[0u16, 0, 0], [2, 1, 2]]);
/// assert_eq!(env.masks(Direction::Forward, &states).legal, [true, true, true, false, false, true]);
/// assert_eq!(env.masks(Direction::Backward, &states).legal, [false, true]);
/// ```
#[must_use]
pub fn word_env(letters: u16, length: usize) -> VectorEnv {
    VectorEnv::new(Words { letters: letters.max(1), length: length.max(1) })
}

struct Words {
    letters: u16,
    length: usize,
}

impl VectorRules for Words {
    fn width(&self) -> usize {
        self.length
    }
    fn n_values(&self) -> usize {
        usize::from(self.letters) + 1
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
}
