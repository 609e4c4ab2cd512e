//! Objectives that train P_B, and a combination that trains P_F and P_B on the same trajectories.

use serde_json::{Value, json};
use tch::Tensor;

use super::RegressionLoss;
use crate::Result;
use crate::objective::{Balance, Needs, Objective, Origin, Residuals, Scores, mean_weights, needed};

/// Trajectory-likelihood maximisation (Gritsaev et al., *Optimizing Backward Policies in GFlowNets via Trajectory
/// Likelihood Maximization*, 2025): P_B learns the paths that P_F takes.
///
/// Loss `-mean over trajectories of sum log P_B`. It trains P_B alone, on trajectories of P_F. On trajectories from a
/// replay buffer it is the pessimistic backward policy (Jang et al., *Pessimistic Backward Policy for GFlowNets*,
/// 2024), which moves flow to observed paths: replay with [`ReplayPath::Stored`](crate::train::ReplayPath). A trainer
/// refuses paths drawn by uniform backward steps ([`ReplayPath::UniformBackward`](crate::train::ReplayPath)), because
/// P_B would only learn to be uniform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrajectoryLikelihood;

impl Objective for TrajectoryLikelihood {
    fn name(&self) -> &'static str {
        "trajectory likelihood"
    }
    fn needs(&self) -> Needs {
        Needs { learned_pb: true, taken_paths: true, ..Needs::default() }
    }
    fn loss(&self, scores: &Scores, _: RegressionLoss) -> Result<Tensor> {
        Ok(-scores.log_pb.sum(scores.log_pb.kind()) / scores.len().max(1) as f64)
    }
}

/// The maximum-entropy backward policy (Mohammadpour et al., *Maximum Entropy GFlowNets with Soft Q-Learning*, 2024):
/// all paths to an object are equally likely, `P_B(s | s') = n(s) / n(s')` with `n` the number of paths from the
/// initial state.
///
/// Residual per transition except exits: `log n(s') + log P_B(s | s') - log n(s)`, with `log n(s0) = 0`. Needs a policy
/// with an estimator of log n ([`Evaluation::log_paths`](crate::policy::Evaluation::log_paths)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaximumEntropyBackward;

impl Balance for MaximumEntropyBackward {
    fn name(&self) -> &'static str {
        "maximum-entropy backward policy"
    }
    fn needs(&self) -> Needs {
        Needs { log_paths: true, learned_pb: true, ..Needs::default() }
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let paths = needed(scores.log_paths.as_ref(), Balance::name(self), "an estimator of log n(s)")?;
        let step = scores.log_pb.index_select(0, &paths.rows);
        let values = &paths.after + step - &paths.before;
        Ok(Residuals { weights: mean_weights(&values), values })
    }
}

/// One objective for P_F and one for P_B on the same trajectories. P_B is a constant in the first.
///
/// ```
/// use gfn::objective::{Objective, TrajectoryBalance, TrajectoryLikelihood, WithBackward};
/// let objective = WithBackward::new(TrajectoryBalance, TrajectoryLikelihood);
/// assert!(objective.needs().log_z);
/// ```
#[derive(Debug)]
pub struct WithBackward {
    forward: Box<dyn Objective>,
    backward: Box<dyn Objective>,
}

impl WithBackward {
    /// Trains P_F by `forward` and P_B by `backward`.
    #[must_use]
    pub fn new(forward: impl Objective + 'static, backward: impl Objective + 'static) -> Self {
        Self::boxed(Box::new(forward), Box::new(backward))
    }

    /// Same as [`new`](Self::new), for objectives chosen at run time.
    #[must_use]
    pub fn boxed(forward: Box<dyn Objective>, backward: Box<dyn Objective>) -> Self {
        Self { forward, backward }
    }
}

impl Objective for WithBackward {
    fn name(&self) -> &'static str {
        self.forward.name()
    }
    fn needs(&self) -> Needs {
        self.forward.needs().and(self.backward.needs())
    }
    fn origin(&self) -> Origin {
        self.forward.origin().and(self.backward.origin())
    }
    fn epochs(&self) -> usize {
        self.forward.epochs()
    }
    fn reward_exponent(&self) -> f64 {
        self.forward.reward_exponent()
    }
    fn settings(&self) -> Value {
        let of = |objective: &dyn Objective| json!({ "name": objective.name(), "settings": objective.settings() });
        json!({ "forward": of(self.forward.as_ref()), "backward": of(self.backward.as_ref()) })
    }
    fn check(&self) -> Result<()> {
        self.forward.check()?;
        self.backward.check()
    }
    fn loss(&self, scores: &Scores, regression: RegressionLoss) -> Result<Tensor> {
        let forward = self.forward.loss(&scores.with_constant_log_pb(), regression)?;
        Ok(forward + self.backward.loss(scores, regression)?)
    }
}
