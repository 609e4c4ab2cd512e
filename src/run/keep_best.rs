//! An observer that saves the checkpoint of the best step.

use std::ops::ControlFlow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Goal;
use crate::run::{Observer, Record};
use crate::train::TrainEnv;
use crate::train::Trainer;
use crate::train::{LAYOUT, to_json};
use crate::{Error, Result};

/// An observer that saves a checkpoint whenever a metric is better than at all earlier steps. Add this
/// observer after the observer that measures the metric.
///
/// The metric is one of the record's metrics or a number that every step reports ([`Record::figure`]). To use
/// another number, add a closure before this observer that puts the number into the record's metrics. The
/// checkpoint is written after all observers were called, and replaces the previous best checkpoint as a
/// whole. [`Trainer::resume`] can continue from the checkpoint, unless several replicas train, because only
/// the first replica writes it. NaN is never the best value. The best value is saved in checkpoints. If the
/// folder of the best checkpoint is missing, a resumed run starts without a best value.
///
/// ```
/// use gfn::env::{Rows, VectorStates};
/// use gfn::run::{Fit, Goal, KeepBest};
/// use gfn::train::{Checkpoint, Trainer, TrainerConfig};
/// use gfn::{
///     Rng,
///     examples::word_env,
///     objective::TrajectoryBalance,
///     policy::{ByNumber, MlpPolicy, MlpPolicyConfig},
/// };
/// let (env, rng) = (word_env(2, 2), Rng::seeded(0));
/// let (cpu, float) = (tch::Device::Cpu, tch::Kind::Float);
/// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), MlpPolicyConfig::default(), cpu, float)?;
/// let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![1.0; states.len()]);
/// let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), rng)?;
/// let folder = std::env::temp_dir().join(format!("gfn-best-{}", std::process::id()));
/// let mut best = KeepBest::new("loss", Goal::Smaller, &folder);
/// Fit::new(20).observe(&mut best).run(&mut trainer)?;
/// let kept = best.best().map(|(_, step)| step as u64);
/// assert_eq!(Some(Checkpoint::load(&folder)?.manifest().step), kept);
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct KeepBest {
    name: String,
    metric: String,
    goal: Goal,
    path: PathBuf,
    best: Option<Best>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Best {
    value: f64,
    step: usize,
}

impl KeepBest {
    /// Returns an observer that saves the checkpoint with the best `metric` in the folder `path`. Nothing
    /// else may use this folder.
    #[must_use]
    pub fn new(metric: &str, goal: Goal, path: impl Into<PathBuf>) -> Self {
        Self { name: "keep_best".to_owned(), metric: metric.to_owned(), goal, path: path.into(), best: None }
    }

    /// Sets the name of the observer's state in checkpoints, instead of `keep_best`. Several keep-best
    /// observers in a run need different names.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Returns the best value so far and the step of its measurement, at which the checkpoint was saved;
    /// `None` before the first finite measurement.
    #[must_use]
    pub fn best(&self) -> Option<(f64, usize)> {
        self.best.map(|best| (best.value, best.step))
    }
}

impl<E: TrainEnv> Observer<E> for KeepBest {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self, _trainer: &Trainer<E>, state: Option<&Value>) -> Result<()> {
        LAYOUT.check_target(&self.path)?;
        if let Some(state) = state {
            self.best = Option::deserialize(state).map_err(|error| {
                Error::contract(
                    "a checkpoint must be able to store the best value of a metric and its step",
                    error,
                )
            })?;
        }
        if !LAYOUT.resolve(&self.path).exists() {
            self.best = None;
        }
        Ok(())
    }

    fn after_step(&mut self, _trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        if let Some(value) = record.figure_if_measured(&self.metric)?
            && self.goal.improves(value, self.best.map(|best| best.value), 0.0)
        {
            record.save_checkpoint(&self.path);
            self.best = Some(Best { value, step: record.step });
        }
        Ok(ControlFlow::Continue(()))
    }

    fn save(&mut self) -> Result<Value> {
        to_json(&self.best)
    }
}
