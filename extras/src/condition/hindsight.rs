use gfn::condition::Hindsight;
use gfn::env::Rows;
use gfn::{Result, Rng};
use tch::Tensor;

use super::ConditionedReward;
use super::conditioning::normalize;

/// Replaces the goal direction in the condition of a replayed object by the direction of the object's
/// objectives, as in recursionpharma/gflownet. Beta and preferences stay. The condition stays unchanged if it
/// has no goal direction, if all objectives of the object are 0, or if an objective is infinite.
#[derive(Clone, Debug)]
pub struct FocusInHindsight<S>(pub ConditionedReward<S>);

impl<S: Rows> Hindsight<S> for FocusInHindsight<S> {
    fn relabel(&self, objects: &S, conditions: &Tensor, _: &mut Rng) -> Result<Tensor> {
        let conditioning = self.0.conditioning();
        let mut decoded = conditioning.decode(conditions)?;
        let objectives = self.0.objectives(objects)?;
        for (condition, own) in decoded.iter_mut().zip(objectives.rows()) {
            // The objectives are divided by the largest objective, so that very small objectives have a
            // direction, too.
            let largest = own.iter().copied().fold(0.0, f64::max);
            if condition.focus.is_some() && largest > 0.0 && largest.is_finite() {
                condition.focus = Some(normalize(&own.iter().map(|x| x / largest).collect::<Vec<_>>()));
            }
        }
        let vectors = conditioning.encode(&decoded)?;
        Ok(vectors.to_kind(conditions.kind()).to_device(conditions.device()))
    }
}
