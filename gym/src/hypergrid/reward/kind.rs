use std::fmt;
use std::str::FromStr;

use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

/// The names of the hyper-grid's rewards, for flags and configuration files.
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
    /// The reward [`OriginalReward`](super::OriginalReward).
    Original,
    /// The reward [`GridReward::cosine`](super::GridReward::cosine).
    Cosine,
    /// The reward [`GridReward::sparse`](super::GridReward::sparse).
    Sparse,
    /// The reward [`GridReward::deceptive`](super::GridReward::deceptive).
    Deceptive,
    /// The reward [`BitwiseXor`](super::BitwiseXor).
    BitwiseXor,
    /// The reward [`MultiplicativeCoprime`](super::MultiplicativeCoprime).
    MultiplicativeCoprime,
    /// The reward [`ConditionalMultiscale`](super::ConditionalMultiscale).
    ConditionalMultiscale,
    /// The reward [`GridReward::uniform_random`](super::GridReward::uniform_random).
    UniformRandom,
    /// The reward [`GridReward::with_corruption`](super::GridReward::with_corruption).
    Corrupted,
}

impl RewardKind {
    /// A list of the names of all rewards.
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

/// The names of the difficulties of a hyper-grid reward. [`RewardKind::preset`] lists the parameters that
/// belong to each name.
///
/// ```
/// use gfn_gym::hypergrid::Preset;
/// assert_eq!("k16_matched".parse::<Preset>()?, Preset::K16Matched);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// A level of difficulty with many modes, or small differences between rewards.
    Easy,
    /// A level of difficulty with the default parameters of the reward, or with similar parameters.
    Medium,
    /// A level of difficulty with fewer modes than `Medium`, or larger differences between rewards.
    Hard,
    /// A level of difficulty with fewer modes than `Hard`.
    Challenging,
    /// A level of difficulty with almost no modes, and with little or no reward at points that aren't modes.
    Impossible,
    /// A reward with a single rule, to compare with the presets of 16 and 64 rules. A rule is a set of
    /// conditions on a point. A reward with several rules assigns one of them to each point.
    K1,
    /// A reward with 16 rules. The description of `K1` explains what a rule is.
    K16,
    /// A reward with 64 rules. The description of `K1` explains what a rule is.
    K64,
    /// A reward with a single rule, whose modes are rarer than those of `K1`. The description of `K1`
    /// explains what a rule is.
    K1Matched,
    /// A reward with 16 rules, whose modes are rarer than those of `K16`. The description of `K1` explains
    /// what a rule is.
    K16Matched,
    /// A reward with 64 rules, whose modes are rarer than those of `K64`. The description of `K1` explains
    /// what a rule is.
    K64Matched,
}

impl Preset {
    /// A list of the names of all presets.
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

/// Returns the item of `all` whose name is `name`, or an error whose advice is `expected`.
fn find<T: Copy + fmt::Display>(
    setting: &'static str,
    name: &str,
    all: &[T],
    expected: &'static str,
) -> Result<T> {
    let found = all.iter().copied().find(|item| item.to_string() == name);
    found.ok_or_else(|| Error::config(setting, format!("`{name}`"), expected))
}
