//! The parameters of each reward under each preset.

use gfn::{Error, Result};

use super::{
    BitwiseXor, ConditionalMultiscale, GridReward, LcmTarget, MultiplicativeCoprime, MultiscaleTier,
    OriginalReward, Preset, RewardKind,
};
use crate::hypergrid::HyperGrid;

/// A seed with several uses. In the five levels from `Easy` to `Impossible` it gives the coefficients of
/// `conditional_multiscale`, the hash that chooses the modes of `uniform_random` and, plus the index of the
/// level, the parity checks of `bitwise_xor`. It also gives the parity checks that all `k` presets (`K1`,
/// `K16`, `K64` and their matched variants) of `bitwise_xor` share.
const SEED: u64 = 42;
/// The seed of the rules of `k` presets (`K1`, `K16`, `K64` and their matched variants). A rule is a set of
/// conditions, and exactly one of a preset's rules applies to each point. A preset with more rules begins
/// with the same rules as a preset with fewer rules.
const RULE_SEED: u64 = 2025;
/// The seed of the `corrupted` reward, whose hashes decide which points stop being modes and which points
/// become modes.
const CORRUPTION_SEED: u64 = 137;

impl RewardKind {
    /// Returns the reward with its standard parameters. Rewards that are built from tiers document these
    /// parameters at their own `standard` functions. [`corrupted`](GridReward::with_corruption) has a rate of
    /// 0.2, and its base reward is the standard `conditional_multiscale`. The other rewards have the
    /// parameters of [`Preset::Medium`].
    ///
    /// # Errors
    /// [`Error::Config`] if the reward doesn't exist on this grid: `conditional_multiscale` and `corrupted`
    /// need a height that is a power of 4.
    pub fn standard(self, grid: &HyperGrid) -> Result<GridReward> {
        match self {
            Self::BitwiseXor => BitwiseXor::standard(grid).build(grid),
            Self::MultiplicativeCoprime => MultiplicativeCoprime::standard(grid).build(grid),
            Self::ConditionalMultiscale => ConditionalMultiscale::standard(grid).build(grid),
            Self::Corrupted => {
                Self::ConditionalMultiscale.standard(grid)?.with_corruption(0.2, CORRUPTION_SEED)
            }
            Self::Original | Self::Cosine | Self::Sparse | Self::Deceptive | Self::UniformRandom => {
                self.preset(grid, Preset::Medium)
            }
        }
    }

    /// Returns the reward of a preset of torchgfn. Seeds are fixed, but the numbers drawn from them differ
    /// from torchgfn's.
    ///
    /// | reward | parameters | easy | medium | hard | challenging | impossible |
    /// |---|---|---|---|---|---|---|
    /// | `original` | r0, r1, r2 | .1, .3, 1 | .1, .5, 2 | .05, .6, 3 | .01, .6, 4 | 0, .7, 5 |
    /// | `cosine` | r0, r1, gamma | .1, .3, .7 | .1, .5, .8 | .05, .6, .85 | .01, .7, .9 | 0, .8, .92 |
    /// | `sparse` | none | | | | | |
    /// | `deceptive` | r1, r2 (r0 = 1e-5) | .05, 1 | .1, 2 | .15, 3 | .2, 4 | .25, 5 |
    /// | `bitwise_xor` | dimensions: checks of each tier | 3: 1, 1, 1 | 5: 1, 2, 2 | 8: 1, 2, 3 | 10: 1, 2, 4 | 12: 2, 4, 6 |
    /// | `multiplicative_coprime` | dimensions, primes up to | 3, 5 | 5, 7 | 8, 11 | 10, 13 | 12, 29 |
    /// | `conditional_multiscale` | dimensions, tiers | 3, 2 | 4, 3 | 6, 3 | 8, 4 | 12, 4 |
    /// | `uniform_random` | share of modes | .1 | .01 | .001 | 1e-4 | 1e-5 |
    /// | `corrupted` | rate (base reward: `conditional_multiscale` medium) | .1 | .3 | .5 | .7 | .9 |
    ///
    /// If a grid has fewer dimensions than a preset constrains, all dimensions are constrained. Tiers for
    /// which the height has no digits are left out. Only three rewards have the `k` presets, whose names
    /// begin with `k`: `bitwise_xor` on at least 10 dimensions (matched presets also need a height of at
    /// least 8), `multiplicative_coprime` on at least 6 dimensions (matched presets need 10, and there is no
    /// `k64`), and `conditional_multiscale` on any number of dimensions (matched presets need at least 24).
    ///
    /// Not every preset has a mode on every grid: see [`check_modes`](GridReward::check_modes).
    ///
    /// # Errors
    /// [`Error::Config`] for a preset that the reward doesn't have, for a grid that is too small for the
    /// preset, and the errors of [`standard`](Self::standard).
    pub fn preset(self, grid: &HyperGrid, preset: Preset) -> Result<GridReward> {
        let level = || level(self, preset);
        match self {
            Self::Original => {
                let [r0, r1, r2] =
                    [[0.1, 0.3, 1.0], [0.1, 0.5, 2.0], [0.05, 0.6, 3.0], [0.01, 0.6, 4.0], [0.0, 0.7, 5.0]]
                        [level()?];
                Ok(OriginalReward::new(grid, r0, r1, r2)?.grid_reward().clone())
            }
            Self::Cosine => {
                let [r0, r1, gamma] =
                    [[0.1, 0.3, 0.7], [0.1, 0.5, 0.8], [0.05, 0.6, 0.85], [0.01, 0.7, 0.9], [0.0, 0.8, 0.92]]
                        [level()?];
                GridReward::cosine(grid, r0, r1, gamma)
            }
            Self::Sparse => level().map(|_| GridReward::sparse(grid)),
            Self::Deceptive => {
                let [r1, r2] = [[0.05, 1.0], [0.1, 2.0], [0.15, 3.0], [0.2, 4.0], [0.25, 5.0]][level()?];
                GridReward::deceptive(grid, 1e-5, r1, r2)
            }
            Self::BitwiseXor => BitwiseXor::preset(grid, preset)?.build(grid),
            Self::MultiplicativeCoprime => MultiplicativeCoprime::preset(grid, preset)?.build(grid),
            Self::ConditionalMultiscale => ConditionalMultiscale::preset(grid, preset)?.build(grid),
            Self::UniformRandom => {
                GridReward::uniform_random(grid, 0.1, 2.0, [0.1, 0.01, 0.001, 1e-4, 1e-5][level()?], SEED)
            }
            Self::Corrupted => {
                let rate = [0.1, 0.3, 0.5, 0.7, 0.9][level()?];
                let base = Self::ConditionalMultiscale.preset(grid, Preset::Medium)?;
                base.with_corruption(rate, CORRUPTION_SEED)
            }
        }
    }
}

