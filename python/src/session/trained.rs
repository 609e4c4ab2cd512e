//! A trainer for one type of environment, with the operations that Python needs.

use std::any::Any;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use gfn::env::{Rows, log_rewards};
use gfn::optim::Schedule;
use gfn::run::{Fit, Observer, OnWarning, Record, TensorBoard, Warnings};
use gfn::train::{Checkpoint, StepStats, Trainer};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Thompson, thompson_step};
use serde_json::Value;
use tch::{Kind, Tensor};

use super::sampled::in_batches;
use super::shared_state::{SharedState, named_parameters};
use crate::border::DeferredObject;
use crate::conditions::check_conditions;
use crate::kinds::{PyEnv, Space};
use crate::policy::{BuiltPolicy, PolicyModule};
use crate::states::Array;
use crate::tensors::PyTensor;
use crate::watch::Watch;
use crate::wording::in_python;

/// The largest number of objects that are drawn in one batch.
const MAX_OBJECTS: usize = 4096;
/// The largest number of uniform random trajectories that are drawn in one batch. This number is the batch
/// size that the library's `prefill` uses.
const MAX_WALKS: usize = 8192;

/// The name under which the records of a Python trainer are attached to its checkpoints.
const HISTORY: &str = "history";
/// The number of figures in a [`StepRecord`].
const N_FIGURES: i64 = 7;

/// The record of one training step: its number, the loss, log Z, the mean length of trajectories, the norm of
/// the gradient, the seconds that the step took, and the number of objects whose reward the trainer has
/// computed so far.
pub(super) type StepRecord = (usize, f64, f64, f64, f64, f64, u64);

/// Records of steps, and the error of the step that failed, if a step failed.
pub(super) type Steps = (Vec<StepRecord>, Option<Error>);

/// A trainer, with additional state for the Python package.
pub(crate) struct Trained<E: PyEnv> {
    pub(super) trainer: Trainer<E>,
    pub(super) space: Space<E>,
    rng: Rng,
    shared_state: SharedState,
    modules: Vec<Arc<PolicyModule>>,
    /// The number of training steps made so far. Other threads may read this number in the middle of a step.
    pub(super) n_steps: Arc<AtomicUsize>,
    warnings: Warnings<E::States>,
    /// The event file for TensorBoard to which each step is written, if there is one.
    events: Option<TensorBoard>,
}

impl<E: PyEnv> Trained<E> {
    pub(super) fn new(
        trainer: Trainer<E>,
        space: Space<E>,
        shared_state: SharedState,
        modules: Vec<Arc<PolicyModule>>,
    ) -> Self {
        let rng = trainer.evaluation_rng();
        let warnings = Warnings::new(OnWarning::Keep);
        let n_steps = Arc::default();
        Self { trainer, space, rng, shared_state, modules, n_steps, warnings, events: None }
    }

    /// Returns the policy as a [`BuiltPolicy`], for use in another trainer.
    pub(super) fn into_policy(self) -> Box<dyn Any + Send> {
        Box::new(BuiltPolicy { policy: self.trainer.into_policy(), modules: self.modules })
    }

    /// Makes `n` training steps, or fewer if a step fails.
    pub(super) fn advance(&mut self, n: usize) -> Steps {
        match self.trainer.source::<Thompson>() {
            None => self.make_steps(n, &mut Trainer::step),
            Some(_) => self.make_steps(n, &mut thompson_step),
        }
    }

    /// Makes `n` training steps by calling `make` for each step, or fewer if a step fails.
    pub(super) fn make_steps(
        &mut self,
        n: usize,
        make: &mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>,
    ) -> Steps {
        let mut records = Vec::with_capacity(n.min(1 << 16));
        let watch = Watch::new();
        let shared = &self.shared_state;
        match shared.check().and_then(|()| shared.changed_mode()) {
            Ok(false) => {}
            Ok(true) => self.trainer.policy_changed(),
            Err(error) => return (records, Some(error)),
        }
        let n_steps = &self.n_steps;
        let events = &mut self.events;
        let mut observe = |trainer: &Trainer<E>, record: &mut Record| {
            n_steps.store(record.step, Relaxed);
            let StepStats { loss, log_z, mean_len, grad_norm, seconds, .. } = record.stats;
            let seconds = seconds.iter().sum();
            records.push((record.step, loss, log_z, mean_len, grad_norm, seconds, record.reward_calls));
            if let Some(events) = events.as_mut() {
                let _continues = Observer::<E>::after_step(events, trainer, record)?;
            }
            watch.look()?;
            shared.check_tensors()?;
            Ok(ControlFlow::Continue(()))
        };
        let fit = Fit::new(self.trainer.steps_done().saturating_add(n)).progress(false);
        let ended = fit.warnings(&mut self.warnings).observe(&mut observe).run_by(&mut self.trainer, make);
        self.n_steps.store(self.trainer.steps_done(), Relaxed);
        (records, ended.err())
    }

    /// Calls `evaluate` with the trainer. During the call, noisy layers of the policy have no noise.
    pub(super) fn without_noise<T>(
        &mut self,
        evaluate: impl FnOnce(&Trainer<E>, &Space<E>, &mut Rng) -> T,
    ) -> T {
        let Self { trainer, space, rng, .. } = self;
        match trainer.policy().parameters() {
            Some(parameters) => parameters.without_noise(|| evaluate(trainer, space, rng)),
            None => evaluate(trainer, space, rng),
        }
    }

