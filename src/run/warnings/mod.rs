//! Warnings: signs that training goes wrong without an error. Checking for them draws no random numbers and
//! evaluates no network.

mod checks;
mod diagnostics;
mod recent;
mod stored_rewards;

use std::ops::ControlFlow;

use diagnostics::StepDiagnostics;
use recent::Recent;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stored_rewards::find_changed_reward;

use super::progress::say;
use super::{Observer, Record};
use crate::error::Warning;
use crate::train::{TrainEnv, Trainer};
use crate::{Error, Result};

/// The smallest number of fresh trajectories for which a step's rewards are checked.
const MIN_BATCH: usize = 8;

/// The reaction to a [`Warning`](crate::error::Warning). Every warning is also recorded in
/// [`Warnings::all`](crate::run::Warnings::all) and [`Record::warnings`](crate::run::Record::warnings).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum OnWarning {
    /// Prints the warning as one line on stderr, above a progress line if there is one.
    #[default]
    Print,
    /// Only records the warning.
    Keep,
    /// Ends the run with [`Error::Warned`](crate::Error::Warned) after the step that raises it.
    Fail,
}

/// An observer that warns if training goes wrong without an error. [`Fit`](super::Fit) has one by default.
/// Pass your own to [`Fit::warnings`](super::Fit::warnings) to access the warnings after the run, or to keep
/// its memory over several runs.
///
/// It computes the rewards of at most 8 replayed objects again after step 10 and every 100 steps.
/// [`Trainer::reward_calls`] doesn't count these calls. A checkpoint doesn't store warnings.
pub struct Warnings<S> {
    on_warning: OnWarning,
    warnings: Vec<Warning>,
    /// `true` if any step learned from anything but samples of the current policy.
    has_explored: bool,
    best: Option<Best<S>>,
    floor: Option<f64>,
    /// The number of latest consecutive steps in each of which nearly all trajectories ended in one object.
    one_object_steps: usize,
    /// The number of latest consecutive steps in which nearly all rewards had the lowest value seen.
    floor_steps: usize,
    /// The number of latest consecutive steps with a loss near 0 and constant log Z, and log Z at the first
    /// of these steps.
    still: (usize, f64),
    /// The number of latest consecutive steps with log Z far below the best log-reward.
    far_steps: usize,
    recent: Recent,
}

/// The object with the highest log-reward so far.
struct Best<S> {
    object: S,
    log_reward: f64,
    /// The highest log-reward of any other object, if another object was sampled.
    second_log_reward: Option<f64>,
}

impl<S> std::fmt::Debug for Warnings<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Warnings").field("warnings", &self.warnings).finish_non_exhaustive()
    }
}

impl<S> Default for Warnings<S> {
    /// Returns an observer that prints warnings on stderr.
    fn default() -> Self {
        Self::new(OnWarning::default())
    }
}

impl<S> Warnings<S> {
    /// Returns an observer that reacts to each warning as `on_warning` says.
    #[must_use]
    pub fn new(on_warning: OnWarning) -> Self {
        Self {
            on_warning,
            warnings: Vec::new(),
            has_explored: false,
            best: None,
            floor: None,
            one_object_steps: 0,
            floor_steps: 0,
            still: (0, 0.0),
            far_steps: 0,
            recent: Recent::default(),
        }
    }

    pub(super) fn set_reaction(&mut self, on_warning: OnWarning) {
        self.on_warning = on_warning;
    }

    /// Returns the warnings so far. Each kind of warning occurs once, except warnings about resumed runs.
    #[must_use]
    pub fn all(&self) -> &[Warning] {
        &self.warnings
    }

    /// Raises [`Warning::FewEffective`] if the latest trajectories, weighted by importance, are worth few
    /// samples of the target. [`Fit::run`](super::Fit::run) calls it at the end of a run. It replaces this
    /// warning from the end of an earlier run, because the policy may have learned since.
    ///
    /// # Errors
    /// [`Error::Warned`] if the warning is raised and the reaction is [`OnWarning::Fail`].
    pub fn check_end(&mut self, step: usize) -> Result<()> {
        self.warnings.retain(|warning| !matches!(warning, Warning::FewEffective { .. }));
        let n_before = self.warnings.len();
        if let Some(warning) = self.recent.few_effective(step) {
            self.raise(warning);
        }
        self.report(n_before)
    }

    /// Adds a warning unless there is a warning of its kind. Several different warnings about resumed runs
    /// are kept, because each resume may change other settings.
    fn raise(&mut self, warning: Warning) {
        let is_known = |known: &Warning| match known {
            Warning::Resumed { .. } => *known == warning,
            _ => std::mem::discriminant(known) == std::mem::discriminant(&warning),
        };
        if !self.warnings.iter().any(is_known) {
            self.warnings.push(warning);
        }
    }

    /// Prints the warnings after the first `n_before`, or returns the first of these as an error, depending
    /// on the reaction.
    fn report(&self, n_before: usize) -> Result<()> {
        for warning in &self.warnings[n_before..] {
            match self.on_warning {
                OnWarning::Keep => {}
                OnWarning::Print => say(&format!("warning: {warning}")),
                OnWarning::Fail => return Err(Error::Warned(warning.clone())),
            }
        }
        Ok(())
    }
}

impl<E: TrainEnv> Observer<E> for Warnings<E::States> {
    fn name(&self) -> &str {
        "warnings"
    }

    fn start(&mut self, trainer: &Trainer<E>, _state: Option<&Value>) -> Result<()> {
        let n_before = self.warnings.len();
        if let Some(warning) = trainer.resume_warning() {
            self.raise(warning.clone());
        }
        self.report(n_before)
    }

    fn after_step(&mut self, trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        let Some(batch) = trainer.latest_batch() else { return Ok(ControlFlow::Continue(())) };
        let n_before = self.warnings.len();
        let diagnostics = StepDiagnostics::new(trainer.context(), batch, &record.stats);
        if diagnostics.learns_nothing {
            self.raise(Warning::LearnsNothing { step: diagnostics.step });
        }
        if diagnostics.has_one_target && !trainer.is_sampled_outside() {
            self.recent.add_weights(batch.log_weights.get(..batch.fresh).unwrap_or_default());
        }
        if diagnostics.log_rewards.len() >= MIN_BATCH {
            self.check(&diagnostics);
        }
        let is_known = self.warnings.iter().any(|warning| matches!(warning, Warning::RewardChanged { .. }));
        let changed = if is_known { Ok(None) } else { find_changed_reward(trainer) };
        if let Ok(Some(warning)) = &changed {
            self.raise(warning.clone());
        }
        record.warnings.extend_from_slice(&self.warnings[n_before..]);
        self.report(n_before)?;
        changed?;
        Ok(ControlFlow::Continue(()))
    }
}
