//! The training loop.

#[cfg(feature = "signals")]
mod interrupt;
mod own_loop;
mod progress;
pub(in crate::train) mod terminal;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

#[cfg(feature = "signals")]
use interrupt::Interrupt;
#[cfg(feature = "signals")]
pub use interrupt::interrupted;
pub use own_loop::BatchScores;
pub use progress::Progress;

use super::checkpoint::Observed;
use super::replicas::agree;
use super::{Checkpoint, Observer, Record, StepStats, Trainer};
use crate::env::Env;
use crate::train::TrainEnv;
use crate::{Error, Result};

/// A run that is over by then needs no line of progress.
const QUIET: Duration = Duration::from_secs(1);

/// The reason why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// All steps are done.
    Done,
    /// An observer stopped it.
    Stopped,
    /// SIGINT (Ctrl-C) or SIGTERM stopped it before its last step; only with the feature `signals`.
    Interrupted,
}

impl Ended {
    /// As one replica tells it to the others.
    fn of(number: f64) -> Self {
        let all = [Self::Done, Self::Stopped, Self::Interrupted];
        all.into_iter().find(|one| f64::from(*one as u8) == number).unwrap_or(Self::Stopped)
    }
}

/// Trains up to a number of steps: calls observers, saves checkpoints, ends on Ctrl-C.
///
/// A run that continues from a checkpoint ([`Trainer::resume`] before [`run`](Self::run)) makes the remaining steps,
/// bit for bit those of an uninterrupted run, and its observers continue, too. A checkpoint stores their states by
/// name, so several observers with a state need different names (`named`).
///
/// ```
/// use gfn::{nn::{GraphNet, GraphNetConfig}, objective::TrajectoryBalance, policy::GraphPolicy, testing::Triangles, Rng};
/// use gfn::{env::StateGraph, graph::GraphStates, metrics::Distances};
/// use gfn::train::{EarlyStop, Ended, Fit, Goal, MetricsFile, Metrics, Trainer, TrainerConfig, Validation};
/// # let folder = std::env::temp_dir().join(format!("gfn-fit-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).ok();
/// let reward = |graphs: &GraphStates, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     Ok(graphs.graphs().iter().map(|graph| graph.n_edges() as f64).collect())
/// };
/// let (env, mut rng) = (Triangles::env(), Rng::seeded(0));
/// let config = GraphNetConfig { embedding: 8, ..GraphNetConfig::default() };
/// let net = GraphNet::new(&env, config, tch::Device::Cpu, tch::Kind::Float, &mut rng)?;
/// let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng)?;
///
/// let space = StateGraph::build(trainer.env(), 100)?;
/// let target = space.target_distribution(&reward, None)?;
/// let mut validation = Validation::every(10, |trainer: &Trainer<_>| {
///     let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
///     Ok(Metrics::from([("tv".to_owned(), Distances::between(&learned.probs, &target.probs)?.tv)]))
/// })?;
/// let mut stop = EarlyStop::new("tv", Goal::Smaller, 20)?;
/// let mut lines = MetricsFile::new(folder.join("metrics.jsonl"));
/// let fit = Fit::new(40).observe(&mut validation).observe(&mut stop).observe(&mut lines);
/// let ended = fit.checkpoint(folder.join("checkpoint"), Some(20))?.stop_on_interrupt().run(&mut trainer)?;
/// assert_eq!(ended, Ended::Done);
/// assert_eq!(std::fs::read_to_string(folder.join("metrics.jsonl")).map_or(0, |text| text.lines().count()), 40);
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Fit<'a, E: Env> {
    steps: usize,
    observers: Vec<&'a mut dyn Observer<E>>,
    checkpoint: Option<PathBuf>,
    every: Option<usize>,
    interruptible: bool,
    progress: bool,
    /// The keys of a record that no metric may use.
    own_keys: Vec<String>,
}

impl<E: Env> std::fmt::Debug for Fit<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.observers.iter().map(|observer| observer.name()).collect();
        let mut out = f.debug_struct("Fit");
        out.field("steps", &self.steps).field("observers", &names).field("checkpoint", &self.checkpoint);
        out.field("every", &self.every).field("interruptible", &self.interruptible);
        out.field("progress", &self.progress).finish()
    }
}

