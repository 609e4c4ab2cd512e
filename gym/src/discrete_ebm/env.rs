use gfn::env::{Direction, VectorEnv, VectorRules, VectorStates};
use gfn::{Error, Result};

/// `n` binary coordinates, set in any order.
///
/// *States.* An entry is 0 while its coordinate is unset, 1 where it is set to 0 (spin -1), 2 where it is set to 1 (spin +1):
/// `KHot::new(env.n(), 3)`; `Scaled::new(env.n(), 3)` maps them to -1, 0, 1.
/// *Forward slots.* `i` sets coordinate `i` to 0, `n + i` sets it to 1. *Backward slots.* The coordinate to be unset.
/// *End.* No exit action: the last coordinate ends the trajectory. torchgfn has a forced exit on top (slot `2 n`), whose state
/// flow must first be learned to be the reward.
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
    n: usize,
}

impl DiscreteEbm {
    /// `n` coordinates.
    ///
    /// # Errors
    /// [`Error::Config`] for none.
    pub fn new(n: usize) -> Result<Self> {
        if n == 0 {
            return Err(Error::config("n", "0", "at least 1 coordinate"));
        }
        Ok(Self { n })
    }

    /// The number of coordinates.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// The number of states, `3^n`; `None` if it passes `u64`.
    #[must_use]
    pub fn n_states(&self) -> Option<u64> {
        3u64.checked_pow(u32::try_from(self.n).ok()?)
    }

    /// The number of finished states, `2^n`; `None` if it passes `u64`.
    #[must_use]
    pub fn n_terminal(&self) -> Option<u64> {
        1u64.checked_shl(u32::try_from(self.n).ok()?)
    }

    /// The finished states of these vectors of bits.
    ///
    /// # Errors
    /// [`Error::Shape`] for a vector of another length.
    pub fn states_of<B: AsRef<[bool]>>(&self, vectors: &[B]) -> Result<VectorStates> {
        let mut entries = Vec::with_capacity(vectors.len() * self.n);
        for bits in vectors.iter().map(AsRef::as_ref) {
            if bits.len() != self.n {
                return Err(Error::shape(
                    "a vector of bits",
                    [self.n as i64],
                    [bits.len() as i64],
                    "give one bit per coordinate",
                ));
            }
            entries.extend(bits.iter().map(|&bit| 1 + u16::from(bit)));
        }
        VectorStates::from_flat(self.n, entries)
    }

    /// Returns the environment of these rules.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        VectorEnv::new(*self)
    }
}

impl VectorRules for DiscreteEbm {
    fn width(&self) -> usize {
        self.n
    }
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { 2 * self.n } else { self.n }
    }
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, row: &[u16]) -> bool {
        row.iter().all(|&x| x > 0)
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        let forward = direction == Direction::Forward;
        for half in legal.chunks_exact_mut(self.n) {
            half.iter_mut().zip(row).for_each(|(legal, &x)| *legal = (x == 0) == forward);
        }
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        match direction {
            Direction::Forward if slot < 2 * self.n && row[slot % self.n] == 0 => {
                row[slot % self.n] = 1 + (slot / self.n) as u16;
                Some(slot % self.n)
            }
            Direction::Backward => {
                let entry = row.get_mut(slot).filter(|entry| **entry > 0)?;
                let bit = usize::from(*entry - 1);
                *entry = 0;
                Some(bit * self.n + slot)
            }
            Direction::Forward => None,
        }
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        match direction {
            Direction::Forward => format!("set coordinate {} of {row:?} to {}", slot % self.n, slot / self.n),
            Direction::Backward => format!("unset coordinate {slot} of {row:?}"),
        }
    }
}
