use std::fmt;
use std::str::FromStr;

use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

/// The rewards of the hyper-grid, by name: what a flag or a configuration file chooses from.
///
/// ```
/// use gfn_gym::hypergrid::RewardKind;
/// assert_eq!("bitwise_xor".parse::<RewardKind>()?, RewardKind::BitwiseXor);
/// assert_eq!(RewardKind::UniformRandom.to_string(), "uniform_random");
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardKind {
    /// [`OriginalReward`](super::OriginalReward).
    Original,
    /// [`CosineReward`](super::CosineReward).
    Cosine,
    /// [`SparseReward`](super::SparseReward).
    Sparse,
    /// [`DeceptiveReward`](super::DeceptiveReward).
    Deceptive,
    /// [`BitwiseXor`](super::BitwiseXor).
    BitwiseXor,
    /// [`MultiplicativeCoprime`](super::MultiplicativeCoprime).
    MultiplicativeCoprime,
    /// [`ConditionalMultiscale`](super::ConditionalMultiscale).
    ConditionalMultiscale,
    /// [`UniformRandomReward`](super::UniformRandomReward).
    UniformRandom,
    /// [`CorruptedReward`](super::CorruptedReward).
    Corrupted,
}

impl RewardKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Original,
        Self::Cosine,
        Self::Sparse,
        Self::Deceptive,
        Self::BitwiseXor,
        Self::MultiplicativeCoprime,
        Self::ConditionalMultiscale,
        Self::UniformRandom,
        Self::Corrupted,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Cosine => "cosine",
            Self::Sparse => "sparse",
            Self::Deceptive => "deceptive",
            Self::BitwiseXor => "bitwise_xor",
            Self::MultiplicativeCoprime => "multiplicative_coprime",
            Self::ConditionalMultiscale => "conditional_multiscale",
            Self::UniformRandom => "uniform_random",
            Self::Corrupted => "corrupted",
        }
    }
}

impl fmt::Display for RewardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RewardKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            Error::config(
                "the reward's name",
                format!("`{name}`"),
                "one of original, cosine, sparse, deceptive, bitwise_xor, multiplicative_coprime, \
                conditional_multiscale, uniform_random, corrupted",
            )
        })
    }
}

/// The difficulty of a reward of the hyper-grid, by name; [`RewardKind::preset`] lists the parameters.
///
/// ```
/// use gfn_gym::hypergrid::Preset;
/// assert_eq!("k16_matched".parse::<Preset>()?, Preset::K16Matched);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Many modes, or small differences.
    Easy,
    /// The default of each reward, or near it.
    Medium,
    /// Fewer modes, or greater differences.
    Hard,
    /// Fewer still.
    Challenging,
    /// Next to none, and nothing in between.
    Impossible,
    /// One rule, to compare with 16 and 64.
    K1,
    /// 16 rules.
    K16,
    /// 64 rules.
    K64,
    /// One rule, with rarer modes.
    K1Matched,
    /// 16 rules, with rarer modes.
    K16Matched,
    /// 64 rules, with rarer modes.
    K64Matched,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Easy,
        Self::Medium,
        Self::Hard,
        Self::Challenging,
        Self::Impossible,
        Self::K1,
        Self::K16,
        Self::K64,
        Self::K1Matched,
        Self::K16Matched,
        Self::K64Matched,
    ];

    /// Those that every reward has, easiest first.
    pub const LEVELS: [Self; 5] = [Self::Easy, Self::Medium, Self::Hard, Self::Challenging, Self::Impossible];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Easy => "easy",
            Self::Medium => "medium",
            Self::Hard => "hard",
            Self::Challenging => "challenging",
            Self::Impossible => "impossible",
            Self::K1 => "k1",
            Self::K16 => "k16",
            Self::K64 => "k64",
            Self::K1Matched => "k1_matched",
            Self::K16Matched => "k16_matched",
            Self::K64Matched => "k64_matched",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| {
            Error::config(
                "the preset's name",
                format!("`{name}`"),
                "one of easy, medium, hard, challenging, impossible, k1, k16, k64, k1_matched, k16_matched, \
                k64_matched",
            )
        })
    }
}
