//! The training loop of the tasks: progress, curves, and what the JSON line says of speed.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Instant;

use clap::ValueEnum;
use gfn::Result;
use gfn::env::EnumerableEnv;
use gfn::optim::Schedule;
use gfn::policy::Policy;
use gfn::rollout::ReplayEnv;
use gfn::train::{
    AverageFor, EarlyStop, Ended, Fit, Goal, Metrics, MetricsCsv, MetricsFile, Observer, Record, StepStats,
    TensorBoard, Trainer, Validation,
};
use gfn_plot::{Curve, Figure, Panel, Scale};
use serde_json::json;

use super::members::{self, Ready};
use super::{Common, Defaults, words};
use crate::runs::{Asked, INTERRUPTED, Made, steps_before};

/// How the learning rates fall.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LrSchedule {
    /// In a straight line
    Linear,
    /// Along half a wave of the cosine
    Cosine,
    /// By the same factor at every step, to an --lr-end above 0
    Exponential,
}

impl LrSchedule {
    pub(super) fn to(self, to: f64, steps: usize) -> Schedule {
        match self {
            Self::Linear => Schedule::Linear { from: 1.0, to, steps },
            Self::Cosine => Schedule::Cosine { from: 1.0, to, steps },
            Self::Exponential => Schedule::Exponential { from: 1.0, to, steps },
        }
    }
}

/// What training left, besides the trainer itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trained {
    pub(super) example: &'static str,
    pub(super) steps: usize,
    pub(super) batch: usize,
    pub(super) params: i64,
    /// How many trained as one.
    pub(super) members: usize,
    /// Seconds of training, prefill included and evaluation not. It and the figures below are of all steps, also of those that the run in
    /// the folder had made before it went on.
    pub(crate) train_s: f64,
    /// Steps per second once warm: the median of windows over the last three quarters. NaN where no step was made, as are the figures
    /// of steps below.
    pub(crate) its_per_s: f64,
    /// Mean number of actions per trajectory over the same steps.
    pub(crate) mean_len: f64,
    /// Loss of the last tenth, on average.
    pub(crate) loss: f64,
    /// log Z of the last step.
    pub(crate) log_z: f64,
    /// Seconds per step by phase: sample, score, backward, update.
    pub(crate) phases: [f64; 4],
    /// Distinct of all visited states.
    pub(crate) distinct_share: f64,
    /// New objects that a reward was computed for.
    pub(crate) reward_calls: u64,
    loss_curve: Vec<(f64, f64)>,
    log_z_curve: Vec<(f64, f64)>,
    /// What was measured on the way, by name.
    metric_curves: Vec<(String, Vec<(f64, f64)>)>,
    /// Distinct modes seen, against reward calls; empty where nobody counts.
    modes_curve: Vec<(f64, f64)>,
}

