//! An objective that ends a step in which rules of Python failed, before anything is updated.

use gfn::objective::Quantities;
use gfn::objective::{Objective, Origin, RegressionLoss, Scores};
use gfn::{Error, Result};
use tch::Tensor;

use crate::env::Failures;

/// Masks have no place for an error: where rules fail nothing is allowed, and what they raised is kept. A loss on such masks must not be
/// learned from.
#[derive(Debug)]
struct Guarded {
    objective: Box<dyn Objective>,
    failures: Failures,
}

impl Objective for Guarded {
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
    fn learns_from_transitions(&self) -> bool {
        self.objective.learns_from_transitions()
    }
    fn reward_exponent(&self) -> f64 {
        self.objective.reward_exponent()
    }
    fn settings(&self) -> serde_json::Value {
        self.objective.settings()
    }
    fn check(&self) -> Result<()> {
        self.objective.check()
    }
    fn loss(&self, scores: &Scores, regression: RegressionLoss) -> Result<Tensor> {
        match self.failures.take() {
            Some(raised) => Err(Error::external("the rules", raised)),
            None => self.objective.loss(scores, regression),
        }
    }
}

/// The objective of a trainer whose environment asks rules of Python.
pub(crate) fn guarded(objective: Box<dyn Objective>, failures: Failures) -> Box<dyn Objective> {
    Box::new(Guarded { objective, failures })
}
