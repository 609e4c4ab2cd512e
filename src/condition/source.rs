//! Where the conditions of a training batch come from.

use crate::{Result, Rng};

/// Where the condition vectors of a training batch come from; a closure `Fn(usize, &mut Rng) -> Result<Tensor>` is one.
pub trait ConditionSource: Send {
    /// `n` condition vectors, `[n, C]`; a trainer refuses any other shape.
    ///
    /// # Errors
    /// Whatever keeps it from drawing them.
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<tch::Tensor>;
}

impl<F: Fn(usize, &mut Rng) -> Result<tch::Tensor> + Send> ConditionSource for F {
    fn draw(&self, n: usize, rng: &mut Rng) -> Result<tch::Tensor> {
        self(n, rng)
    }
}