    /// Draws `n` objects, under the conditions `[n, C]` if the trainer has conditions. If `rewarded`, also
    /// returns log R of each object.
    pub(super) fn sample(
        &mut self,
        n: usize,
        conditions: Option<&Tensor>,
        rewarded: bool,
    ) -> Result<(DeferredObject, Option<Array<f64>>)> {
        check_conditions(self.trainer.context(), conditions)?;
        self.without_noise(|trainer, space, rng| {
            let watch = Watch::new();
            let policy = watch.over(trainer.policy());
            let sampler = trainer.context().sampler(&space.env, &policy);
            let mut states = space.env.initial(&[]);
            let mut values = rewarded.then(Vec::new);
            in_batches(n, MAX_OBJECTS, &watch, |range| {
                let conditions = conditions.map(|all| all.narrow(0, range.start as i64, range.len() as i64));
                let objects = match &conditions {
                    None => sampler.walks(range.len(), rng)?.terminal,
                    Some(conditions) => {
                        sampler.forward_conditional(conditions, rng)?.terminal_states().clone()
                    }
                };
                if let Some(values) = &mut values {
                    values.extend(log_rewards(trainer.reward(), &objects, conditions.as_ref())?);
                }
                states.append(objects);
                Ok(())
            })?;
            Ok((space.border.defer(states), values.map(Array)))
        })
    }

    /// Fills the replay buffer with uniform random trajectories. Returns the number of objects that the
    /// buffer accepted.
    pub(super) fn prefill(&mut self, n: usize) -> Result<usize> {
        let watch = Watch::new();
        let mut stayed = self.trainer.prefill(0)?;
        // The batches have the size that the library's `prefill` uses, so that the same seed draws the same
        // trajectories.
        in_batches(n, MAX_WALKS, &watch, |range| {
            stayed += self.trainer.prefill(range.len())?;
            Ok(())
        })?;
        Ok(stayed)
    }

    /// Returns `true` if training mixes the policy with uniformly random actions.
    pub(super) fn explores(&self) -> bool {
        self.trainer.context().config.epsilon != Some(Schedule::Constant(0.0))
    }

    pub(super) fn parameters(&self) -> Vec<(String, PyTensor)> {
        named_parameters(self.trainer.policy().parameters())
            .map(|(name, tensor)| (name, PyTensor(tensor)))
            .collect()
    }

    /// Returns an error if Python code has replaced tensors of the trainer's networks, or has changed a
    /// tensor's shape, dtype or device.
    pub(super) fn check_shared(&self) -> Result<()> {
        self.shared_state.check()
    }

    /// Writes a checkpoint, in which `history` is stored as an attachment.
    pub(super) fn save(&mut self, path: &Path, history: Tensor) -> Result<()> {
        self.trainer.attach(HISTORY, Value::Null, vec![(HISTORY.to_owned(), history)])?;
        self.trainer.save(path)
    }

    /// Resumes training from a checkpoint, and returns the history that is stored in it. The trainer is
    /// unchanged if the history isn't a table of whole numbers with a row for each figure of a record.
    pub(super) fn resume(&mut self, path: &Path) -> Result<Option<PyTensor>> {
        let history = Checkpoint::load(path)?.attached(HISTORY).pop().map(|(_, history)| history);
        if let Some(history) = &history {
            let is_table = matches!(history.size().as_slice(), [N_FIGURES, _]);
            if !is_table || history.kind() != Kind::Int64 {
                let problem = format!(
                    "the records of steps have the shape {:?} and the dtype {:?}: expected [{N_FIGURES}, \
                     steps] and Int64",
                    history.size(),
                    history.kind()
                );
                return Err(Error::file(path, problem, "use a checkpoint that `Trainer.save` wrote"));
            }
        }
        self.trainer.resume(path)?;
        // The random stream for evaluations is derived from the resumed trainer. The old stream was derived
        // when the trainer was built, so it would repeat the draws of the first evaluations of the run.
        self.rng = self.trainer.evaluation_rng();
        self.n_steps.store(self.trainer.steps_done(), Relaxed);
        Ok(history.map(PyTensor))
    }

    /// Starts a new event file in `folder`, to which all further steps are written. `None` ends the file.
    pub(super) fn write_events(&mut self, folder: Option<PathBuf>) -> Result<()> {
        let mut events = folder.map(TensorBoard::new);
        if let Some(events) = events.as_mut() {
            Observer::<E>::start(events, &self.trainer, None)?;
        }
        self.events = events;
        Ok(())
    }

    pub(super) fn restore(&self, path: &Path) -> Result<()> {
        match self.trainer.policy().parameters() {
            Some(parameters) => Checkpoint::load(path)?.restore(parameters),
            None => Err(Error::missing(
                "`Trainer.restore`",
                "a policy with parameters",
                "use a policy with parameters, such as Mlp() or GraphNet()",
            )),
        }
    }

    pub(super) fn check_end(&mut self) -> Result<()> {
        self.warnings.check_end(self.trainer.steps_done())
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.all().iter().map(|warning| in_python(&warning.to_string())).collect()
    }
}
