//! Objectives whose loss is an expectation under the policy or a likelihood, instead of a function of balance
//! residuals.

mod critic;
mod likelihood;
mod policy_gradient;
mod proximal;

pub use critic::Critic;
pub use likelihood::MaximumLikelihood;
pub use policy_gradient::{Advantage, PolicyGradient};
pub use proximal::{KlEstimator, ProximalPolicy};
