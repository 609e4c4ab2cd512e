//! Observers, which a run calls after each of its steps, and the record that is passed to them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
use tch::Tensor;

use crate::env::Env;
use crate::error::Warning;
use crate::train::{StepStats, Trainer};
use crate::{Error, Result};

/// Measured numbers by name: `tv` for the total variation, or `modes_found`, for example.
pub type Metrics = BTreeMap<String, f64>;

/// The results of one step. The record is passed from observer to observer, and each observer may add
/// metrics.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Record {
    /// The number of training steps made, including the step of this record.
    pub step: usize,
    /// The number of new objects whose reward this replica has computed so far ([`Trainer::reward_calls`]).
    pub reward_calls: u64,
    /// The results that the training step reports: loss, log Z and others.
    #[serde(flatten)]
    pub stats: StepStats,
    /// The warnings raised at this step. Metrics files don't contain warnings.
    #[serde(skip)]
    pub warnings: Vec<Warning>,
    /// The metrics that observers have measured after the step.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// `true` if at least one [`Validation`](crate::run::Validation) has measured metrics at this step.
    #[serde(skip)]
    pub validated: bool,
    /// `true` at the last of the planned steps of the run.
    #[serde(skip)]
    pub last: bool,
    /// `true` if the run has a validation that wasn't due at this step.
    #[serde(skip)]
    pub(super) partial: bool,
    /// The names of metrics that were measured only because the run ends at this step.
    #[serde(skip)]
    pub(super) at_end: Vec<String>,
    /// The folders for which observers requested checkpoints. [`Fit`](crate::run::Fit) writes these
    /// checkpoints after all observers were called.
    #[serde(skip)]
    pub(super) checkpoints: Vec<PathBuf>,
}

impl Record {
    /// Makes the record of a step, still without metrics and warnings.
    pub(super) fn new(step: usize, reward_calls: u64, stats: StepStats, last: bool) -> Self {
        Self { step, reward_calls, stats, last, ..Self::default() }
    }

    /// Requests a checkpoint in the folder `path`. The checkpoint is written after all observers were called
    /// for this step, so that it holds their states. If several replicas train, only the first replica writes
    /// this checkpoint: its parameters can be restored, but the run can't resume from it.
    pub fn save_checkpoint(&mut self, path: impl Into<PathBuf>) {
        self.checkpoints.push(path.into());
    }

    /// Returns the number with this name: one of the [`metrics`](Self::metrics), or a number that every step
    /// reports, such as `loss`, `log_z`, `mean_len` or `grad_norm`. Returns `None` if the record has no such
    /// number.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures().into_iter().find(|(tag, _)| *tag == name).map(|(_, value)| value)
    }

    /// Returns the number with this name, which an observer needs; `None` if the number wasn't measured at
    /// this step, because a validation that may return it isn't due.
    ///
    /// # Errors
    /// [`Error::Config`] if every validation has measured at this step and none has returned a metric of this
    /// name: the name must be wrong.
    pub(super) fn figure_if_measured(&self, name: &str) -> Result<Option<f64>> {
        let figure = self.figure(name);
        if figure.is_none() && self.validated && !self.partial {
            return Err(Error::config(
                "the metric that an observer waits for",
                format!("`{name}`, but only {:?} are measured", self.metrics.keys().collect::<Vec<_>>()),
                "a metric that an observer before it measures",
            ));
        }
        Ok(figure)
    }

    /// Returns all numbers of the record with their names: first the numbers that every step reports, then
    /// the metrics.
    pub(super) fn figures(&self) -> Vec<(&str, f64)> {
        self.own_figures()
            .into_iter()
            .chain(self.metrics.iter().map(|(name, &value)| (name.as_str(), value)))
            .collect()
    }

    /// Returns the numbers that every step reports, with their names. The seconds that a phase took have the
    /// name `seconds/PHASE`.
    fn own_figures(&self) -> [(&'static str, f64); 11] {
        let stats = &self.stats;
        let [sample, score, backward, update] = stats.seconds;
        [
            ("reward_calls", self.reward_calls as f64),
            ("loss", stats.loss),
            ("log_z", stats.log_z),
            ("mean_len", stats.mean_len),
            ("states", stats.states as f64),
            ("distinct", stats.distinct as f64),
            ("grad_norm", stats.grad_norm),
            ("seconds/sample", sample),
            ("seconds/score", score),
            ("seconds/backward", backward),
            ("seconds/update", update),
        ]
    }

    /// Returns an error for a metric that has the name of a number that every step reports, because each key
    /// may occur only once in a line of a metrics file.
    pub(super) fn check_metrics(&self) -> Result<()> {
        let own = self.own_figures().map(|(tag, _)| tag);
        match self
            .metrics
            .keys()
            .find(|name| own.contains(&name.as_str()) || ["step", "seconds"].contains(&name.as_str()))
        {
            None => Ok(()),
            Some(name) => Err(Error::config(
                "the name of a metric",
                format!("`{name}`"),
                "a name that no value of the step itself has (`step`, `reward_calls`, the fields of \
                 `StepStats`)",
            )),
        }
    }
}

