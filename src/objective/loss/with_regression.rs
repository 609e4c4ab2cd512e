use serde_json::{Value, json};
use tch::Tensor;

use super::{Regression, RegressionLoss, check_regression};
use crate::Result;
use crate::objective::{Objective, Origin, Residuals, Scores};
use crate::quantity::Quantities;

/// An objective with a fixed regression loss. The loss that the trainer's settings name
/// ([`TrainerConfig::regression`](crate::train::TrainerConfig::regression)) must be the default. Use it
/// where objectives are compared or combined, such as in [`WithBackward`](crate::objective::WithBackward).
///
/// ```
/// use gfn::objective::{FDivergence, Objective, TrajectoryBalance, WithRegression};
/// let objective = WithRegression::new(TrajectoryBalance, FDivergence::ForwardKl);
/// assert!(objective.settings().to_string().contains("ForwardKl"));
/// ```
#[derive(Debug)]
pub struct WithRegression {
    objective: Box<dyn Objective>,
    regression: Regression,
}

impl WithRegression {
    /// Returns `objective` with this regression loss.
    #[must_use]
    pub fn new(objective: impl Objective + 'static, regression: impl Into<Regression>) -> Self {
        Self { objective: Box::new(objective), regression: regression.into() }
    }
}

impl Objective for WithRegression {
    fn name(&self) -> &'static str {
        self.objective.name()
    }
    fn needs(&self) -> Quantities {
        self.objective.needs()
    }
    fn smallest_batch(&self) -> usize {
        self.objective.smallest_batch()
    }
    fn needs_taken_paths(&self) -> bool {
        self.objective.needs_taken_paths()
    }
    fn origin(&self) -> Origin {
        self.objective.origin()
    }
    fn epochs(&self) -> usize {
        self.objective.epochs()
    }
    fn n_minibatches(&self) -> usize {
        self.objective.n_minibatches()
    }
    fn fixes_regression(&self) -> bool {
        true
    }
    fn learns_from_transitions(&self) -> bool {
        self.objective.learns_from_transitions()
    }
    fn reward_exponent(&self) -> f64 {
        self.objective.reward_exponent()
    }
    fn settings(&self) -> Value {
        json!({ "objective": self.objective.settings(), "regression": self.regression.settings() })
    }
    fn check(&self) -> Result<()> {
        self.objective.check()?;
        check_regression(&self.regression)
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        self.objective.residuals(scores)
    }
    fn loss(&self, scores: &Scores, _: &dyn RegressionLoss) -> Result<Tensor> {
        self.objective.loss(scores, &self.regression)
    }
}
