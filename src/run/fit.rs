//! The training loop, which calls observers and saves checkpoints.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;

#[cfg(feature = "signals")]
use super::interrupt::Interrupt;
use super::progress::say;
use super::seeds::{RunProgress, take_turns};
use super::{Observer, OnWarning, Record, Warnings};
use crate::env::Env;
use crate::train::{StepStats, TrainEnv, Trainer, check_interval};
use crate::{Error, Result};

/// The reason why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FitOutcome {
    /// The trainer has made all steps of the run.
    Done,
    /// An observer stopped the run.
    Stopped,
    /// A signal, SIGINT (Ctrl-C) or SIGTERM, stopped the run before its last step. This outcome needs the
    /// feature `signals`.
    Interrupted,
}

impl FitOutcome {
    /// Converts a number back to the outcome. The first replica sends its outcome to the other replicas as a
    /// number.
    fn from_number(number: f64) -> Self {
        let all = [Self::Done, Self::Stopped, Self::Interrupted];
        all.into_iter().find(|one| f64::from(*one as u8) == number).unwrap_or(Self::Stopped)
    }
}

/// A run that trains up to a given number of steps. The run calls observers, saves checkpoints, and can end
/// on Ctrl-C.
///
/// If the trainer was resumed from a checkpoint ([`Trainer::resume`] before [`run`](Self::run)), the run
/// makes the remaining steps, and their results equal those of an uninterrupted run bit for bit. Observers
/// get their states back, too. A checkpoint stores these states by the observers' names, so several observers
/// with a state need different names (`with_name`).
///
/// ```
/// use gfn::prelude::*;
/// use gfn::examples::Triangles;
/// use gfn::run::{EarlyStop, FitOutcome, Goal, Metrics, MetricsFile, Validation};
/// # let folder = std::env::temp_dir().join(format!("gfn-fit-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).ok();
/// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
/// let mut trainer = Experiment::new(Triangles::env(), reward)
///     .network(GraphNetConfig { embedding: 8, ..GraphNetConfig::default() })
///     .steps(40)
///     .trainer()?;
///
/// let space = StateGraph::build(trainer.env(), 100)?;
/// let target = space.target_distribution(&reward, None)?;
/// let mut validation = Validation::every(10, |trainer: &Trainer<_>| {
///     let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
///     Ok(Metrics::from([("tv".to_owned(), Distances::between(&learned.probs, &target.probs)?.tv)]))
/// })?;
/// let mut stop = EarlyStop::new("tv", Goal::Smaller, 20)?;
/// let mut lines = MetricsFile::new(folder.join("metrics.jsonl"));
/// let fit = Fit::for_planned_steps().observe(&mut validation).observe(&mut stop).observe(&mut lines);
/// let fit = fit.checkpoint(folder.join("checkpoint"), Some(20))?.stop_on_interrupt();
/// let ended = fit.run_with_outcome(&mut trainer)?;
/// assert_eq!(ended, FitOutcome::Done);
/// assert_eq!(
///     std::fs::read_to_string(folder.join("metrics.jsonl")).map_or(0, |text| text.lines().count()),
///     40
/// );
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Fit<'a, E: Env> {
    /// The number of steps at which the run ends; `None` for the number that the trainer was planned for.
    steps: Option<usize>,
    observers: Vec<&'a mut dyn Observer<E>>,
    checkpoint: Option<PathBuf>,
    every: Option<usize>,
    is_interruptible: bool,
    shows_progress: bool,
    /// The observer that the caller gave for warnings; `None` if the caller gave none.
    warnings: Option<&'a mut Warnings<E::States>>,
    /// The observer of warnings that this run uses if the caller gave none.
    own_warnings: Warnings<E::States>,
}

impl<E: Env> std::fmt::Debug for Fit<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.observers.iter().map(|observer| observer.name()).collect();
        let mut out = f.debug_struct("Fit");
        out.field("steps", &self.steps).field("observers", &names).field("checkpoint", &self.checkpoint);
        out.finish_non_exhaustive()
    }
}

