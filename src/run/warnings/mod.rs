//! Warnings: signs that training goes wrong without an error. They draw no random number and evaluate no network.

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

/// The smallest number of fresh trajectories whose shares are checked.
const MIN_BATCH: usize = 8;

/// The reaction to a [`Warning`](crate::error::Warning). Every warning is also recorded:
/// [`Warnings::all`](crate::run::Warnings::all), [`Record::warnings`](crate::run::Record::warnings).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum OnWarning {
    /// Prints one line on stderr, too, above a progress line if there is one.
    #[default]
    Print,
    /// Only records it.
    Keep,
    /// Ends the run with [`Error::Warned`](crate::Error::Warned) after the step that raises it.
    Fail,
}

/// An observer that warns if training goes wrong without an error. [`Fit`](super::Fit) has one by default; pass one to
/// [`Fit::warnings`](super::Fit::warnings) to look at the warnings afterwards, or to keep its memory over several runs.
///
/// After step 10 and every 100 steps it asks the reward about at most 8 replayed objects again, which
/// [`Trainer::reward_calls`] doesn't count. A checkpoint doesn't store warnings.
pub struct Warnings<S> {
    on_warning: OnWarning,
    warnings: Vec<Warning>,
    /// `true` if a step ever learned from anything but samples of the current policy.
    has_explored: bool,
    best: Option<Best<S>>,
    floor: Option<f64>,
    /// The number of latest consecutive steps in which nearly all trajectories ended in one object.
    one_object_steps: usize,
    /// The number of latest consecutive steps in which nearly all rewards were at the floor.
    floor_steps: usize,
    /// The number of latest consecutive steps with a loss near 0, and log Z at the first of them.
    still: (usize, f64),
    /// The number of latest consecutive steps with a log Z far below a log-reward.
    far_steps: usize,
    recent: Recent,
}

/// The best object so far.
struct Best<S> {
    object: S,
    log_reward: f64,
    /// The greatest log-reward of any other object.
    second_log_reward: Option<f64>,
}

impl<S> std::fmt::Debug for Warnings<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Warnings").field("warnings", &self.warnings).finish_non_exhaustive()
    }
}

impl<S> Default for Warnings<S> {
    /// Prints warnings on stderr.
    fn default() -> Self {
        Self::new(OnWarning::default())
    }
}

impl<S> Warnings<S> {
    /// Sets what happens at a warning.
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

    /// The warnings so far, each kind once.
    #[must_use]
    pub fn all(&self) -> &[Warning] {
        &self.warnings
    }

    /// Raises [`Warning::FewEffective`] if the latest trajectories are worth few samples of the target.
    /// [`Fit::run`](super::Fit::run) calls it at the end. A warning of this kind from an earlier end is replaced: the
    /// policy may have learned since.
    ///
    /// # Errors
    /// [`Error::Warned`] with [`OnWarning::Fail`].
    pub fn check_end(&mut self, step: usize) -> Result<()> {
        self.warnings.retain(|warning| !matches!(warning, Warning::FewEffective { .. }));
        let n_before = self.warnings.len();
        if let Some(warning) = self.recent.few_effective(step) {
            self.raise(warning);
        }
        self.report(n_before)
    }

    /// Adds a warning unless there is a warning of its kind. There may be several about resumed runs, because each
    /// resume may change other settings.
    fn raise(&mut self, warning: Warning) {
        let is_known = |known: &Warning| match known {
            Warning::Resumed { .. } => *known == warning,
            _ => std::mem::discriminant(known) == std::mem::discriminant(&warning),
        };
        if !self.warnings.iter().any(is_known) {
            self.warnings.push(warning);
        }
    }

    /// Prints the warnings after the first `n_before`, or returns the first of them as an error.
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
