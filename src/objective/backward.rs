//! Objectives that train P_B, and a combination that trains P_F and P_B on the same trajectories.

use serde_json::{Value, json};
use tch::Tensor;

use super::RegressionLoss;
use crate::Result;
use crate::objective::{Objective, Origin, Residuals, Scores};
use crate::quantity::{Quantities, Quantity};
use crate::tensor::select_rows;

/// Trajectory-likelihood maximisation (Gritsaev et al., *Optimizing Backward Policies in GFlowNets via
/// Trajectory Likelihood Maximization*, 2025): P_B learns to imitate the paths that P_F samples.
///
/// The loss is `-mean over trajectories of sum log P_B`. The loss trains P_B alone, on trajectories sampled
/// from P_F. On trajectories from a replay buffer the loss trains the pessimistic backward policy (Jang et
/// al., *Pessimistic Backward Policy for GFlowNets*, 2024), which moves flow to observed paths; use
/// [`ReplayPath::Stored`](crate::train::ReplayPath) for that. A trainer refuses paths sampled by uniform
/// backward steps ([`ReplayPath::UniformBackward`](crate::train::ReplayPath)), because P_B would only learn
/// to be uniform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrajectoryLikelihood;

impl Objective for TrajectoryLikelihood {
    fn name(&self) -> &'static str {
        "trajectory likelihood"
    }
    fn needs(&self) -> Quantities {
        Quantity::LearnedLogPb.into()
    }
    fn needs_taken_paths(&self) -> bool {
        true
    }
    fn loss(&self, scores: &Scores, _: &dyn RegressionLoss) -> Result<Tensor> {
        Ok(-scores.log_pb.sum(scores.log_pb.kind()) / scores.len().max(1) as f64)
    }
}

/// The maximum-entropy backward policy (Mohammadpour et al., *Maximum Entropy GFlowNets with Soft
/// Q-Learning*, 2024): all paths to an object are equally likely, `P_B(s | s') = n(s) / n(s')` with `n` the
/// number of paths from the initial state.
///
/// The residual of a transition from s to s' that isn't an exit is `log n(s') + log P_B(s | s') - log n(s)`,
/// with `log n(s0) = 0`. The objective needs a policy with an estimator of log n ([`Quantity::LogPaths`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaximumEntropyBackward;

impl Objective for MaximumEntropyBackward {
    fn name(&self) -> &'static str {
        "maximum-entropy backward policy"
    }
    fn needs(&self) -> Quantities {
        Quantity::LogPaths | Quantity::NextLogPaths | Quantity::LearnedLogPb
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let before = scores.need(Quantity::LogPaths, self.name())?;
        let after = scores.need(Quantity::NextLogPaths, self.name())?;
        let step = select_rows(&scores.log_pb, &scores.inner);
        Ok(Residuals::mean(after + step - before))
    }
}

/// A pair of objectives on the same trajectories: the forward objective trains P_F, and the backward
/// objective trains P_B. The forward objective treats P_B as a constant. The loss is the sum of both losses.
///
/// ```
/// use gfn::objective::{Objective, TrajectoryBalance, TrajectoryLikelihood, WithBackward};
/// use gfn::objective::Quantity;
/// let objective = WithBackward::new(TrajectoryBalance, TrajectoryLikelihood);
/// assert!(objective.needs().has(Quantity::LogZ));
/// ```
#[derive(Debug)]
pub struct WithBackward {
    forward: Box<dyn Objective>,
    backward: Box<dyn Objective>,
}

impl WithBackward {
    /// Returns an objective that trains P_F by `forward` and P_B by `backward`.
    #[must_use]
    pub fn new(forward: impl Objective + 'static, backward: impl Objective + 'static) -> Self {
        Self::boxed(Box::new(forward), Box::new(backward))
    }

    /// Returns the same pair as [`new`](Self::new), for objectives whose types are chosen at run time.
    #[must_use]
    pub fn boxed(forward: Box<dyn Objective>, backward: Box<dyn Objective>) -> Self {
        Self { forward, backward }
    }
}

impl Objective for WithBackward {
    fn name(&self) -> &'static str {
        self.forward.name()
    }
    fn needs(&self) -> Quantities {
        self.forward.needs() | self.backward.needs()
    }
    fn smallest_batch(&self) -> usize {
        self.forward.smallest_batch().max(self.backward.smallest_batch())
    }
    fn needs_taken_paths(&self) -> bool {
        self.forward.needs_taken_paths() || self.backward.needs_taken_paths()
    }
    fn origin(&self) -> Origin {
        self.forward.origin().and(self.backward.origin())
    }
    fn epochs(&self) -> usize {
        self.forward.epochs()
    }
    fn n_minibatches(&self) -> usize {
        self.forward.n_minibatches()
    }
    fn fixes_regression(&self) -> bool {
        self.forward.fixes_regression() || self.backward.fixes_regression()
    }
    fn reward_exponent(&self) -> f64 {
        self.forward.reward_exponent()
    }
    fn settings(&self) -> Value {
        let describe =
            |objective: &dyn Objective| json!({ "name": objective.name(), "settings": objective.settings() });
        json!({ "forward": describe(self.forward.as_ref()), "backward": describe(self.backward.as_ref()) })
    }
    fn check(&self) -> Result<()> {
        self.forward.check()?;
        self.backward.check()
    }
    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        let forward = self.forward.loss(&scores.with_constant_log_pb(), regression)?;
        Ok(forward + self.backward.loss(scores, regression)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::{Regression, TrajectoryBalance};
    use crate::tensor::to_host;

    /// Checks that P_F gets the gradient of the forward objective only, and that P_B gets the gradient of the
    /// backward objective only.
    #[test]
    fn each_policy_is_trained_by_its_objective_only() {
        let [log_pf, log_pb] =
            [[-1.0, -2.0], [-0.5, 0.0]].map(|values| Tensor::from_slice(&values).set_requires_grad(true));
        let mut scores = Scores::new(
            vec![0, 1, 2],
            log_pf.shallow_clone(),
            log_pb.shallow_clone(),
            Tensor::from_slice(&[3.0, 1.0]),
        );
        scores.set(Quantity::LogZ, Tensor::from_slice(&[4.0, 4.0])).unwrap();
        let objective = WithBackward::new(TrajectoryBalance, TrajectoryLikelihood);
        objective.loss(&scores, &Regression::Squared).unwrap().backward();
        assert_eq!(to_host(&log_pb.grad()), [-0.5, -0.5], "of the likelihood alone");
        assert_eq!(to_host(&log_pf.grad()), [4.0 - 1.0 + 0.5 - 3.0, 4.0 - 2.0 - 1.0], "of the balance alone");
    }
}