impl<'a, E: TrainEnv> Fit<'a, E> {
    /// Returns a run that ends when the trainer has made `steps` steps in total, including steps before a
    /// resume. By default the run has a new observer of warnings ([`Warnings`]), which is dropped at its end.
    /// [`warnings`](Self::warnings) sets an observer that can be kept over several runs.
    ///
    /// The number doesn't change the schedules of the trainer's settings. A trainer of
    /// [`Experiment::trainer`](crate::experiment::Experiment::trainer) has learning rates that fall to 0 over
    /// the steps of the experiment: train it by [`for_planned_steps`](Self::for_planned_steps).
    #[must_use]
    pub fn new(steps: usize) -> Self {
        Self { steps: Some(steps), ..Self::for_planned_steps() }
    }

    /// Returns a run of as many steps as the trainer was planned for, by
    /// [`Experiment::steps`](crate::experiment::Experiment::steps). In all other respects it is
    /// [`new`](Self::new).
    #[must_use]
    pub fn for_planned_steps() -> Self {
        Self {
            steps: None,
            observers: Vec::new(),
            checkpoint: None,
            every: None,
            is_interruptible: false,
            shows_progress: true,
            warnings: None,
            own_warnings: Warnings::default(),
        }
    }

    /// Adds an observer. Observers are called after each step, in the order in which they were added.
    #[must_use]
    pub fn observe(mut self, observer: &'a mut dyn Observer<E>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Sets the observer of warnings, to access its warnings after the run, or to use one observer, with all
    /// that it has recorded, for several runs. By default each run has a new observer of warnings, which
    /// prints them on stderr. The observer of warnings is called before all other observers.
    #[must_use]
    pub fn warnings(mut self, warnings: &'a mut Warnings<E::States>) -> Self {
        self.warnings = Some(warnings);
        self
    }

    /// Sets the reaction to a warning of this run: printing, failing or none. The default is
    /// [`OnWarning::Print`].
    #[must_use]
    pub fn on_warning(mut self, on_warning: OnWarning) -> Self {
        self.run_warnings().set_reaction(on_warning);
        self
    }

    /// Sets whether a run of more than a second shows a progress line on stderr
    /// ([`Progress`](super::Progress)), if stderr is a terminal. The default is `true`. Pass `false` if
    /// observers print on the terminal themselves.
    #[must_use]
    pub fn progress(mut self, shown: bool) -> Self {
        self.shows_progress = shown;
        self
    }

    /// Saves a checkpoint in the folder `path` every `every` steps and at the end of the run; for `None` only
    /// at the end. A run that ends in an error saves no checkpoint at its end. The run checks before its
    /// first step that it can write the folder.
    ///
    /// # Errors
    /// [`Error::Config`] for an interval of 0 steps.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>, every: Option<usize>) -> Result<Self> {
        check_interval("steps between checkpoints", every)?;
        (self.checkpoint, self.every) = (Some(path.into()), every);
        Ok(self)
    }

    /// Ends the run after the step during which SIGINT (Ctrl-C) or SIGTERM arrives. A second signal ends the
    /// process at once; the last saved checkpoint is complete in this case, too. Without this setting, and
    /// after the run, a signal ends the process at once, as usual.
    ///
    /// If the program installed a signal handler before its first run with this setting, that handler is
    /// called at each signal, also during runs. The program's handler then decides the effect of a second
    /// signal.
    ///
    /// Requires the feature `signals`, which is on by default.
    #[cfg(feature = "signals")]
    #[must_use]
    pub fn stop_on_interrupt(mut self) -> Self {
        self.is_interruptible = true;
        self
    }