/// Trains as the flags say, with the task's own observers; `look` gives the JSD of the policy, and isn't counted as training: all members
/// of the run call it, and get the trainer to measure with. `None` for a member that has nothing left to do.
pub(crate) fn train<E: ReplayEnv, P: Policy<E>>(
    trainer: Trainer<E, P>,
    common: &Common,
    task: (&'static str, &Defaults),
    look: impl FnMut(&Trainer<E, P>) -> Result<Option<f64>>,
    observers: Vec<&mut dyn Observer<E, P>>,
) -> Result<Option<(Trainer<E, P>, Trained)>> {
    train_ready(members::join(trainer)?, common, task, look, observers)
}

/// The same where others may draw for it (`--dist async`).
pub(crate) fn train_with_actors<E: ReplayEnv + EnumerableEnv + 'static, P: Policy<E> + Send + 'static>(
    trainer: Trainer<E, P>,
    common: &Common,
    task: (&'static str, &Defaults),
    look: impl FnMut(&Trainer<E, P>) -> Result<Option<f64>>,
    observers: Vec<&mut dyn Observer<E, P>>,
) -> Result<Option<(Trainer<E, P>, Trained)>> {
    match members::join_or_draw(trainer)? {
        Some(ready) => train_ready(ready, common, task, look, observers),
        None => Ok(None),
    }
}

fn train_ready<E: ReplayEnv, P: Policy<E>>(
    Ready { mut trainer, mut monitor }: Ready<E, P>,
    common: &Common,
    (example, defaults): (&'static str, &Defaults),
    mut look: impl FnMut(&Trainer<E, P>) -> Result<Option<f64>>,
    observers: Vec<&mut dyn Observer<E, P>>,
) -> Result<Option<(Trainer<E, P>, Trained)>> {
    let steps = common.steps(defaults);
    let prefill = trainer.replay().map_or(0, |_| common.prefill.unwrap_or(defaults.prefill));
    let started = Instant::now();
    let members = members::count();
    if let Some(decay) = common.ema {
        let purpose = if common.ema_sampling { AverageFor::Sampling } else { AverageFor::Evaluation };
        trainer = trainer.with_average(decay, purpose)?;
    }
    if let Some(path) = &common.resume() {
        trainer.resume(path)?;
        if trainer.steps_done() >= steps {
            let (path, done) = (path.display(), trainer.steps_done());
            eprintln!("{path} has made {done} steps, and --steps is {steps}: nothing is trained, only evaluated");
        }
    } else if prefill > 0 {
        trainer.prefill(prefill)?;
    }
    let filled = started.elapsed().as_secs_f64();

    let measure = |trainer: &Trainer<E, P>| {
        Ok(trainer.averaged(|_| look(trainer))?.map(|jsd| ("jsd".to_owned(), jsd)).into_iter().collect::<Metrics>())
    };
    let mut validation = common.looks(steps).map(|every| Validation::every(every, measure)).transpose()?;
    let save = common.save();
    let (batch, params) = (trainer.context().config.batch, trainer.n_parameters());
    let mut out = Trained { example, steps, batch, params, members, train_s: filled, ..Trained::default() };
    if trainer.replica() > 0 {
        // What is written and shown is the first one's.
        let mut fit = Fit::new(steps);
        // Those that the first alone has see nothing here.
        for observer in observers {
            fit = fit.observe(observer);
        }
        if let Some(path) = save {
            fit = fit.checkpoint(path, common.checkpoint_every)?.stop_on_interrupt();
        }
        let ended = fit.run(&mut trainer)?;
        if common.ema.is_some() {
            trainer.take_average()?;
        }
        return Ok((ended != Ended::Interrupted).then_some((trainer, out)));
    }
    let run = common.run_folder();
    if let (Some(run), Some(asked)) = (&run, Asked::of_process()) {
        let context = trainer.context();
        run.describe(
            asked,
            &[
                ("training", json!(context.config)),
                ("objective", json!(context.objective.name())),
                ("steps", json!(steps)),
                ("parameters", json!(trainer.n_parameters())),
            ],
        )?;
    }
    let mut stop = common.patience.map(|patience| EarlyStop::new("jsd", Goal::Smaller, patience)).transpose()?;
    let mut lines = common.metrics.clone().or_else(|| Some(run.as_ref()?.metrics())).map(MetricsFile::new);
    let mut table = run.as_ref().map(|run| MetricsCsv::new(run.table()));
    let mut events = common.tensorboard.as_ref().map(TensorBoard::new);
    // A run that stopped before its end goes on: what it has made is in its folder.
    let (mut worked, mut steps_ms) = (members::worked_ms(), Vec::new());
    let mut history = run.as_ref().map_or(Ok(Vec::new()), |run| steps_before(run, trainer.steps_done()))?;
    let mut keep = |_: &Trainer<E, P>, record: &mut Record| {
        history.push(Made::from(&*record));
        if common.as_one_of.is_some() {
            let before = std::mem::replace(&mut worked, members::worked_ms());
            steps_ms.push((worked - before, record.stats.distinct));
        }
        Ok(ControlFlow::Continue(()))
    };

    let mut fit = Fit::new(steps);
    if let Some(validation) = &mut validation {
        fit = fit.observe(validation);
    }
    for observer in observers {
        fit = fit.observe(observer);
    }
    if let Some(stop) = &mut stop {
        fit = fit.observe(stop);
    }
    fit = fit.observe(&mut keep);
    if let Some(monitor) = &mut monitor {
        fit = fit.observe(monitor.as_mut());
    }
    if let Some(lines) = &mut lines {
        fit = fit.observe(lines);
    }
    if let Some(table) = &mut table {
        fit = fit.observe(table);
    }
    if let Some(events) = &mut events {
        fit = fit.observe(events);
    }
    if let Some(path) = &save {
        fit = fit.checkpoint(path, common.checkpoint_every)?.stop_on_interrupt();
    }
    let ended = fit.run(&mut trainer)?;
    let of_run = run.as_ref().map(|run| [run.settings(), run.metrics(), run.table()]);
    of_run.into_iter().flatten().for_each(|path| common.written.add(&path));
    [&save, &common.metrics, &common.tensorboard].into_iter().flatten().for_each(|path| common.written.add(path));
    match (ended, &save) {
        (Ended::Interrupted, Some(path)) => {
            let (step, path) = (trainer.steps_done(), path.display());
            match run {
                Some(_) => eprintln!("interrupted: saved at step {step}; the same command goes on"),
                None => eprintln!("interrupted: saved at step {step}; go on with --save {path} --resume {path}"),
            }
            // A learner says good-bye to its actors.
            drop(trainer);
            std::process::exit(INTERRUPTED);
        }
        (Ended::Stopped, _) => eprintln!("stopped early, at step {}", trainer.steps_done()),
        _ => {}
    }
    if common.ema.is_some() {
        // The checkpoint, saved by now, has both; what is reported is the average.
        trainer.take_average()?;
    }
    if let Some(replicas) = common.as_one_of {
        // Nothing is measured: the policy is what it was, and nobody is there to share the work.
        let (ms, states): (Vec<f64>, Vec<usize>) = steps_ms.split_off(steps_ms.len() / 4).into_iter().unzip();
        // Those of all, who do what this one does.
        let states: Vec<usize> = states.into_iter().map(|states| states / replicas).collect();
        println!(
            "{}",
            json!({ "example": example, "replicas": replicas, "batch": batch, "steps_ms": ms, "states": states })
        );
        return Ok(None);
    }
    out.summarise(&history);
    Ok(Some((trainer, out)))
}

impl Trained {
    /// Distinct modes that training has seen, where they were counted.
    pub(crate) fn modes_seen(&self) -> Option<u64> {
        self.modes_curve.last().map(|point| point.1 as u64)
    }

    fn summarise(&mut self, history: &[Made]) {
        let seconds = |made: &Made| made.stats.seconds.iter().sum::<f64>();
        self.train_s += history.iter().map(seconds).sum::<f64>();
        let warm = &history[history.len() / 4..];
        let Some(last) = history.last() else {
            (self.its_per_s, self.mean_len, self.distinct_share) = (f64::NAN, f64::NAN, f64::NAN);
            (self.loss, self.log_z, self.phases) = (f64::NAN, f64::NAN, [f64::NAN; 4]);
            return;
        };
        let mut windows: Vec<f64> = warm
            .chunks(warm.len().div_ceil(9).max(1))
            .map(|window| window.len() as f64 / window.iter().map(seconds).sum::<f64>())
            .collect();
        windows.sort_by(f64::total_cmp);
        self.its_per_s = windows[windows.len() / 2];
        let mean =
            |of: &dyn Fn(&StepStats) -> f64| warm.iter().map(|made| of(&made.stats)).sum::<f64>() / warm.len() as f64;
        self.mean_len = mean(&|stats| stats.mean_len);
        self.distinct_share = mean(&|stats| stats.distinct as f64 / stats.states as f64);
        self.phases = std::array::from_fn(|k| mean(&|stats| stats.seconds[k]));
        self.log_z = last.stats.log_z;
        let tail = &history[history.len() - history.len().div_ceil(10)..];
        self.loss = tail.iter().map(|made| made.stats.loss).sum::<f64>() / tail.len() as f64;
        // Each of several members counts its own.
        self.reward_calls = last.reward_calls * self.members as u64;
        let curve = |of: &dyn Fn(&Made) -> Option<f64>| {
            history.iter().filter_map(|made| Some((made.step as f64, of(made)?))).collect()
        };
        let modes = |made: &Made| Some((made.reward_calls as f64, *made.metrics.get("modes_found")?));
        self.modes_curve = history.iter().filter_map(modes).collect();
        self.loss_curve = curve(&|made| Some(made.stats.loss));
        self.log_z_curve = curve(&|made| Some(made.stats.log_z));
        let names: BTreeSet<&String> = history.iter().flat_map(|made| made.metrics.keys()).collect();
        let measured = names.into_iter().filter(|name| *name != "modes_found");
        self.metric_curves =
            measured.map(|name| (name.clone(), curve(&|made| made.metrics.get(name).copied()))).collect();
    }

    /// Draws loss, log Z and what was measured over training, and the task's own panels.
    pub(super) fn draw(&self, common: &Common, title: &str, log_z_true: Option<f64>, extra: Vec<Panel>) -> Result<()> {
        let mut log_z = Panel::new("log Z").labels("step", "").curve(Curve::new("estimate", self.log_z_curve.clone()));
        if let Some(value) = log_z_true {
            log_z = log_z.reference(value, "true");
        }
        let curve = |title: &str, points: &[(f64, f64)]| {
            Panel::new(title).labels("step", "").y_scale(Scale::Log).curve(Curve::new(title, points.to_vec()))
        };
        let mut figure = Figure::new(title).panel(curve("loss", &self.loss_curve)).panel(log_z);
        for (name, points) in &self.metric_curves {
            figure = figure.panel(curve(&words(name), points));
        }
        if !self.modes_curve.is_empty() {
            let modes = Curve::new("seen", self.modes_curve.clone());
            figure = figure.panel(Panel::new("modes").labels("reward calls", "").curve(modes));
        }
        let figure = extra.into_iter().fold(figure, Figure::panel);
        common.draw("training", |path| figure.write(path))
    }
}