impl<'a, E: TrainEnv> Fit<'a, E> {
    /// A run that ends when the trainer has made `steps` steps in all, including those before a resume.
    #[must_use]
    pub fn new(steps: usize) -> Self {
        let (observers, own_keys) = (Vec::new(), Vec::new());
        Self { steps, observers, checkpoint: None, every: None, interruptible: false, progress: true, own_keys }
    }

    /// Adds an observer, which is called after each step and after earlier observers.
    #[must_use]
    pub fn observe(mut self, observer: &'a mut dyn Observer<E>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Sets whether a run of more than a second shows a line of progress on stderr ([`Progress`]). It does unless told otherwise, where that
    /// is a terminal; observers that print there are better off without.
    #[must_use]
    pub fn progress(mut self, shown: bool) -> Self {
        self.progress = shown;
        self
    }

    /// Saves a checkpoint in this folder at the end of the run, unless it ends in an error, and every `every` steps.
    /// Before the first step it is checked that the folder can be written.
    ///
    /// # Errors
    /// [`Error::Config`] for an interval of 0 steps.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>, every: Option<usize>) -> Result<Self> {
        check_interval("steps between checkpoints", every)?;
        (self.checkpoint, self.every) = (Some(path.into()), every);
        Ok(self)
    }

    /// Ends the run after the step in which SIGINT (Ctrl-C) or SIGTERM arrives. A second signal ends the process at
    /// once; the checkpoint on disk is whole then, too. Without this setting, and after the run, the signals end the
    /// process at once, as usual.
    ///
    /// If the program set a handler of its own before its first such run, that handler is called at each signal, during
    /// runs, too, and it decides what a second signal does.
    ///
    /// Part of the feature `signals`, which is on by default.
    #[cfg(feature = "signals")]
    #[must_use]
    pub fn stop_on_interrupt(mut self) -> Self {
        self.interruptible = true;
        self
    }

    /// Makes the remaining steps.
    ///
    /// # Errors
    /// Those of [`Checkpoint::try_path`], [`Trainer::save`] before the first step, [`Trainer::step`], [`Trainer::save`] and the observers. The last checkpoint
    /// is untouched then. [`Error::Peer`] where another replica has ended or doesn't answer: the last checkpoint that all of them have saved is the
    /// one to go on from ([`Trainer::resume`]). [`Error::Config`], before the first step, for two observers of one name that both have a
    /// state; after a step, for a metric with the name of one of the step's own figures, and for an observer that saves
    /// to the folder of the run's own checkpoint.
    pub fn run(self, trainer: &mut Trainer<E>) -> Result<Ended> {
        let ended = self.run_by(trainer, &mut Trainer::step)?;
        if ended == Ended::Done {
            trainer.look_at_end()?;
        }
        Ok(ended)
    }

    /// The same, where something else than [`Trainer::step`] makes each step and counts it: a loop of one's own
    /// ([`Trainer::advance`]), whose steps observers see like any others.
    ///
    /// # Errors
    /// As for [`run`](Self::run), and those of `step`.
    pub fn run_by(
        self,
        trainer: &mut Trainer<E>,
        step: &mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>,
    ) -> Result<Ended> {
        (E::trainer_code().fit)(self, trainer, step)
    }

    pub(in crate::train) fn fit(
        mut self,
        trainer: &mut Trainer<E>,
        step: &mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>,
    ) -> Result<Ended> {
        trainer.check_equal_replicas()?;
        if trainer.replica() > 0 {
            // The first replica speaks for all of them. A signal that reaches all processes must end none before their common step.
            self.observers.clear();
        }
        if let Some(path) = &self.checkpoint {
            trainer.check_savable()?;
            Checkpoint::try_path(trainer.own_path(path))?;
        }
        #[cfg(feature = "signals")]
        let interrupt = self.interruptible.then(Interrupt::listen).transpose()?;
        #[cfg(feature = "signals")]
        let interrupted = || interrupt.as_ref().is_some_and(Interrupt::asked);
        #[cfg(not(feature = "signals"))]
        let interrupted = || false;
        self.own_keys = Record::own_keys()?;
        for observer in &mut self.observers {
            trainer.observed.start(*observer, trainer)?;
        }
        trainer.observed = Observed::of(&mut self.observers)?;
        let ended = self.train(trainer, step, &interrupted);
        if let (Err(_), Ok(states)) = (&ended, Observed::of(&mut self.observers)) {
            // What they have seen stays with the trainer, for a run that goes on with it.
            trainer.observed = states;
        }
        ended
    }

