//! Conditions: one policy for a family of rewards, of which each trajectory is told one.
//!
//! | item | is |
//! |---|---|
//! | [`Conditioning`] | what is drawn for each trajectory, and how a network is told: a [`ConditionSource`](crate::train::ConditionSource) |
//! | [`Temperature`] | laws of the reward exponent beta |
//! | [`Directions`] | laws of preferences and of directions of focus |
//! | [`Focus`] | a cone of the objectives outside of which nothing counts |
//! | [`Encoding`], [`Thermometer`] | how a number is written for a network |
//! | [`Condition`] | one condition in plain numbers |
//! | [`ConditionedReward`] | R(x | c), from one reward or several |
//! | [`Hindsight`], [`FocusInHindsight`] | other conditions for what is replayed |
//!
//! The condition vector enters the policy and log Z (`n_conditions` of a network's configuration is [`Conditioning::width`]), and the
//! reward reads beta, preferences and focus back from it. Nothing else is passed around: buffers and files hold the vectors.
//! A policy's logits can be scaled by a function of the condition, too (`logit_scale` of the configurations).
//!
//! ```
//! use std::sync::Arc;
//! use gfn::condition::{Condition, ConditionedReward, Conditioning, Directions, Encoding, Temperature};
//! use gfn::env::{Reward, Slots};
//! let first = |s: &Slots, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![2f64.ln(); s.0.len()]) };
//! let second = |s: &Slots, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![6f64.ln(); s.0.len()]) };
//! let conditioning = Conditioning::new(2)?
//!     .temperature(Temperature::Uniform { least: 1.0, most: 4.0 }, Encoding::Thermometer { bins: 16 })?
//!     .preferences(Directions::Dirichlet { concentration: 1.5 }, Encoding::Thermometer { bins: 16 })?;
//! assert_eq!(conditioning.width(), 16 + 2 * 16);
//! let reward = ConditionedReward::new(conditioning.clone(), vec![Arc::new(first), Arc::new(second)])?;
//! let told = Condition { beta: 2.0, preferences: vec![0.25, 0.75], focus: None };
//! let conditions = conditioning.encode(&[told])?;
//! // (0.25 * 2 + 0.75 * 6)^2 = 25.
//! assert!((reward.log_reward(&Slots(vec![0]), Some(&conditions))?[0] - 25f64.ln()).abs() < 1e-12);
//! # Ok::<(), gfn::Error>(())
//! ```

mod conditioning;
mod conditions;
mod cosine;
mod draws;
mod encoding;
mod hindsight;
mod reward;
mod source;

pub use conditioning::{Condition, Conditioning, Focus};
pub use conditions::Conditions;
pub(crate) use cosine::cosine_of;
pub use draws::{Directions, Temperature};
pub use encoding::{Encoding, Thermometer};
pub use hindsight::{FocusInHindsight, Hindsight};
pub use reward::ConditionedReward;
pub use source::ConditionSource;
