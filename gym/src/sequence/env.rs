use gfn::env::{Direction, VectorEnv, VectorRules, VectorStates};
use gfn::{Error, Result};

use super::SequenceTensors;

/// Sequences of tokens, written from left to right. The states form a tree, so that P_B is 1.
///
/// * *States.* A state has `max_len` entries of `n_tokens + 1` values. Entry `i` is 0 while position `i` is
///   empty, and the token plus 1 afterwards. The input layer of a network is `KHot::new(env.entries(),
///   env.values())`.
/// * *Forward slots.* Slot `t` in `0..n_tokens` appends the token `t`. With a variable length, slot
///   `n_tokens` exits, and is legal from `min_len` tokens on.
/// * *Backward slots.* Slot 0 removes the last token.
/// * *End.* With a fixed length there is no exit action: the last token ends the trajectory. With a variable
///   length the exit is the only legal action at `max_len` tokens.
///
/// torchgfn's sequences end by a forced exit. Without the forced exit, each trajectory has one state fewer to
/// evaluate, and the policy needn't learn a state flow that is known to equal the reward.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env, Slots};
/// use gfn_gym::sequence::TokenSequence;
/// let env = TokenSequence::variable(4, 1, 2)?.env();
/// let mut states = env.initial(&[0]);
/// assert_eq!(env.masks(Direction::Forward, &states).row(0), [true, true, true, true, false]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![2]))?;
/// assert_eq!(states.row(0), [3, 0]);
/// assert_eq!(TokenSequence::tokens(states.row(0)), [2]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenSequence {
    n_tokens: usize,
    /// The smallest length of a finished sequence; `None` if the length is fixed.
    min_len: Option<usize>,
    max_len: usize,
}

impl TokenSequence {
    /// Builds the rules of sequences of exactly `len` tokens, each one of `n_tokens` different tokens.
    ///
    /// # Errors
    /// [`Error::Config`] unless there are 1 to 65,535 tokens and a length of at least 1.
    pub fn fixed(n_tokens: usize, len: usize) -> Result<Self> {
        Self::checked(n_tokens, None, len)
    }

    /// Builds the rules of sequences of `min_len` to `max_len` tokens, each one of `n_tokens` different
    /// tokens. A `min_len` of 0 allows the empty sequence.
    ///
    /// # Errors
    /// [`Error::Config`] unless there are 1 to 65,535 tokens and `min_len <= max_len`, `max_len` at least 1.
    pub fn variable(n_tokens: usize, min_len: usize, max_len: usize) -> Result<Self> {
        Self::checked(n_tokens, Some(min_len), max_len)
    }

    /// Builds the rules of TFBind8: DNA sequences of length 8, of which there are 65,536.
    #[must_use]
    pub fn tf_bind_8() -> Self {
        Self { n_tokens: 4, min_len: None, max_len: 8 }
    }

    fn checked(n_tokens: usize, min_len: Option<usize>, max_len: usize) -> Result<Self> {
        if !(1..=usize::from(u16::MAX)).contains(&n_tokens) {
            return Err(Error::config("n_tokens", n_tokens, "1 to 65,535 tokens"));
        }
        if max_len == 0 || min_len > Some(max_len) {
            return Err(Error::config(
                "the length of sequences",
                min_len.map_or(max_len.to_string(), |min| format!("{min} to {max_len}")),
                "a length of at least 1 token, and a minimum of at most the maximum",
            ));
        }
        Ok(Self { n_tokens, min_len, max_len })
    }