    fn train(
        &mut self,
        trainer: &mut Trainer<E>,
        step: &mut dyn FnMut(&mut Trainer<E>) -> Result<StepStats>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Ended> {
        let mut saved = None;
        let mut progress = (self.progress && trainer.replica() == 0).then(|| {
            let line = Progress::new(self.steps as u64, trainer.context().objective.name());
            line.resumed_at(trainer.steps_done() as u64).after(QUIET)
        });
        let mut ended = Ended::Done;
        while trainer.steps_done() < self.steps && ended == Ended::Done {
            let warned = trainer.warnings().len();
            let stats = step(trainer)?;
            let warnings = trainer.warnings().get(warned..).unwrap_or_default().to_vec();
            let step = trainer.steps_done();
            let last = step >= self.steps;
            if let Some(line) = &mut progress {
                line.update(step as u64, stats.loss, Some(stats.log_z).filter(|log_z| !log_z.is_nan()));
            }
            let mut record = Record::new(step, trainer.reward_calls(), stats, last);
            record.warnings = warnings;
            if self.call_observers(trainer, &mut record)? == ControlFlow::Break(()) {
                ended = Ended::Stopped;
            }
            if self.every.is_some_and(|every| step.is_multiple_of(every)) {
                self.save(trainer)?;
                saved = Some(step);
            }
            if ended == Ended::Done && !last && interrupted() {
                ended = Ended::Interrupted;
            }
            ended = Ended::of(agree(trainer.context(), f64::from(ended as u8))?);
        }
        if let Some(line) = progress {
            line.finish();
        }
        if saved != Some(trainer.steps_done()) {
            self.save(trainer)?;
        }
        // Nobody goes on, and ends the process perhaps, before all have written their files.
        agree(trainer.context(), 0.0)?;
        Ok(ended)
    }

    /// Calls all observers for a step, then writes the checkpoints that they asked for, with the observers' states
    /// after the step.
    fn call_observers(&mut self, trainer: &mut Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        let asked = Arc::new(Mutex::default());
        trainer.asked = Arc::downgrade(&asked);
        let flow = self.show_each(trainer, record)?;
        // From here on the trainer writes checkpoints at once again; also after an error or a panic, because `asked` is
        // dropped then.
        let asked: Vec<PathBuf> = std::mem::take(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner));
        trainer.asked = Weak::new();
        if asked.is_empty() {
            return Ok(flow);
        }
        trainer.observed = Observed::of(&mut self.observers)?;
        for path in asked {
            if self
                .checkpoint
                .as_ref()
                .is_some_and(|own| std::path::absolute(own).ok() == std::path::absolute(&path).ok())
            {
                return Err(Error::config(
                    "the folder that an observer saves to",
                    format!("`{}`, where the run's own checkpoint is", path.display()),
                    "a folder of its own: one would replace the other",
                ));
            }
            trainer.save(path)?;
        }
        Ok(flow)
    }

    fn show_each(&mut self, trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        let mut flow = ControlFlow::Continue(());
        for observer in &mut self.observers {
            if observer.after_step(trainer, record)? == ControlFlow::Break(()) {
                flow = ControlFlow::Break(());
            }
            record.check_metrics(&self.own_keys)?;
        }
        Ok(flow)
    }

    fn save(&mut self, trainer: &mut Trainer<E>) -> Result<()> {
        trainer.observed = Observed::of(&mut self.observers)?;
        let Some(path) = &self.checkpoint else { return Ok(()) };
        // The first replica last: where its checkpoint is, each of them has one to go on from.
        if trainer.replica() > 0 {
            trainer.save(path)?;
        }
        agree(trainer.context(), 0.0)?;
        if trainer.replica() == 0 { trainer.save(path) } else { Ok(()) }
    }
}

/// Refuses an interval of no steps.
pub(super) fn check_interval(setting: &'static str, every: Option<usize>) -> Result<()> {
    match every {
        Some(0) => Err(Error::config(setting, "0", "at least 1")),
        _ => Ok(()),
    }
}
