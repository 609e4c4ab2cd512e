//! Objectives whose loss is an expectation under the policy or a likelihood, instead of a function of balance
//! residuals.

mod likelihood;
mod policy_gradient;

pub use likelihood::MaximumLikelihood;
pub use policy_gradient::{Advantage, PolicyGradient, ProximalPolicy};