    /// Returns the number of different tokens that a sequence may have.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.n_tokens
    }

    /// The range of the lengths of finished sequences.
    #[must_use]
    pub fn lengths(&self) -> std::ops::RangeInclusive<usize> {
        self.min_len.unwrap_or(self.max_len)..=self.max_len
    }

    /// Returns the number of entries of a state, which is the largest length of a sequence.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.max_len
    }

    /// Returns the number of values that an entry of a state can have: one value per token, and 0 for an
    /// empty entry.
    #[must_use]
    pub fn values(&self) -> usize {
        self.n_tokens + 1
    }

    /// Returns the number of states, which are all sequences of 0 to `max_len` tokens. Returns `None` if it
    /// exceeds the range of `u64`.
    #[must_use]
    pub fn n_states(&self) -> Option<u64> {
        self.n_sequences(0..=self.max_len)
    }

    /// Returns the number of finished sequences; `None` if it exceeds the range of `u64`.
    #[must_use]
    pub fn n_terminal(&self) -> Option<u64> {
        self.n_sequences(self.lengths())
    }

    fn n_sequences(&self, lengths: std::ops::RangeInclusive<usize>) -> Option<u64> {
        let of_length = |len: usize| (self.n_tokens as u64).checked_pow(u32::try_from(len).ok()?);
        lengths.map(of_length).try_fold(0u64, |sum, n| sum.checked_add(n?))
    }

    /// Returns the tokens of the sequence that a state holds.
    #[must_use]
    pub fn tokens(row: &[u16]) -> Vec<u16> {
        row[..filled(row)].iter().map(|x| x - 1).collect()
    }

    /// Returns the state of each of these sequences of tokens.
    ///
    /// # Errors
    /// [`Error::Config`] for a sequence that is too long or has an unknown token.
    pub fn states_of<T: AsRef<[u16]>>(&self, sequences: &[T]) -> Result<VectorStates> {
        let mut entries = Vec::with_capacity(sequences.len() * self.max_len);
        for (i, tokens) in sequences.iter().map(AsRef::as_ref).enumerate() {
            if tokens.len() > self.max_len || tokens.iter().any(|&token| usize::from(token) >= self.n_tokens)
            {
                return Err(Error::config(
                    "a sequence of tokens",
                    format!("{tokens:?}"),
                    "at most `entries()` tokens, each below `n_tokens()`",
                ));
            }
            entries.extend(tokens.iter().map(|token| token + 1));
            entries.resize((i + 1) * self.max_len, 0);
        }
        VectorStates::from_flat(self.max_len, entries)
    }

    /// Returns the [`VectorEnv`] whose rules `self` defines.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        let Self { n_tokens, min_len, max_len } = *self;
        VectorEnv::new(*self).with_tensors(SequenceTensors {
            n_tokens,
            min_len,
            max_len,
            has_two_ends: false,
        })
    }
}

/// Returns the length of a sequence: the number of its entries that aren't 0. These entries come first.
#[must_use]
pub fn filled(row: &[u16]) -> usize {
    row.partition_point(|&x| x > 0)
}

impl VectorRules for TokenSequence {
    fn width(&self) -> usize {
        self.max_len
    }
    fn n_values(&self) -> usize {
        self.values()
    }
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { self.n_tokens } else { 1 }
    }
    fn has_exit(&self) -> bool {
        self.min_len.is_some()
    }
    fn can_end(&self, row: &[u16]) -> bool {
        self.lengths().contains(&filled(row))
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        let len = filled(row);
        legal.fill(if direction == Direction::Forward { len < self.max_len } else { len > 0 });
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let len = filled(row);
        match direction {
            Direction::Forward if slot < self.n_tokens && len < self.max_len => {
                row[len] = slot as u16 + 1;
                Some(0)
            }
            Direction::Backward if slot == 0 && len > 0 => {
                let token = row[len - 1].checked_sub(1)?;
                row[len - 1] = 0;
                Some(usize::from(token))
            }
            _ => None,
        }
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        let tokens = Self::tokens(row);
        match direction {
            Direction::Forward => {
                format!("append token {slot} to {tokens:?}, at most {} tokens", self.max_len)
            }
            Direction::Backward => format!("remove the last token of {tokens:?}"),
        }
    }
}
