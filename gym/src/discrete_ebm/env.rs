use gfn::env::{VectorEnv, VectorStates};
use gfn::{Error, Result};

use crate::bit_sequence::Words;
use crate::cells::Cells;

/// The rules of vectors of `n` binary coordinates, which are set in any order.
///
/// * *States.* An entry is 0 while its coordinate is unset, 1 if the coordinate is set to 0 (spin -1), and 2
///   if the coordinate is set to 1 (spin +1). The input layer of a network is `KHot::new(env.n(), 3)`, or
///   `ScaledEntries::new(env.n(), 3)`, which maps the entries to -1, 0 and 1.
/// * *Forward slots.* Slot `i` sets coordinate `i` to 0, and slot `n + i` sets it to 1.
/// * *Backward slots.* Slot `i` unsets coordinate `i`.
/// * *End.* There is no exit action: setting the last coordinate ends the trajectory. torchgfn adds a forced
///   exit (slot `2 n`), so that the state flow before the exit must first be learned to equal the reward.
///
/// ```
/// use gfn::env::{Direction, Env, Slots};
/// use gfn_gym::discrete_ebm::DiscreteEbm;
/// let ebm = DiscreteEbm::new(2)?;
/// let env = ebm.env();
/// let mut states = env.initial(&[0]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![1]))?;
/// assert_eq!(states.row(0), [0, 1]);
/// let last = env.step(Direction::Forward, &mut states, &Slots(vec![2]))?;
/// assert_eq!((states.row(0), last.done[0]), ([2u16, 1].as_slice(), true));
/// assert_eq!(ebm.n_states(), Some(9));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiscreteEbm {
    /// The layout of the states: that of bit sequences, with a word of one bit for each coordinate.
    words: Words,
}

impl DiscreteEbm {
    /// Builds the rules for `n` coordinates.
    ///
    /// # Errors
    /// [`Error::Config`] if `n` is 0.
    pub fn new(n: usize) -> Result<Self> {
        if n == 0 {
            return Err(Error::config("n", "0", "at least 1 coordinate"));
        }
        Ok(Self { words: Words::new(1, n)? })
    }

    /// Returns the number of binary coordinates of a vector.
    #[must_use]
    pub fn n(&self) -> usize {
        self.words.n_words()
    }

    /// Returns the number of states, `3^n`; `None` if it exceeds the range of `u64`.
    #[must_use]
    pub fn n_states(&self) -> Option<u64> {
        3u64.checked_pow(u32::try_from(self.n()).ok()?)
    }

    /// Returns the number of finished states, `2^n`; `None` if it exceeds the range of `u64`.
    #[must_use]
    pub fn n_terminal(&self) -> Option<u64> {
        self.words.n_terminal()
    }

    /// Returns the finished state of each of these vectors of bits.
    ///
    /// # Errors
    /// [`Error::Shape`] for a vector of another length.
    pub fn states_of<B: AsRef<[bool]>>(&self, vectors: &[B]) -> Result<VectorStates> {
        self.words.states_of(vectors)
    }

    /// Returns the [`VectorEnv`] whose rules `self` defines.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        Cells { n: self.n(), n_values: 2, by_value: true }.env()
    }
}
