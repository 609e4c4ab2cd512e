use tch::Tensor;

use crate::Result;
use crate::objective::{Objective, Origin, RegressionLoss, Scores};
use crate::quantity::Quantities;

/// Maximum likelihood of external trajectories: behaviour cloning of P_F.
///
/// The loss is `-mean over trajectories of sum log P_F`. On paths sampled backwards from data by a fixed P_B,
/// the minimum of the loss is the policy that samples from the distribution of the data (Zhang et al.,
/// *Generative Flow Networks for Discrete Probabilistic Modeling*, 2022, eq. 9). A trainer refuses
/// trajectories sampled from the policy itself, because the policy can't learn from its own samples by
/// imitation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaximumLikelihood;

impl Objective for MaximumLikelihood {
    fn name(&self) -> &'static str {
        "maximum likelihood"
    }
    fn needs(&self) -> Quantities {
        Quantities::NONE
    }
    fn origin(&self) -> Origin {
        Origin::Given
    }
    fn loss(&self, scores: &Scores, _: &dyn RegressionLoss) -> Result<Tensor> {
        Ok(-scores.log_pf.sum(scores.log_pf.kind()) / scores.len().max(1) as f64)
    }
}
