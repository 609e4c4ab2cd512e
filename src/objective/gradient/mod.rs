//! Objectives that follow the gradient of an expectation or of a likelihood instead of a balance.

mod likelihood;
mod policy_gradient;

pub use likelihood::MaximumLikelihood;
pub use policy_gradient::{Advantage, PolicyGradient, ProximalPolicy};
