use tch::Tensor;

use crate::{Result, Rng};

/// Relabelling in hindsight: replayed objects get conditions other than the conditions under which they were
/// sampled. In this way the policy also learns the rewards of objects under these conditions.
///
/// Closures `Fn(&States, &Tensor, &mut Rng) -> Result<Tensor>` implement this trait. A
/// [`ConditionSource`](crate::condition::ConditionSource) implements it, too, by drawing new conditions.
/// [`Trainer::with_hindsight`](crate::train::Trainer::with_hindsight) relabels replayed trajectories.
pub trait Hindsight<S>: Send {
    /// Returns new condition vectors for these objects, `[n, C]`. The new vectors replace `conditions`.
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
