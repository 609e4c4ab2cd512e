use tch::Tensor;

use crate::{Result, Rng};

/// Relabelling in hindsight: replayed objects get other conditions than the conditions under which they were sampled.
/// So the policy also learns the reward of an object under another condition.
///
/// Closures `Fn(&States, &Tensor, &mut Rng) -> Result<Tensor>` implement it, and so does a new draw from a
/// [`ConditionSource`](crate::condition::ConditionSource).
/// [`Trainer::with_hindsight`](crate::train::Trainer::with_hindsight) relabels replayed trajectories.
pub trait Hindsight<S>: Send {
    /// Returns new condition vectors `[n, C]` for these objects, which replace `conditions`.
    ///
    /// # Errors
    /// Any error of the implementation.
    fn relabel(&self, objects: &S, conditions: &Tensor, rng: &mut Rng) -> Result<Tensor>;
}

impl<S, F: Fn(&S, &Tensor, &mut Rng) -> Result<Tensor> + Send> Hindsight<S> for F {
    fn relabel(&self, objects: &S, conditions: &Tensor, rng: &mut Rng) -> Result<Tensor> {
        self(objects, conditions, rng)
    }
}