    /// Trains until the trainer has made all steps, or the run is stopped.
    ///
    /// # Errors
    /// The errors of [`Trainer::check_savable`] before the first step; the errors of [`Trainer::step`],
    /// [`Trainer::save`] and the observers. No error changes the last checkpoint. [`Error::Warned`] for a
    /// warning with [`OnWarning::Fail`]. [`Error::Peer`] if another replica has ended or doesn't answer;
    /// resume from the last checkpoint ([`Trainer::resume`]). [`Error::Config`] for two observers of the same
    /// name that both have a state, for a metric with the name of a number that every step reports, and for
    /// an observer that saves to the folder of this run's checkpoint; [`Error::Missing`] for
    /// [`for_planned_steps`](Self::for_planned_steps) if the trainer has no planned number of steps.
    pub fn run(self, trainer: &mut Trainer<E>) -> Result<()> {
        self.run_with_outcome(trainer).map(drop)
    }

    /// Trains as [`run`](Self::run) does, and returns the reason why the run ended. Use this method if an
    /// observer or a signal can stop the run.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn run_with_outcome(mut self, trainer: &mut Trainer<E>) -> Result<FitOutcome> {
        let ended = self.fit(trainer, &mut Trainer::step)?;
        if ended == FitOutcome::Done && trainer.context().group.rank() == 0 {
            self.run_warnings().check_end(trainer.steps_done())?;
        }
        Ok(ended)
    }

    /// Trains by calling `step` instead of [`Trainer::step`]. `step` is a custom training step, which ends in
    /// [`Trainer::advance`]. Observers are called as usual.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run) and of `step`.
    pub fn run_by(
        mut self,
        trainer: &mut Trainer<E>,
        step: &mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>,
    ) -> Result<FitOutcome> {
        self.fit(trainer, step)
    }

    fn fit(
        &mut self,
        trainer: &mut Trainer<E>,
        step: &mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>,
    ) -> Result<FitOutcome> {
        let planned = || {
            let remedy = "set the number of steps (`Fit::new`), or build the trainer by an `Experiment`";
            Error::missing("a run of the planned steps", "a trainer with a planned number of steps", remedy)
        };
        let steps = self.steps.or(trainer.planned_steps).ok_or_else(planned)?;
        trainer.check_equal_replicas()?;
        if trainer.context().group.rank() > 0 {
            // Only the first replica calls observers. All replicas listen for signals, so that no replica is
            // killed in the middle of a step. The first replica decides whether the run ends on all replicas.
            self.observers.clear();
        }
        if let Some(path) = &self.checkpoint {
            trainer.check_savable(path)?;
        }
        #[cfg(feature = "signals")]
        let interrupt = self.is_interruptible.then(Interrupt::listen).transpose()?;
        #[cfg(feature = "signals")]
        let is_interrupted = || interrupt.as_ref().is_some_and(Interrupt::has_arrived);
        #[cfg(not(feature = "signals"))]
        let is_interrupted = || false;
        if trainer.context().group.rank() == 0 {
            self.run_warnings().start(trainer, None)?;
        }
        for observer in &mut self.observers {
            let attached = trainer.attachment(observer.name());
            if let Some((_, tensors)) = attached.filter(|(_, tensors)| !tensors.is_empty()) {
                observer.load_tensors(tensors)?;
            }
            let state = attached.map(|(state, _)| state).filter(|state| !state.is_null());
            observer.start(trainer, state)?;
        }
        self.attach_states(trainer)?;
        let ended = self.train(trainer, steps, step, &is_interrupted);
        if ended.is_err() {
            // The observers' states are attached to the trainer, for a later run with this trainer. If
            // attaching them fails, too, only the error of the run is reported.
            drop(self.attach_states(trainer));
        }
        ended
    }

    fn run_warnings(&mut self) -> &mut Warnings<E::States> {
        self.warnings.as_deref_mut().unwrap_or(&mut self.own_warnings)
    }

    /// Attaches the states of all observers to the trainer, which stores them in its next checkpoint.
    fn attach_states(&mut self, trainer: &mut Trainer<E>) -> Result<()> {
        let mut names = BTreeSet::new();
        for observer in &mut self.observers {
            let state = observer.save()?;
            let tensors = observer.save_tensors()?;
            let name = observer.name().to_owned();
            let has_state = !state.is_null() || !tensors.is_empty();
            if has_state || !names.contains(&name) {
                // If the observer had a state before and has none now, this call removes the old state.
                trainer.attach(&name, state, tensors)?;
            }
            if has_state && !names.insert(name.clone()) {
                return Err(Error::config(
                    "the observers of a run",
                    format!("two observers with a state and the same name `{name}`"),
                    "a different name for each observer (`with_name`), because a checkpoint stores states by \
                     name",
                ));
            }
        }
        Ok(())
    }

    fn train(
        &mut self,
        trainer: &mut Trainer<E>,
        steps: usize,
        step: &mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<FitOutcome> {
        let mut saved = None;
        let mut progress = (self.shows_progress && trainer.context().group.rank() == 0)
            .then(|| RunProgress::new(steps, trainer.steps_done(), trainer.context().objective.name()));
        let mut ended = FitOutcome::Done;
        let mut is_place_shown =
            trainer.context().group.rank() > 0 || trainer.context().rollout_times.is_some();
        while trainer.steps_done() < steps && ended == FitOutcome::Done {
            let stats = step(trainer)?;
            let step = trainer.steps_done();
            let last = step >= steps;
            if let Some(line) = &mut progress {
                line.update(step, stats.loss, Some(stats.log_z).filter(|log_z| !log_z.is_nan()));
            }
            if let (false, Some(times)) = (is_place_shown, trainer.context().rollout_times) {
                say(&times.to_string());
                is_place_shown = true;
            }
            let mut record = Record::new(step, trainer.reward_calls(), stats, last);
            if self.call_observers(trainer, &mut record)? == ControlFlow::Break(()) {
                ended = FitOutcome::Stopped;
            }
            if self.every.is_some_and(|every| step.is_multiple_of(every)) {
                self.save(trainer)?;
                saved = Some(step);
            }
            if ended == FitOutcome::Done && !last && is_interrupted() {
                ended = FitOutcome::Interrupted;
            }
            ended = FitOutcome::from_number(trainer.context().broadcast_from_first(f64::from(ended as u8))?);
            take_turns();
        }
        if let Some(line) = progress {
            line.finish();
        }
        if saved != Some(trainer.steps_done()) {
            self.save(trainer)?;
        }
        // Each replica waits here until all have written their files, so that no replica ends its process
        // earlier.
        trainer.context().broadcast_from_first(0.0)?;
        Ok(ended)
    }

    /// Calls all observers after a step, then writes the checkpoints that they requested, with the observers'
    /// states after this step.
    fn call_observers(&mut self, trainer: &mut Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        let mut flow = ControlFlow::Continue(());
        if trainer.context().group.rank() > 0 {
            return Ok(flow);
        }
        let _ = self.run_warnings().after_step(trainer, record)?;
        for observer in &mut self.observers {
            if observer.after_step(trainer, record)?.is_break() {
                flow = ControlFlow::Break(());
            }
            record.check_metrics()?;
        }
        let requested = std::mem::take(&mut record.checkpoints);
        if requested.is_empty() {
            return Ok(flow);
        }
        self.attach_states(trainer)?;
        let absolute = |path: &PathBuf| std::path::absolute(path).ok();
        for path in requested {
            if self.checkpoint.as_ref().is_some_and(|own| absolute(own) == absolute(&path)) {
                return Err(Error::config(
                    "the folder that an observer saves to",
                    format!("`{}`, which is the folder of the run's own checkpoint", path.display()),
                    "a separate folder, because one checkpoint would replace the other",
                ));
            }
            trainer.checkpoint()?.save(path)?;
        }
        Ok(flow)
    }

    fn save(&mut self, trainer: &mut Trainer<E>) -> Result<()> {
        self.attach_states(trainer)?;
        match &self.checkpoint {
            Some(path) => trainer.save(path),
            None => Ok(()),
        }
    }
}
