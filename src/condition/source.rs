//! The source from which the conditions of a training batch are drawn.

use std::sync::Arc;

use crate::{Result, Rng};

/// A source of condition vectors for a training batch. Closures `Fn(usize, &mut Rng) -> Result<Tensor>`
/// implement this trait.
pub trait ConditionSource: Send {
    /// Draws `n` condition vectors, `[n, C]`. The trainer refuses any other shape.
    ///
    /// # Errors
    /// Any error of the implementation.
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<tch::Tensor>;

    /// Checks that this source could have drawn these condition vectors, which are `[n, C]` and finite. A
    /// trainer calls this method if the trajectories of a batch, with their conditions, come from outside of
    /// the trainer. The default accepts all vectors.
    ///
    /// # Errors
    /// Any error that describes an invalid vector.
    fn check(&self, _conditions: &tch::Tensor) -> Result<()> {
        Ok(())
    }
}

impl<F: Fn(usize, &mut Rng) -> Result<tch::Tensor> + Send> ConditionSource for F {
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<tch::Tensor> {
        self(n, rng)
    }
}

/// A source that the program and the trainer share.
impl<C: ConditionSource + Sync + ?Sized> ConditionSource for Arc<C> {
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<tch::Tensor> {
        self.as_ref().draw(n, rng)
    }

    fn check(&self, conditions: &tch::Tensor) -> Result<()> {
        self.as_ref().check(conditions)
    }
}
