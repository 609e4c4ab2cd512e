use tch::Tensor;

use super::ConditionedReward;
use super::conditioning::unit;
use crate::env::Rows;
use crate::{Result, Rng};

/// Relabelling in hindsight: replayed objects get other conditions than those they were sampled under. A trajectory
/// then also teaches what its object is worth under another condition.
///
/// Closures `Fn(&States, &Tensor, &mut Rng) -> Result<Tensor>` implement it, and so does a new draw from a
/// [`ConditionSource`](crate::condition::ConditionSource).
/// [`Trainer::with_hindsight`](crate::train::Trainer::with_hindsight) relabels replayed trajectories.
pub trait Hindsight<S>: Send {
    /// New condition vectors `[n, C]` for these objects, in place of those they were sampled under.
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

/// Points the focus at the object: its direction becomes that of the object's own objectives, as in
/// recursionpharma/gflownet. Beta and preferences stay. The whole condition stays without a focus, and for an object
/// whose objectives are all 0 and so have no direction.
#[derive(Clone, Debug)]
pub struct FocusInHindsight<S>(pub ConditionedReward<S>);

impl<S: Rows> Hindsight<S> for FocusInHindsight<S> {
    fn relabel(&self, objects: &S, conditions: &Tensor, _: &mut Rng) -> Result<Tensor> {
        let conditioning = self.0.conditioning();
        let mut decoded = conditioning.decode(conditions)?;
        let objectives = self.0.objectives(objects)?;
        for (condition, own) in decoded.iter_mut().zip(objectives.rows()) {
            // Very small objectives have a direction, too.
            let largest = own.iter().copied().fold(0.0, f64::max);
            if condition.focus.is_some() && largest > 0.0 && largest.is_finite() {
                condition.focus = Some(unit(&own.iter().map(|x| x / largest).collect::<Vec<_>>()));
            }
        }
        let vectors = conditioning.encode(&decoded)?;
        Ok(vectors.to_kind(conditions.kind()).to_device(conditions.device()))
    }
}
