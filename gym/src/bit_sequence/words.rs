use gfn::env::VectorStates;
use gfn::{Error, Result};

/// The layout of sequences of bits as words. Entry `i` of a state is 0 while position `i` is empty, and the
/// word plus 1 afterwards. The first bit of a word is its highest bit.
///
/// ```
/// use gfn_gym::bit_sequence::Words;
/// let words = Words::new(2, 4)?;
/// let states = words.states_of(&[[true, false, false, true]])?;
/// assert_eq!(states.row(0), [0b10 + 1, 0b01 + 1]);
/// assert_eq!(words.bits(states.row(0)), Some(vec![true, false, false, true]));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Words {
    word_size: usize,
    n_words: usize,
}

impl Words {
    /// Builds the layout of sequences of `seq_size` bits in words of `word_size` bits.
    ///
    /// # Errors
    /// [`Error::Config`] unless a word has 1 to 15 bits, and unless `seq_size` is a multiple of `word_size`
    /// and not 0.
    pub fn new(word_size: usize, seq_size: usize) -> Result<Self> {
        if !(1..=15).contains(&word_size) {
            return Err(Error::config("word_size", word_size, "1 to 15 bits"));
        }
        if seq_size == 0 || !seq_size.is_multiple_of(word_size) {
            return Err(Error::config(
                "seq_size",
                format!("{seq_size} bits in words of {word_size} bits"),
                "a positive multiple of the size of a word",
            ));
        }
        Ok(Self { word_size, n_words: seq_size / word_size })
    }

    /// The number of bits of a word.
    #[must_use]
    pub fn word_size(&self) -> usize {
        self.word_size
    }

    /// The number of words of a sequence.
    #[must_use]
    pub fn n_words(&self) -> usize {
        self.n_words
    }

    /// The number of bits of a sequence.
    #[must_use]
    pub fn seq_size(&self) -> usize {
        self.n_words * self.word_size
    }

    /// The number of different words.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        1 << self.word_size
    }

    /// Returns the number of values that an entry of a state can have: one value per word, and 0 for an empty
    /// entry.
    #[must_use]
    pub fn values(&self) -> usize {
        self.vocabulary() + 1
    }

    /// Returns the number of complete sequences, `2^seq_size`; `None` if it exceeds the range of `u64`.
    #[must_use]
    pub fn n_terminal(&self) -> Option<u64> {
        1u64.checked_shl(u32::try_from(self.seq_size()).ok()?)
    }

    /// Returns the state of each of these complete sequences of bits.
    ///
    /// # Errors
    /// [`Error::Shape`] for a sequence of another length.
    pub fn states_of<B: AsRef<[bool]>>(&self, sequences: &[B]) -> Result<VectorStates> {
        let mut entries = Vec::with_capacity(sequences.len() * self.n_words);
        for bits in sequences.iter().map(AsRef::as_ref) {
            if bits.len() != self.seq_size() {
                return Err(Error::shape(
                    "a sequence of bits",
                    [self.seq_size() as i64],
                    [bits.len() as i64],
                    "give `seq_size()` bits for each sequence",
                ));
            }
            let word = |bits: &[bool]| bits.iter().fold(0, |word, &bit| word << 1 | u16::from(bit));
            entries.extend(bits.chunks_exact(self.word_size).map(|bits| word(bits) + 1));
        }
        VectorStates::from_flat(self.n_words, entries)
    }

    /// Returns the bits of a complete state; `None` if a word is missing.
    #[must_use]
    pub fn bits(&self, row: &[u16]) -> Option<Vec<bool>> {
        let mut bits = Vec::with_capacity(self.seq_size());
        for &entry in row {
            let word = entry.checked_sub(1)?;
            bits.extend((0..self.word_size).rev().map(|place| word >> place & 1 == 1));
        }
        Some(bits)
    }
}
