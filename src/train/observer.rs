//! What looks at a run after each of its steps.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Serialize;
use serde_json::Value;

use super::{StepStats, Trainer, Warning};
use crate::Result;
use crate::env::Env;

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
    /// Whether a [`Validation`](super::Validation) was among them.
    #[serde(skip)]
    pub validated: bool,
    /// Whether the run ends here as planned.
    #[serde(skip)]
    pub last: bool,
}

/// Looks at a run after each step of [`Fit`](super::Fit), may add to the [`Record`], and may ask to stop.
///
/// A closure `FnMut(&Trainer<E, P>, &mut Record) -> Result<ControlFlow<()>>` is one.
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
    fn name(&self) -> &'static str;

    /// Called once, before the first step of [`Fit::run`](super::Fit::run): `state` is what [`save`](Self::save) gave for the
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

    /// Called before each checkpoint: what must survive in it, `null` for nothing.
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
    fn name(&self) -> &'static str {
        "closure"
    }

    fn after_step(&mut self, trainer: &Trainer<E, P>, record: &mut Record) -> Result<ControlFlow<()>> {
        self(trainer, record)
    }
}
