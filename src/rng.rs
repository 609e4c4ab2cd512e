//! Random numbers from a seeded, portable stream. The stream can be saved, and is passed to all code that
//! draws from it.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A seeded stream of random numbers (ChaCha8). The same seed gives the same numbers on every machine. The
/// position in the stream can be saved and restored.
///
/// Training and sampling use no other source of randomness: no clock, no thread-local generator, not
/// libtorch's generator. (An exception is the id of each run, which distinguishes its checkpoints from those
/// of other runs; the id comes from the system's randomness.)
///
/// ```
/// use gfn::Rng;
/// let (mut a, mut b) = (Rng::seeded(7), Rng::seeded(7));
/// assert_eq!(a.uniform(), b.uniform());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// Creates the stream with this seed.
    pub fn seeded(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Creates a separate stream, seeded from this stream, for work that must not depend on the number of
    /// draws of other code.
    pub fn split(&mut self) -> Self {
        Self(ChaCha8Rng::seed_from_u64(self.0.next_u64()))
    }

    /// Returns the number to which the mixing function of SplitMix64 (Stafford's mix 13) maps `bits`. The
    /// function is a bijection of 64-bit numbers in which every input bit affects all output bits. Use this
    /// function for hashes.
    #[must_use]
    pub fn mix64(mut bits: u64) -> u64 {
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// Draws a number from the uniform distribution on `[0, 1)`, with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws a number from the standard normal distribution: the first number of a [pair](Self::normal_pair).
    pub fn normal(&mut self) -> f64 {
        self.normal_pair().0
    }

    /// Draws two independent numbers from the standard normal distribution (Box-Muller). A pair uses as many
    /// random numbers as one call of `normal`.
    ///
    /// ```
    /// use gfn::Rng;
    /// assert_eq!(Rng::seeded(3).normal_pair().0, Rng::seeded(3).normal());
    /// ```
    pub fn normal_pair(&mut self) -> (f64, f64) {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        (radius * cos, radius * sin)
    }

    /// Draws a uniform index below `n`.
    ///
    /// # Panics
    /// In debug builds, if `n` is zero.
    pub fn below(&mut self, n: usize) -> usize {
        debug_assert!(n > 0, "an index below zero was asked for");
        // The indices aren't exactly equally likely: their probabilities differ by at most 1 / 2^64.
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }
}

/// Returns a hash of numbers. The hash of the same numbers is the same in all processes.
pub(crate) fn hash(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(1, |hash, number| Rng::mix64(hash.rotate_left(1) ^ number))
}

impl RngCore for Rng {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}
