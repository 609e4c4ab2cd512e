//! Objectives whose loss is an expectation under the policy or a likelihood, instead of the residual of a
//! balance.

mod likelihood;
mod policy_gradient;

pub use likelihood::MaximumLikelihood;
pub use policy_gradient::{Advantage, PolicyGradient, ProximalPolicy};
