//! The sum of gradients over replicas.

use super::Companion;
use crate::Result;
use crate::env::Env;
use crate::policy::Policy;
use crate::train::gradients::sum_gradients;
use crate::train::{Context, Persist};

/// Replaces each gradient by its sum over all replicas, before other companions and the optimizer see it.
pub(in crate::train) struct GradientSum;

impl<E: Env> Persist<E> for GradientSum {
    fn name(&self) -> &str {
        "gradient_sum"
    }
}

impl<E: Env> Companion<E> for GradientSum {
    fn before_update(&mut self, context: &Context<E>) -> Result<()> {
        match (context.replicas(), context.policy.parameters()) {
            (Some(group), Some(parameters)) => sum_gradients(group, parameters),
            _ => Ok(()),
        }
    }
}
