//! A wrapper of trainers that collects their warnings, for tests.

use gfn::Result;
use gfn::env::Env;
use gfn::error::Warning;
use gfn::run::{Fit, OnWarning, Warnings};
use gfn::train::{StepStats, TrainEnv, Trainer};

/// A trainer, and the warnings of all its steps so far.
pub(crate) struct WarningRecorder<E: Env> {
    pub(crate) trainer: Trainer<E>,
    warnings: Warnings<E::States>,
}

impl<E: TrainEnv> WarningRecorder<E> {
    /// Wraps a trainer whose warnings are kept without being printed.
    pub(crate) fn new(trainer: Trainer<E>) -> Self {
        Self::with_action(trainer, OnWarning::Keep)
    }

    pub(crate) fn with_action(trainer: Trainer<E>, on_warning: OnWarning) -> Self {
        Self { trainer, warnings: Warnings::new(on_warning) }
    }

    /// Makes `n` steps and collects their warnings.
    pub(crate) fn steps(&mut self, n: usize) -> Result<()> {
        self.steps_by(n, &mut Trainer::step)
    }

    /// Makes `n` steps by a custom loop, in which the closure makes each step, and collects their warnings.
    pub(crate) fn steps_by(
        &mut self,
        n: usize,
        step: &mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>,
    ) -> Result<()> {
        let end = self.trainer.steps_done() + n;
        Fit::new(end).warnings(&mut self.warnings).run_by(&mut self.trainer, step).map(drop)
    }

    /// Runs until `steps` steps are made in total, collects the warnings, and makes the checks at the end of
    /// a run.
    pub(crate) fn run(&mut self, steps: usize) -> Result<()> {
        Fit::new(steps).warnings(&mut self.warnings).run(&mut self.trainer)
    }

    pub(crate) fn warnings(&self) -> &[Warning] {
        self.warnings.all()
    }
}
