use tch::Tensor;

use crate::{Result, Rng};

/// Relabelling in hindsight: replayed objects get other conditions than those under which they were sampled.
/// In this way the policy also learns the rewards of objects under other conditions.
///
/// Closures `Fn(&States, &Tensor, &mut Rng) -> Result<Tensor>` implement this trait. So does a
/// [`ConditionSource`](crate::condition::ConditionSource), which draws new conditions.
/// [`Trainer::with_hindsight`](crate::train::Trainer::with_hindsight) relabels replayed trajectories.
pub trait Hindsight<S>: Send {
    /// Returns new condition vectors for these objects, `[n, C]`. They replace `conditions`.
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
