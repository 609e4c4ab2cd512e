//! The hyper-grid of Bengio et al. (*Flow Network based Generative Models*, 2021): the library's first
//! environment whose states are vectors of numbers.
//!
//! The module has one environment, [`HyperGrid`], and a family of rewards on its points. The table lists the
//! rewards for a grid of `D` dimensions and height `H`. In three rewards a coordinate `x` enters as its
//! distance from the middle, `a = |x / (H - 1) - 1/2|`. The *bands* are the points with `0.3 < a < 0.4` in
//! every dimension. A *tier* adds to the reward of the points that meet its conditions and those of all tiers
//! before it.
//!
//! | [`RewardKind`] | reward | modes | log Z in closed form | number of modes |
//! |---|---|---|---|---|
//! | `original`: [`OriginalReward`] | `r0 + r1 [all a > 0.25] + r2 [all 0.3 < a < 0.4]` | the bands | yes | closed form |
//! | `cosine`: [`GridReward::cosine`] | `r0 + r1 prod (cos(50 a) + 1) N(5 a; 0, 1)` | points near the peak | yes | known only if it is 0 |
//! | `sparse`: [`GridReward::sparse`] | 1 at points whose coordinates are 1 or `H - 2`, but not all are 1 | these points | yes | closed form |
//! | `deceptive`: [`GridReward::deceptive`] | `r0 + r1 - r1 [all a > 0.1] + r2 [all 0.3 < a < 0.4]` | the bands | yes | closed form |
//! | `bitwise_xor`: [`BitwiseXor`] | tiers of parity checks on bits | modes pass all tiers | if `H` is a power of 2 | by the rank over GF(2), if `H` is a power of 2 |
//! | `multiplicative_coprime`: [`MultiplicativeCoprime`] | tiers of smooth, coprime coordinates and their least common multiple | modes pass all tiers | by dynamic programming | by dynamic programming |
//! | `conditional_multiscale`: [`ConditionalMultiscale`] | tiers of digits that depend on coarser digits | modes pass the first tiers, enough of them to make modes rare | by dynamic programming | by dynamic programming |
//! | `uniform_random`: [`GridReward::uniform_random`] | `r0`, or `r0 + bonus` at random points | these points | no | no |
//! | `corrupted`: [`GridReward::with_corruption`] | another reward with part of its tiers moved to random points | modes pass the tiers that a mode of the other reward passes | no | no |
//! | no name: [`ConditionalReward`] | a mixture of a flat reward and `original`, under a condition in `[0, 1]` | the bands | yes, for each condition | closed form |
//!
//! All of these rewards except the last are [`GridReward`]s, chosen by [`RewardKind`] and [`Preset`].
//! [`GridReward::totals`] sums over all points if no closed form exists.
//!
//! **No reward is 0.** Balance objectives need `log R`. Therefore an `r0` below [`REWARD_FLOOR`], 1e-12, is
//! replaced by that floor. All rewards and log Z are computed with the replaced `r0`. The floor matters on
//! large grids: 64^10 points with a reward of 1e-12 add a million to Z. Choose a larger `r0` to state the
//! reward of the points without bonus explicitly.

mod env;
mod reward;

pub use env::HyperGrid;
pub use reward::{
    BitwiseXor, ConditionalMultiscale, ConditionalReward, CoprimeTier, GridReward, GridTotals, LcmTarget,
    MultiplicativeCoprime, MultiscaleTier, OriginalReward, ParityCheck, ParityTier, Preset, REWARD_FLOOR,
    RewardKind, TieredReward,
};
