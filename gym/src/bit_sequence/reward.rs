use std::collections::BTreeMap;

use gfn::env::{Reward, TensorReward, VectorStates};
use gfn::tensor::log_sum_exp;
use gfn::{Error, Result};
use tch::{Kind, Tensor};

use super::Words;
use crate::rewards::{self, DeviceTables};

/// A reward for sequences near a mode: `log R = -scale * distance`. Here `distance` is the Hamming distance
/// in bits between a complete sequence and its nearest mode.
///
/// Unfinished sequences have no reward, because the nearest mode depends on all bits.
///
/// ```
/// use gfn::env::Reward;
/// use gfn_gym::bit_sequence::{BitSequence, HammingReward};
/// let rules = BitSequence::new(1, 4)?;
/// let modes = [[false, true, false, false], [false, true, true, true]];
/// let reward = HammingReward::with_temperature(rules.words(), &modes, 0.5)?;
/// let states = rules.words().states_of(&[[true, true, true, true]])?;
/// assert_eq!(reward.log_reward(&states, None)?, [-2.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct HammingReward {
    words: Words,
    /// The modes, stored as states of complete sequences.
    modes: VectorStates,
    scale: f64,
    tables: DeviceTables<1>,
}

impl HammingReward {
    /// The largest number of combinations that [`distance_counts`](Self::distance_counts) enumerates. A
    /// combination gives the number of ones in each class of positions. A class consists of the positions
    /// that have the same pattern of bits in the modes.
    const MAX_COMBINATIONS: usize = 1 << 24;

    /// Builds the reward `log R = -distance / temperature` (Malkin et al. 2022).
    ///
    /// # Errors
    /// [`Error::Config`] if there is no mode, and unless the temperature is above 0 and finite;
    /// [`Error::Shape`] for a mode whose length differs from that of the sequences.
    pub fn with_temperature<B: AsRef<[bool]>>(words: &Words, modes: &[B], temperature: f64) -> Result<Self> {
        Self::scaled(words, modes, 1.0 / rewards::positive("the temperature", temperature)?)
    }

    /// Builds the reward `log R = -exponent * distance / seq_size` (torchgfn's
    /// `NonAutoregressiveBitSequence`, which computes it in single precision).
    ///
    /// # Errors
    /// [`Error::Config`] if there is no mode, and unless the exponent is above 0 and finite; [`Error::Shape`]
    /// for a mode whose length differs from that of the sequences.
    pub fn with_exponent<B: AsRef<[bool]>>(words: &Words, modes: &[B], exponent: f64) -> Result<Self> {
        Self::scaled(
            words,
            modes,
            rewards::positive("the reward exponent", exponent)? / words.seq_size() as f64,
        )
    }

    fn scaled<B: AsRef<[bool]>>(words: &Words, modes: &[B], scale: f64) -> Result<Self> {
        if modes.is_empty() {
            return Err(Error::config("the modes", "none", "at least one mode"));
        }
        let modes = words.states_of(modes)?;
        Ok(Self { words: *words, modes, scale, tables: DeviceTables::default() })
    }

    /// Returns the modes as states of complete sequences.
    #[must_use]
    pub fn modes(&self) -> &VectorStates {
        &self.modes
    }

    /// Returns the Hamming distance of each state from its nearest mode, in bits.
    ///
    /// # Errors
    /// [`Error::Config`] for a sequence that isn't complete, [`Error::Shape`] for states of another length.
    pub fn distances(&self, states: &VectorStates) -> Result<Vec<u32>> {
        let distances =
            rewards::score_rows(states, self.words.n_words(), |row| self.distance(row).map(f64::from))?;
        Ok(distances.into_iter().map(|distance| distance as u32).collect())
    }

    fn distance(&self, row: &[u16]) -> Option<u32> {
        if row.contains(&0) {
            return None;
        }
        // The entries of a state are words plus 1, so 1 is subtracted before bits are compared.
        let differing = |(a, b): (&u16, &u16)| ((a - 1) ^ (b - 1)).count_ones();
        self.modes.rows().map(|mode| mode.iter().zip(row).map(differing).sum()).min()
    }

