//! Conditions: one policy learns a family of rewards, and a condition vector selects the reward of each
//! trajectory.
//!
//! | item | purpose |
//! |---|---|
//! | [`ConditionSource`] | draws the condition vectors of a training batch |
//! | [`Conditions`] | a condition vector for each element of a batch |
//! | [`Hindsight`] | other conditions for replayed objects |
//!
//! The condition vector is an input of the policy, of log Z and of the reward. Buffers and files store the
//! vectors. The logits of a policy can also be scaled by a function of the condition (`logit_scale` of the
//! configurations). The package `gfn-extras` has conditions for temperatures, for preferences among several
//! rewards, and for a preferred direction in the space of several rewards.
//!
//! ```
//! use gfn::condition::ConditionSource;
//! use gfn::tch::{Kind, Tensor};
//! use gfn::{Result, Rng};
//! // Reward exponents from 1 to 4.
//! let source = |n: usize, rng: &mut Rng| -> Result<Tensor> {
//!     let betas: Vec<f64> = (0..n).map(|_| 1.0 + 3.0 * rng.uniform()).collect();
//!     Ok(Tensor::from_slice(&betas).view([-1, 1]))
//! };
//! let conditions = source.draw(8, &mut Rng::seeded(0))?;
//! assert_eq!((conditions.size(), conditions.kind()), (vec![8, 1], Kind::Double));
//! # Ok::<(), gfn::Error>(())
//! ```

mod conditions;
mod hindsight;
mod source;

pub use conditions::Conditions;
pub use hindsight::Hindsight;
pub use source::ConditionSource;
