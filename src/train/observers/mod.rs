//! What looks at a run after each of its steps.

mod count_modes;
mod early_stop;
mod keep_best;
mod metrics_file;
mod sentinel;
mod validation;
mod warning;

pub use count_modes::CountModes;
pub use early_stop::{EarlyStop, Goal};
pub use keep_best::KeepBest;
pub use metrics_file::MetricsFile;
pub(in crate::train) use sentinel::{Sentinel, Sight};
pub use validation::Validation;
pub use warning::OnWarning;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Serialize;
use serde_json::Value;

use crate::env::Env;
use crate::error::Warning;
use crate::train::checkpoint::to_json;
use crate::train::{StepStats, Trainer};
use crate::{Error, Result};

/// Figures by name, such as `tv` or `modes_found`.
pub type Metrics = BTreeMap<String, f64>;

/// What is known of one step: it goes from observer to observer, each of which may add figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Record {
    /// The number of steps made, this one included.
    pub step: usize,
    /// New objects that a reward was computed for so far ([`Trainer::reward_calls`]).
    pub reward_calls: u64,
    /// What the step did.
    #[serde(flatten)]
    pub stats: StepStats,
    /// The signs of trouble that it raised; a file of figures doesn't hold them.
    #[serde(skip)]
    pub warnings: Vec<Warning>,
    /// What observers have measured after it.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Whether a [`Validation`](crate::train::Validation) was among them.
    #[serde(skip)]
    pub validated: bool,
    /// Whether the run ends here as planned.
    #[serde(skip)]
    pub last: bool,
    /// Whether it wasn't some validation's turn.
    #[serde(skip)]
    pub(in crate::train) partial: bool,
    /// Metrics that are measured because the run ends here, not because it was their turn.
    #[serde(skip)]
    pub(in crate::train) at_end: Vec<String>,
}

impl Record {
    /// The record of a step before anyone has looked at it.
    pub(in crate::train) fn new(step: usize, reward_calls: u64, stats: StepStats, last: bool) -> Self {
        let (warnings, metrics, at_end) = (Vec::new(), Metrics::new(), Vec::new());
        Self { step, reward_calls, stats, warnings, metrics, validated: false, last, partial: false, at_end }
    }

    /// A figure by name: one of the [`metrics`](Self::metrics), or the step's own `loss`, `log_z`, `mean_len` or `grad_norm`.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "loss" => Some(self.stats.loss),
            "log_z" => Some(self.stats.log_z),
            "mean_len" => Some(self.stats.mean_len),
            "grad_norm" => Some(self.stats.grad_norm),
            _ => self.metrics.get(name).copied(),
        }
    }

    /// The figure that an observer waits for, `None` while it isn't measured; refuses one that no validation has measured where
    /// all of them have.
    pub(in crate::train) fn awaited(&self, name: &str) -> Result<Option<f64>> {
        let figure = self.figure(name);
        if figure.is_none() && self.validated && !self.partial {
            return Err(Error::Config {
                setting: "the metric that an observer waits for",
                got: format!("`{name}`, where {:?} are measured", self.metrics.keys().collect::<Vec<_>>()),
                expected: "a metric that an observer before it measures",
            });
        }
        Ok(figure)
    }

    /// What stands in a line of metrics beside metrics.
    pub(in crate::train) fn own_keys() -> Result<Vec<String>> {
        let bare = to_json(&Self::new(0, 0, StepStats::default(), false))?;
        Ok(bare.as_object().into_iter().flat_map(|object| object.keys().cloned()).collect())
    }

    /// Refuses metrics that are named like what is there already: a line of metrics has each key once.
    pub(in crate::train) fn check_metrics(&self, own_keys: &[String]) -> Result<()> {
        match self.metrics.keys().find(|name| own_keys.contains(name)) {
            None => Ok(()),
            Some(name) => Err(Error::Config {
                setting: "the name of a metric",
                got: format!("`{name}`"),
                expected: "a name that no figure of the step itself has (`step`, `reward_calls`, the fields of `StepStats`)",
            }),
        }
    }
}

/// Looks at a run after each step of [`Fit`](crate::train::Fit), may add to the [`Record`], and may ask to stop.
///
/// A closure `FnMut(&Trainer<E, P>, &mut Record) -> Result<ControlFlow<()>>` is one. A run may have any number of each kind; of
/// those that keep something in checkpoints, each needs a name of its own.
///
/// What an observer saves by [`Trainer::save`] while it looks at a step is written once all observers have seen that step, so that
/// it holds what they keep; [`KeepBest`](crate::train::KeepBest) does so with the best step so far.
///
/// ```
/// use std::ops::ControlFlow;
/// use gfn::{objective::LogPartitionVariance, policy::UniformPolicy, testing::{Chain, Positions}, Rng};
/// use gfn::train::{Ended, Fit, Record, Trainer, TrainerConfig};
/// let reward = |s: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![0.0; s.0.len()]) };
/// let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
/// let mut trainer =
///     Trainer::new(Chain::new(4), reward, UniformPolicy, LogPartitionVariance, config, Rng::seeded(0))?;
/// let mut losses = Vec::new();
/// let mut keep = |_: &Trainer<_, _>, record: &mut Record| {
///     losses.push(record.stats.loss);
///     Ok(if record.step == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
/// };
/// assert_eq!(Fit::new(10).observe(&mut keep).run(&mut trainer)?, Ended::Stopped);
/// assert_eq!(losses.len(), 3);
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait Observer<E: Env, P> {
    /// By which its state is found again in a checkpoint.
    fn name(&self) -> &str;

    /// Called once, before the first step of [`Fit::run`](crate::train::Fit::run): `state` is what [`save`](Self::save) gave for the
    /// checkpoint that the run goes on from, if it goes on from one that has it.
    ///
    /// # Errors
    /// Whatever keeps the run from being observed.
    fn start(&mut self, _trainer: &Trainer<E, P>, _state: Option<&Value>) -> Result<()> {
        Ok(())
    }

    /// Called after each step, in the order in which the observers were given. All are called, also if one asks to stop.
    ///
    /// # Errors
    /// Whatever must end the run.
    fn after_step(&mut self, trainer: &Trainer<E, P>, record: &mut Record) -> Result<ControlFlow<()>>;

    /// Called when a run has started and before each checkpoint: what must survive in it, `null` for nothing.
    ///
    /// # Errors
    /// Whatever keeps it from being saved.
    fn save(&mut self) -> Result<Value> {
        Ok(Value::Null)
    }
}

impl<E, P, F> Observer<E, P> for F
where
    E: Env,
    F: FnMut(&Trainer<E, P>, &mut Record) -> Result<ControlFlow<()>>,
{
    fn name(&self) -> &str {
        "closure"
    }

    fn after_step(&mut self, trainer: &Trainer<E, P>, record: &mut Record) -> Result<ControlFlow<()>> {
        self(trainer, record)
    }
}