    /// Returns the bits of complete sequences, -1 for 0 and 1 for 1, `[n, seq_size]` (f64).
    fn signs(&self, states: &Tensor) -> Tensor {
        let places = Tensor::arange(self.words.word_size() as i64, (Kind::Int64, states.device()));
        let bits = (states - 1).unsqueeze(2).bitwise_right_shift(&places).bitwise_and(1).flatten(1, 2);
        (bits * 2 - 1).to_kind(Kind::Double)
    }

    /// Returns, for each distance from 0 to `seq_size`, the number of sequences at this distance from their
    /// nearest mode. Returns `None` if counting takes more than 2^24 steps, and for sequences of more than
    /// 1,000 bits.
    ///
    /// Positions at which the modes have the same pattern of bits form a class. The distances depend only on
    /// the number of ones in each class. A single mode gives at most two classes, and two modes give at most
    /// four classes, whatever the length. The number of combinations to count is the product of `size + 1`
    /// over all classes, at most `2^seq_size`.
    #[must_use]
    pub fn distance_counts(&self) -> Option<Vec<f64>> {
        let modes: Vec<Vec<bool>> = self.modes.rows().filter_map(|row| self.words.bits(row)).collect();
        let mut sizes: BTreeMap<Vec<bool>, usize> = BTreeMap::new();
        for place in 0..self.words.seq_size() {
            *sizes.entry(modes.iter().map(|mode| mode[place]).collect()).or_insert(0) += 1;
        }
        let combinations = sizes.values().try_fold(1usize, |product, size| product.checked_mul(size + 1));
        // Counts of sequences of more than 1,000 bits can overflow `f64`.
        if combinations.is_none_or(|n| n > Self::MAX_COMBINATIONS) || self.words.seq_size() > 1000 {
            return None;
        }
        let classes: Vec<(Vec<bool>, usize)> = sizes.into_iter().collect();
        let mut counts = vec![0.0; self.words.seq_size() + 1];
        count(&classes, &mut vec![0; modes.len()], 1.0, &mut counts);
        Some(counts)
    }

    /// Returns log Z; `None` if [`distance_counts`](Self::distance_counts) is `None`. With one mode log Z is
    /// `seq_size * log(1 + exp(-scale))`.
    #[must_use]
    pub fn log_z(&self) -> Option<f64> {
        let counts = self.distance_counts()?;
        Some(log_sum_exp(counts.iter().enumerate().map(|(d, count)| count.ln() - self.scale * d as f64)))
    }
}

/// Adds the number of sequences at each distance from their nearest mode to `counts`, by recursion over
/// classes of positions and the number of ones in each class. A class is the set of positions that have the
/// same pattern of bits in the modes. `classes` lists the pattern and the size of each class that isn't
/// processed yet. `distances` holds the distance from each mode in the bits already processed, and `weight`
/// is the number of settings of these bits that give these distances.
fn count(classes: &[(Vec<bool>, usize)], distances: &mut [usize], weight: f64, counts: &mut [f64]) {
    let Some(((pattern, size), rest)) = classes.split_first() else {
        counts[distances.iter().copied().min().unwrap_or(0)] += weight;
        return;
    };
    let mut choices = 1.0;
    for ones in 0..=*size {
        let added = |bit: bool| if bit { size - ones } else { ones };
        for (distance, &bit) in distances.iter_mut().zip(pattern) {
            *distance += added(bit);
        }
        count(rest, distances, weight * choices, counts);
        for (distance, &bit) in distances.iter_mut().zip(pattern) {
            *distance -= added(bit);
        }
        // The next binomial coefficient is computed. The multiplication comes before the division, so that
        // the quotient is a whole number.
        choices = choices * (size - ones) as f64 / (ones + 1) as f64;
    }
}

impl Reward<VectorStates> for HammingReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        rewards::score_rows(states, self.words.n_words(), |row| {
            self.distance(row).map(|distance| -self.scale * f64::from(distance))
        })
    }
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        Some(self)
    }
}

impl TensorReward for HammingReward {
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor> {
        let build = || {
            let entries: Vec<i64> = self.modes.values().iter().map(|&entry| entry.into()).collect();
            [self.signs(&Tensor::from_slice(&entries).view([-1, self.words.n_words() as i64]))]
        };
        let [modes] = self.tables.get(states.device(), build);
        // The products of two bits add up to the number of equal bits minus the number of differing bits.
        let closest = self.signs(states).matmul(&modes.transpose(0, 1)).amax(1, false);
        Ok((closest - self.words.seq_size() as f64) * (self.scale / 2.0))
    }
}
