use tch::Tensor;

use super::ConditionedReward;
use super::conditioning::unit;
use crate::env::Rows;
use crate::{Result, Rng};

/// Other conditions for objects that were found under some: a trajectory teaches what it would have been worth under any condition.
///
/// A closure `Fn(&States, &Tensor, &mut Rng) -> Result<Tensor>` is one, as is fresh drawing from a
/// [`ConditionSource`](crate::train::ConditionSource). [`Trainer::with_hindsight`](crate::train::Trainer::with_hindsight) relabels what is replayed.
pub trait Hindsight<S>: Send {
    /// Condition vectors `[n, C]` for these objects, in place of those that they were found under.
    ///
    /// # Errors
    /// Whatever keeps it from telling.
    fn relabel(&self, objects: &S, conditions: &Tensor, rng: &mut Rng) -> Result<Tensor>;
}

impl<S, F: Fn(&S, &Tensor, &mut Rng) -> Result<Tensor> + Send> Hindsight<S> for F {
    fn relabel(&self, objects: &S, conditions: &Tensor, rng: &mut Rng) -> Result<Tensor> {
        self(objects, conditions, rng)
    }
}

/// Turns the focus to where the object is: its direction becomes that of the object's own objectives, as in recursionpharma/gflownet. Beta and
/// preferences stay; so does all of the condition of an object without a direction (all of whose objectives are 0), and without a focus.
#[derive(Clone, Debug)]
pub struct FocusInHindsight<S>(pub ConditionedReward<S>);

impl<S: Rows> Hindsight<S> for FocusInHindsight<S> {
    fn relabel(&self, objects: &S, conditions: &Tensor, _: &mut Rng) -> Result<Tensor> {
        let conditioning = self.0.conditioning();
        let mut told = conditioning.decode(conditions)?;
        let objectives = self.0.objectives(objects)?;
        for (condition, own) in told.iter_mut().zip(objectives.rows()) {
            // Small numbers have a direction, too.
            let largest = own.iter().copied().fold(0.0, f64::max);
            if condition.focus.is_some() && largest > 0.0 && largest.is_finite() {
                condition.focus = Some(unit(&own.iter().map(|x| x / largest).collect::<Vec<_>>()));
            }
        }
        let vectors = conditioning.encode(&told)?;
        Ok(vectors.to_kind(conditions.kind()).to_device(conditions.device()))
    }
}
