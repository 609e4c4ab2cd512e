use std::fmt;
use std::str::FromStr;

use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

/// The rewards of the hyper-grid by name, for flags and configuration files.
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
    /// [`GridReward::cosine`](super::GridReward::cosine).
    Cosine,
    /// [`GridReward::sparse`](super::GridReward::sparse).
    Sparse,
    /// [`GridReward::deceptive`](super::GridReward::deceptive).
    Deceptive,
    /// [`BitwiseXor`](super::BitwiseXor).
    BitwiseXor,
    /// [`MultiplicativeCoprime`](super::MultiplicativeCoprime).
    MultiplicativeCoprime,
    /// [`ConditionalMultiscale`](super::ConditionalMultiscale).
    ConditionalMultiscale,
    /// [`GridReward::uniform_random`](super::GridReward::uniform_random).
    UniformRandom,
    /// [`GridReward::with_corruption`](super::GridReward::with_corruption).
    Corrupted,
}

impl RewardKind {
    /// All rewards.
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
}

impl fmt::Display for RewardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for RewardKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let expected = "one of original, cosine, sparse, deceptive, bitwise_xor, multiplicative_coprime, \
            conditional_multiscale, uniform_random, corrupted";
        find("the reward's name", name, &Self::ALL, expected)
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
    /// A level with many modes, or small differences between rewards.
    Easy,
    /// The default parameters of each reward, or similar ones.
    Medium,
    /// A level with fewer modes than medium, or larger differences between rewards.
    Hard,
    /// A level with fewer modes than hard.
    Challenging,
    /// A level with almost no modes, and with little or no reward elsewhere.
    Impossible,
    /// A single rule, to compare with presets of 16 and 64 rules: a point belongs to one of 64 groups, each
    /// with its own conditions.
    K1,
    /// 16 rules.
    K16,
    /// 64 rules.
    K64,
    /// A single rule, with rarer modes.
    K1Matched,
    /// 16 rules, with rarer modes.
    K16Matched,
    /// 64 rules, with rarer modes.
    K64Matched,
}

impl Preset {
    /// All presets.
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

    /// The presets that every reward has, easiest first.
    pub const LEVELS: [Self; 5] = [Self::Easy, Self::Medium, Self::Hard, Self::Challenging, Self::Impossible];
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for Preset {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let expected = "one of easy, medium, hard, challenging, impossible, k1, k16, k64, k1_matched, \
            k16_matched, k64_matched";
        find("the preset's name", name, &Self::ALL, expected)
    }
}

/// Returns the item with this name.
fn find<T: Copy + fmt::Display>(
    setting: &'static str,
    name: &str,
    all: &[T],
    expected: &'static str,
) -> Result<T> {
    let found = all.iter().copied().find(|item| item.to_string() == name);
    found.ok_or_else(|| Error::config(setting, format!("`{name}`"), expected))
}