impl BitwiseXor {
    /// Returns the parameters of a [preset](RewardKind::preset).
    ///
    /// # Errors
    /// [`Error::Config`] for a `k` preset (`K1`, `K16` and so on) on fewer than 10 dimensions, or a matched
    /// preset (`K1Matched` and so on) at a height of 4 or below.
    pub fn preset(grid: &HyperGrid, preset: Preset) -> Result<Self> {
        let kind = RewardKind::BitwiseXor;
        if let Some((n_rules, matched)) = rules_of(preset) {
            needs(kind, preset, grid, 10)?;
            let trunk = Self::random(grid, 10, &[1, 1, 2], SEED)?;
            let top = (grid.height() - 1).ilog2();
            let (n_checks, planes) = if matched { (2, (0, 2)) } else { (1, (0, top)) };
            return trunk.with_random_rules(grid, 1000.0, n_rules, n_checks, planes, RULE_SEED);
        }
        let level = level(kind, preset)?;
        let (n_dims, n_checks) =
            [(3, [1, 1, 1]), (5, [1, 2, 2]), (8, [1, 2, 3]), (10, [1, 2, 4]), (12, [2, 4, 6])][level];
        Self::random(grid, grid.ndim().min(n_dims), &n_checks, SEED + level as u64)
    }
}

impl MultiplicativeCoprime {
    /// Returns the parameters of a [preset](RewardKind::preset). From the third tier on, the numbers `x + 1`
    /// of neighbouring dimensions, with `x` their coordinates, must be coprime. The last tier requires the
    /// least common multiple [`LcmTarget::Full`]. The exceptions are `easy`, which requires none, and the `k`
    /// presets (`K1`, `K16`), which require that of the point's rule. In matched presets (such as
    /// `K1Matched`) all rules require `Full`, so that rules only group the points.
    ///
    /// # Errors
    /// [`Error::Config`] for `k64` without matching, or a `k` preset on fewer than 6 dimensions (matched:
    /// 10).
    pub fn preset(grid: &HyperGrid, preset: Preset) -> Result<Self> {
        let kind = RewardKind::MultiplicativeCoprime;
        let of = |n_dims, n_primes, caps: &[u32], last| Self::chain(grid, n_dims, n_primes, caps, last);
        match rules_of(preset) {
            Some((n_rules, true)) => {
                needs(kind, preset, grid, 10)?;
                Ok(Self { rules: vec![None; n_rules], ..of(10, 4, &[2; 4], LcmTarget::Full) })
            }
            Some((64, false)) => refuse(kind, preset),
            Some((n_rules, false)) => {
                needs(kind, preset, grid, 6)?;
                of(6, 4, &[2; 4], LcmTarget::Any).with_random_rules(grid, n_rules, RULE_SEED)
            }
            None => Ok(match level(kind, preset)? {
                0 => of(3, 3, &[2; 3], LcmTarget::Any),
                1 => of(5, 4, &[2; 4], LcmTarget::Full),
                2 => of(8, 5, &[3; 4], LcmTarget::Full),
                3 => of(10, 6, &[3, 3, 4, 4], LcmTarget::Full),
                _ => of(12, 10, &[4; 5], LcmTarget::Full),
            }),
        }
    }
}

