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

/// The number of fresh trajectories (neither replayed nor taken from data) that a step must have for its
/// rewards to be checked.
const MIN_BATCH: usize = 8;

/// The reaction to a [`Warning`](crate::error::Warning). Every warning is also recorded in
/// [`Warnings::all`](crate::run::Warnings::all) and [`Record::warnings`](crate::run::Record::warnings).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum OnWarning {
    /// Prints the warning as one line on stderr, above the progress line if a progress line is shown.
    #[default]
    Print,
    /// Only records the warning.
    Keep,
    /// Ends the run with [`Error::Warned`](crate::Error::Warned) after the step that raises it.
    Fail,
}

/// An observer that warns if training goes wrong without an error. [`Fit`](super::Fit) adds this observer by
/// default. Pass your `Warnings` to [`Fit::warnings`](super::Fit::warnings) to access the warnings after the
/// run, or to use one observer, with all that it has recorded, for several runs.
///
/// After step 10 and after every 100 steps the observer computes the rewards of at most 8 replayed objects
/// again. [`Trainer::reward_calls`] doesn't count these objects. A checkpoint doesn't store warnings.
pub struct Warnings<S> {
    on_warning: OnWarning,
    warnings: Vec<Warning>,
    /// `true` if [`StepDiagnostics::explores`] was `true` at any step so far.
    has_explored: bool,
    best: Option<Best<S>>,
    floor: Option<f64>,
    /// The number of consecutive steps, up to the latest step, in each of which nearly all trajectories ended
    /// in one object.
    one_object_steps: usize,
    /// The number of consecutive steps, up to the latest step, in which nearly all rewards had the lowest
    /// value so far.
    floor_steps: usize,
    /// The number of consecutive steps, up to the latest step, with a loss near 0 and constant log Z; and log
    /// Z at the first of these steps.
    still: (usize, f64),
    /// The number of consecutive steps, up to the latest step, with log Z far below the best log-reward.
    far_steps: usize,
    recent: Recent,
}

/// The object with the highest log-reward so far.
struct Best<S> {
    object: S,
    log_reward: f64,
    /// The highest log-reward of any object other than `object`; `None` if no other object was sampled.
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
    /// Returns an observer of warnings with the reaction `on_warning`.
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

    /// Returns the warnings raised so far. Each variant of [`Warning`] occurs at most once, except warnings
    /// about resumed runs.
    #[must_use]
    pub fn all(&self) -> &[Warning] {
        &self.warnings
    }

    /// Raises [`Warning::FewEffective`] if the latest trajectories have a small effective sample size, that
    /// is, if their importance weights are very unequal. [`Fit::run`](super::Fit::run) calls this method at
    /// the end of a run. A warning of this variant from an earlier run is removed, because the policy may
    /// have learned since then.
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

    /// Adds a warning unless a warning of the same variant was raised before. Different warnings about
    /// resumed runs are all kept, because each resume may change other settings.
    fn raise(&mut self, warning: Warning) {
        let is_known = |known: &Warning| match known {
            Warning::Resumed { .. } => *known == warning,
            _ => std::mem::discriminant(known) == std::mem::discriminant(&warning),
        };
        if !self.warnings.iter().any(is_known) {
            self.warnings.push(warning);
        }
    }

    /// Reports the warnings that follow the first `n_before` warnings. Depending on the reaction the method
    /// prints them, returns the first of them as an error, or does nothing.
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
