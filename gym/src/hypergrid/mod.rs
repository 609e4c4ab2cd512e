//! The hyper-grid of Bengio et al. (*Flow Network based Generative Models*, 2021): the first tensor-state
//! environment.
//!
//! The package has one environment, [`HyperGrid`], and a family of rewards on its points.
//! on a grid of `D` dimensions and height `H`:
//!
//! | [`RewardKind`] | reward | modes | log Z in closed form | number of modes |
//! |---|---|---|---|---|
//! | `original`: [`OriginalReward`] | `r0 + r1 [all a > 0.25] + r2 [all 0.3 < a < 0.4]` | the bands | yes | closed form |
//! | `cosine`: [`GridReward::cosine`] | `r0 + r1 prod (cos(50 a) + 1) N(5 a; 0, 1)` | near the peak | yes | only if there is none |
//! | `sparse`: [`GridReward::sparse`] | 1 at corners made of 1 and `H - 2`, but for all ones | these points | yes | closed form |
//! | `deceptive`: [`GridReward::deceptive`] | `r0 + r1 - r1 [all a > 0.1] + r2 [all 0.3 < a < 0.4]` | the bands | yes | closed form |
//! | `bitwise_xor`: [`BitwiseXor`] | tiers of parity checks on bits | all tiers | `H` a power of 2 | rank over GF(2) |
//! | `multiplicative_coprime`: [`MultiplicativeCoprime`] | tiers of smooth, coprime coordinates and their lcm | all tiers | dynamic programming | the same |
//! | `conditional_multiscale`: [`ConditionalMultiscale`] | tiers of digits that depend on coarser ones | enough tiers to be rare | dynamic programming | the same |
//! | `uniform_random`: [`GridReward::uniform_random`] | `r0`, or `r0 + bonus` at random points | these points | no | no |
//! | `corrupted`: [`GridReward::with_corruption`] | another reward with part of its tiers moved to random points | as many tiers as there | no | no |
//! | (not of the list) [`ConditionalReward`] | from flat to original by a condition in `[0, 1]` | the bands | yes, for each condition | closed form |
//!
//! All of these rewards except the last are [`GridReward`]s, chosen by [`RewardKind`] and [`Preset`].
//! [`GridReward::totals`] sums over all points if no closed form exists.
//!
//! **Zero.** Balance objectives need `log R`, so no reward is 0: an `r0` below [`REWARD_FLOOR`], 1e-12, is
//! replaced by that floor. All rewards and log Z are computed with the replaced `r0`. The floor matters on
//! large grids: 64^10 points of 1e-12 sum to a million. Choose a larger `r0` to state the reward of the
//! points without bonus explicitly.

mod env;
mod reward;

pub use env::HyperGrid;
pub use reward::{
    BitwiseXor, ConditionalMultiscale, ConditionalReward, CoprimeTier, GridReward, GridTotals, LcmTarget,
    MultiplicativeCoprime, MultiscaleTier, OriginalReward, ParityCheck, ParityTier, Preset, REWARD_FLOOR,
    RewardKind, TieredReward,
};