impl ConditionalMultiscale {
    /// Returns the parameters of a [preset](RewardKind::preset), in base 4 with a `filter_width` of 2 (3 for
    /// matched presets, such as `K1Matched`). Tiers may also require that the sum of their digits over the
    /// dimensions with conditions is a multiple of a number. This number is 3 in all tiers of matched
    /// presets. It is 2 in the other `k` presets and in the levels `Hard`, `Challenging` and `Impossible`,
    /// except that the first tier (in `Challenging` the first two) has no such condition.
    ///
    /// # Errors
    /// [`Error::Config`] for a matched preset on fewer than 24 dimensions. On 24 and more dimensions only a
    /// height of 4 keeps a grid below 2^64 points.
    pub fn preset(grid: &HyperGrid, preset: Preset) -> Result<Self> {
        let kind = RewardKind::ConditionalMultiscale;
        let of = |n_dims: usize, width, mods: &[Option<u32>], n_rules, seed| {
            let tier = |(t, &cross_mod)| MultiscaleTier { weight: 10f64.powi(t as i32), shift: 0, cross_mod };
            let tiers: Vec<MultiscaleTier> = mods.iter().enumerate().map(tier).collect();
            Self::random(grid, grid.ndim().min(n_dims), width, &tiers, n_rules, seed)
        };
        let even = Some(2);
        match rules_of(preset) {
            Some((n_rules, true)) => {
                needs(kind, preset, grid, 24)?;
                Ok(of(24, 3, &[Some(3); 2], n_rules, RULE_SEED))
            }
            Some((n_rules, false)) => Ok(of(6, 2, &[None, even, even], n_rules, RULE_SEED)),
            None => Ok(match level(kind, preset)? {
                0 => of(3, 2, &[None; 2], 1, SEED),
                1 => of(4, 2, &[None; 3], 1, SEED),
                2 => of(6, 2, &[None, even, even], 1, SEED),
                3 => of(8, 2, &[None, None, even, even], 1, SEED),
                _ => of(12, 2, &[None, even, even, even], 1, SEED),
            }),
        }
    }
}

/// Returns the number of rules of a `k` preset (`K1`, `K16` and so on), and `true` for a matched preset
/// (`K1Matched` and so on). A rule is a set of conditions, and exactly one rule applies to each point.
/// Returns `None` for other presets.
fn rules_of(preset: Preset) -> Option<(usize, bool)> {
    match preset {
        Preset::K1 => Some((1, false)),
        Preset::K16 => Some((16, false)),
        Preset::K64 => Some((64, false)),
        Preset::K1Matched => Some((1, true)),
        Preset::K16Matched => Some((16, true)),
        Preset::K64Matched => Some((64, true)),
        Preset::Easy | Preset::Medium | Preset::Hard | Preset::Challenging | Preset::Impossible => None,
    }
}

/// Returns the index of a preset among the five levels from easy to impossible.
fn level(kind: RewardKind, preset: Preset) -> Result<usize> {
    Preset::LEVELS.iter().position(|level| *level == preset).map_or_else(|| refuse(kind, preset), Ok)
}

fn refuse<T>(kind: RewardKind, preset: Preset) -> Result<T> {
    Err(Error::config(
        "the preset",
        format!("{preset} for the {kind} reward"),
        "easy, medium, hard, challenging or impossible; or a preset whose name begins with k, for \
         bitwise_xor, conditional_multiscale and (except k64) multiplicative_coprime",
    ))
}

fn needs(kind: RewardKind, preset: Preset, grid: &HyperGrid, n_dims: usize) -> Result<()> {
    if grid.ndim() >= n_dims {
        return Ok(());
    }
    Err(Error::config(
        "the preset",
        format!(
            "{preset} of the {kind} reward, which needs {n_dims} dimensions, on a grid of {} dimensions",
            grid.ndim()
        ),
        "a grid with at least as many dimensions as the preset needs",
    ))
}
