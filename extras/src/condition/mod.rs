//! Conditions: one policy learns a family of rewards, and each trajectory has a condition that chooses a
//! reward of the family.
//!
//! | item | is |
//! |---|---|
//! | [`Conditioning`] | the distribution of conditions, and their encoding for a network: a [`ConditionSource`](gfn::condition::ConditionSource) |
//! | [`Temperature`] | distributions of the reward exponent beta |
//! | [`Directions`] | distributions of preferences and of goal directions |
//! | [`Focus`] | a cone of goals in the space of objectives; objects outside of the cone get a fixed low log-reward |
//! | [`Encoding`], [`Thermometer`] | the encoding of a number for a network |
//! | [`Condition`] | one condition as plain numbers |
//! | [`ConditionedReward`] | the reward R(x | c) under a condition c, from one reward or several |
//! | [`FocusInHindsight`] | new goal directions for replayed objects: a [`Hindsight`](gfn::condition::Hindsight) |
//! | [`cosine_of`] | the cosine of the angle between two vectors of objectives |
//!
//! The condition vector is an input of the policy and of log Z. Set a network's `n_conditions` to
//! [`Conditioning::width`]. The reward decodes beta, the preferences and the goal direction (the focus)
//! from the vector. Buffers and files store only condition vectors. A policy's logits can also be scaled by
//! a function of the condition (`logit_scale` of the policy configurations).
//!
//! ```
//! use gfn::env::{Reward, Slots};
//! use gfn_extras::condition::{
//!     Condition, ConditionedReward, Conditioning, Directions, Encoding, Temperature,
//! };
//! use std::sync::Arc;
//! let first =
//!     |s: &Slots, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![2f64.ln(); s.0.len()]) };
//! let second =
//!     |s: &Slots, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![6f64.ln(); s.0.len()]) };
//! let conditioning = Conditioning::new(2)?
//!     .temperature(Temperature::Uniform { least: 1.0, most: 4.0 }, Encoding::Thermometer { bins: 16 })?
//!     .preferences(Directions::Dirichlet { concentration: 1.5 }, Encoding::Thermometer { bins: 16 })?;
//! assert_eq!(conditioning.width(), 16 + 2 * 16);
//! let reward = ConditionedReward::new(conditioning.clone(), vec![Arc::new(first), Arc::new(second)])?;
//! let condition = Condition { beta: 2.0, preferences: vec![0.25, 0.75], focus: None };
//! let conditions = conditioning.encode(&[condition])?;
//! // (0.25 * 2 + 0.75 * 6)^2 = 25.
//! assert!((reward.log_reward(&Slots(vec![0]), Some(&conditions))?[0] - 25f64.ln()).abs() < 1e-12);
//! # Ok::<(), gfn::Error>(())
//! ```

mod conditioning;
mod cosine;
mod draws;
mod encoding;
mod hindsight;
mod reward;

pub use conditioning::{Condition, Conditioning, Focus};
pub use cosine::cosine_of;
pub use draws::{Directions, Temperature};
pub use encoding::{Encoding, Thermometer};
pub use hindsight::FocusInHindsight;
pub use reward::ConditionedReward;