/// A callback that [`Fit`](crate::run::Fit) calls after each step. The callback may add metrics to the
/// [`Record`] and may stop the run.
///
/// Closures `FnMut(&Trainer<E>, &mut Record) -> Result<ControlFlow<()>>` implement this trait. A run may have
/// any number of observers. Observers with a state in checkpoints need different names.
///
/// [`Record::save_checkpoint`] requests a checkpoint. [`KeepBest`](crate::run::KeepBest) does so whenever a
/// step is the best so far.
///
/// ```
/// use gfn::run::{Fit, FitOutcome, Record};
/// use gfn::train::{Trainer, TrainerConfig};
/// use gfn::{
///     Rng,
///     examples::{Chain, Positions},
///     objective::LogPartitionVariance,
///     policy::UniformPolicy,
/// };
/// use std::ops::ControlFlow;
/// let reward =
///     |s: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![0.0; s.0.len()]) };
/// let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
/// let mut trainer =
///     Trainer::new(Chain::new(4), reward, UniformPolicy, LogPartitionVariance, config, Rng::seeded(0))?;
/// let mut losses = Vec::new();
/// let mut keep = |_: &Trainer<_>, record: &mut Record| {
///     losses.push(record.stats.loss);
///     Ok(if record.step == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
/// };
/// assert_eq!(Fit::new(10).observe(&mut keep).run_with_outcome(&mut trainer)?, FitOutcome::Stopped);
/// assert_eq!(losses.len(), 3);
///
/// // Stores all objects that training samples, as lines of JSON.
/// let mut lines = Vec::new();
/// let mut store = |trainer: &Trainer<Chain>, record: &mut Record| {
///     let Some(latest) = trainer.latest() else { return Ok(ControlFlow::Continue(())) };
///     let log_rewards = latest.recorded_log_rewards().unwrap_or_default();
///     for (object, log_reward) in latest.terminal_states().0.iter().zip(log_rewards).take(trainer.n_fresh())
///     {
///         let line = serde_json::json!({ "step": record.step, "object": object, "log_reward": log_reward });
///         lines.push(line.to_string());
///     }
///     Ok(ControlFlow::Continue(()))
/// };
/// Fit::new(5).observe(&mut store).run(&mut trainer)?;
/// assert_eq!(lines.len(), 2 * 4);
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait Observer<E: Env> {
    /// Returns the name of the observer's state in checkpoints.
    fn name(&self) -> &str;

    /// Prepares for a run: called once, before the first step of [`Fit::run`](crate::run::Fit::run). `_state`
    /// is the value that [`save`](Self::save) returned for the checkpoint from which the run resumes, or in
    /// an earlier run of the same trainer; `None` if no such value exists.
    ///
    /// # Errors
    /// Any error, which ends the run before its first step.
    fn start(&mut self, _trainer: &Trainer<E>, _state: Option<&Value>) -> Result<()> {
        Ok(())
    }

    /// Observes a step: called after each step, in the order in which observers were added. If one observer
    /// stops the run, the remaining observers are still called for this step.
    ///
    /// # Errors
    /// Any error, which ends the run.
    fn after_step(&mut self, trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>>;

    /// Returns the observer's state for a checkpoint; `null`, the default, if it has no state. Called when a
    /// run has started and before each checkpoint. The checkpoint's manifest stores this state, so it should
    /// be small (settings and counts). Return growing lists by [`save_tensors`](Self::save_tensors).
    ///
    /// # Errors
    /// Any error that prevents saving.
    fn save(&mut self) -> Result<Value> {
        Ok(Value::Null)
    }

    /// Returns the part of the state that is too large for JSON: named tensors of dtype f32, f64, i64 or u8,
    /// of any size. Called after [`save`](Self::save). The default is no tensors.
    ///
    /// # Errors
    /// Any error that prevents saving.
    fn save_tensors(&mut self) -> Result<Vec<(String, Tensor)>> {
        Ok(Vec::new())
    }

    /// Restores the tensors that [`save_tensors`](Self::save_tensors) returned for the checkpoint from which
    /// the run resumes, or in an earlier run of the same trainer. The order of the tensors may differ. Called
    /// before [`start`](Self::start), and only if there are such tensors.
    ///
    /// # Errors
    /// Any error about tensors that the observer can't restore.
    fn load_tensors(&mut self, _tensors: &[(String, Tensor)]) -> Result<()> {
        Ok(())
    }
}

impl<E, F> Observer<E> for F
where
    E: Env,
    F: FnMut(&Trainer<E>, &mut Record) -> Result<ControlFlow<()>>,
{
    fn name(&self) -> &str {
        "closure"
    }

    fn after_step(&mut self, trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        self(trainer, record)
    }
}
