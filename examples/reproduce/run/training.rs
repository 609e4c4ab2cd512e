//! The training loop of the tasks: progress, curves, and what the JSON line says of speed.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Instant;

use gfn::Result;
use gfn::run::{EarlyStop, Ended, Fit, Goal, Metrics, MetricsFile, Observer, Record, TensorBoard, Validation};
use gfn::train::TrainEnv;
use gfn::train::{AverageFor, Trainer};
use gfn_extras::explore::{Thompson, thompson_step};
use serde_json::{Value, json};

use super::Run;
use super::files::written;
use super::lines::tell;
use super::made::{Made, Steps, steps_before};
use super::members;
use super::report::words;
use super::task_flags::TaskFlags;
use crate::plot::{Curve, Figure, Panel, Scale};

/// What shells report for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// What training left, besides the trainer itself: all of its steps, also those that the run in the folder had made before it went on.
/// Figures of steps are NaN where none was made.
pub(crate) struct Trained {
    batch: usize,
    params: i64,
    /// The number of members that trained as one.
    members: usize,
    /// Seconds that the buffer was filled for.
    filled_s: f64,
    made: Steps,
}

impl Run<'_> {
    /// Trains as the flags say, with the task's own observers; `look` gives the JSD of the policy, and isn't counted as training. `None` for
    /// a member that doesn't measure.
    pub(crate) fn train<E: TrainEnv>(
        &self,
        trainer: Trainer<E>,
        mut look: impl FnMut(&Trainer<E>) -> Result<Option<f64>>,
        observers: Vec<&mut dyn Observer<E>>,
    ) -> Result<Option<(Trainer<E>, Trained)>> {
        let mut trainer = members::join(trainer)?;
        let (common, steps) = (self.common, self.steps());
        let prefill = trainer.replay().map_or(0, |_| common.prefill.unwrap_or(self.recipe.prefill));
        let started = Instant::now();
        if let Some(decay) = common.ema {
            let purpose = if common.ema_sampling { AverageFor::Sampling } else { AverageFor::Evaluation };
            trainer = trainer.with_average(decay, purpose)?;
        }
        if let Some(path) = &common.resume() {
            trainer.resume(path)?;
            if trainer.steps_done() >= steps {
                let (path, done) = (path.display(), trainer.steps_done());
                tell(format_args!(
                    "{path} has made {done} steps, and --steps is {steps}: nothing is trained, only evaluated"
                ));
            }
        } else if prefill > 0 {
            trainer.prefill(prefill)?;
        }
        let filled_s = started.elapsed().as_secs_f64();

        let run = common.run_folder().filter(|_| members::is_first());
        let mut made = Steps::default();
        if let (Some(run), Some(asked)) = (&run, TaskFlags::of_process()) {
            let context = trainer.context();
            let more = [
                ("training", json!(context.config)),
                ("objective", json!(context.objective.name())),
                ("steps", json!(steps)),
                ("parameters", json!(trainer.n_parameters())),
            ];
            run.describe(asked, &more)?;
            // A run that stopped before its end goes on: what it has made is in its folder.
            made = steps_before(&run.metrics(), trainer.steps_done())?;
        }
        let measure = |trainer: &Trainer<E>| {
            let jsd = trainer.averaged(|_| look(trainer))?;
            Ok(jsd.map(|jsd| ("jsd".to_owned(), jsd)).into_iter().collect::<Metrics>())
        };
        let mut validation = common.looks(steps).map(|every| Validation::every(every, measure)).transpose()?;
        let mut stop = common.patience.map(|patience| EarlyStop::new("jsd", Goal::Smaller, patience)).transpose()?;
        let mut lines = common.metrics.clone().or_else(|| Some(run.as_ref()?.metrics())).map(MetricsFile::new);
        let mut events = common.tensorboard.as_ref().map(TensorBoard::new);
        let mut keep = |_: &Trainer<E>, record: &mut Record| {
            made.push(Made::from(&*record));
            Ok(ControlFlow::Continue(()))
        };
        let mut all: Vec<&mut dyn Observer<E>> = Vec::new();
        all.extend(validation.as_mut().map(|validation| validation as &mut dyn Observer<E>));
        for observer in observers {
            all.push(observer);
        }
        all.extend(stop.as_mut().map(|stop| stop as &mut dyn Observer<E>));
        all.push(&mut keep);
        all.extend(lines.as_mut().map(|lines| lines as &mut dyn Observer<E>));
        all.extend(events.as_mut().map(|events| events as &mut dyn Observer<E>));
        let mut fit = all.into_iter().fold(Fit::new(steps), Fit::observe);
        let save = common.save();
        if let Some(path) = &save {
            fit = fit.checkpoint(path, common.checkpoint_every)?.stop_on_interrupt();
        }
        let ended = match trainer.source::<Thompson>() {
            None => fit.run(&mut trainer)?,
            Some(_) => fit.run_by(&mut trainer, &mut thompson_step)?,
        };
        if common.ema.is_some() && ended != Ended::Interrupted {
            // The checkpoint, saved by now, has both; what is reported is the average.
            trainer.take_average()?;
        }
        if !members::is_first() {
            return Ok(None);
        }
        let of_run = run.as_ref().map(|run| [run.settings(), run.metrics()]);
        of_run.iter().flatten().for_each(|path| written(path));
        [&save, &common.metrics, &common.tensorboard].into_iter().flatten().for_each(|path| written(path));
        match (ended, &save) {
            (Ended::Interrupted, Some(path)) => {
                let (step, path) = (trainer.steps_done(), path.display());
                match run {
                    Some(_) => tell(format_args!("interrupted: saved at step {step}; the same command goes on")),
                    None => tell(format_args!(
                        "interrupted: saved at step {step}; go on with --save {path} --resume {path}"
                    )),
                }
                std::process::exit(INTERRUPTED);
            }
            (Ended::Stopped, _) => tell(format_args!("stopped early, at step {}", trainer.steps_done())),
            _ => {}
        }
        let (batch, params) = (trainer.context().config.batch, trainer.n_parameters());
        Ok(Some((trainer, Trained { batch, params, members: members::count(), filled_s, made })))
    }

    /// Draws loss, log Z and what was measured over training, and the task's own panels.
    pub(super) fn draw_training(&self, trained: &Trained, log_z_true: Option<f64>, own: Vec<Panel>) -> Result<()> {
        let made = &trained.made.kept;
        let points = |of: &dyn Fn(&Made) -> Option<f64>| -> Vec<(f64, f64)> {
            made.iter().filter_map(|made| Some((made.step as f64, of(made)?))).collect()
        };
        let curve = |title: &str, of: &dyn Fn(&Made) -> Option<f64>| {
            Panel::new(title).labels("step", "").y_scale(Scale::Log).curve(Curve::new(title, points(of)))
        };
        let log_z = Panel::new("log Z").labels("step", "").curve(Curve::new("estimate", points(&|made| made.log_z)));
        let log_z = log_z_true.map_or(log_z.clone(), |value| log_z.reference(value, "true"));
        let mut figure = Figure::new(&self.title).panel(curve("loss", &|made| made.loss)).panel(log_z);
        let names: BTreeSet<&String> = made.iter().flat_map(|made| made.metrics.keys()).collect();
        for name in names {
            figure = figure.panel(match name.as_str() {
                MODES => {
                    let seen = made.iter().filter_map(|made| Some((made.reward_calls as f64, made.metric(MODES)?)));
                    Panel::new("modes").labels("reward calls", "").curve(Curve::new("seen", seen))
                }
                name => curve(&words(name), &|made| made.metric(name)),
            });
        }
        let figure = own.into_iter().fold(figure, Figure::panel);
        self.common.draw("training", |path| figure.write(path))
    }
}

/// The metric of distinct modes seen, which is drawn against reward calls.
const MODES: &str = "modes_found";

impl Made {
    fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.get(name).copied().flatten()
    }

    /// Seconds of all phases.
    fn time(&self) -> f64 {
        self.seconds.iter().sum()
    }
}

impl Trained {
    /// Of a search that trains nothing.
    pub(crate) fn without_steps(batch: usize, seconds: f64) -> Self {
        Self { batch, params: 0, members: 1, filled_s: seconds, made: Steps::default() }
    }

    /// The last three quarters of the steps, when all is warm.
    fn warm(&self) -> &[Made] {
        &self.made.kept[self.made.kept.len() / 4..]
    }

    /// The mean over the steps once warm.
    fn mean(&self, of: impl Fn(&Made) -> f64) -> f64 {
        self.warm().iter().map(of).sum::<f64>() / self.warm().len() as f64
    }

    /// Steps per second once warm: the median of windows.
    pub(crate) fn its_per_s(&self) -> f64 {
        let steps = |window: &[Made]| window.iter().map(|made| made.n).sum::<usize>() as f64;
        let rate = |window: &[Made]| steps(window) / window.iter().map(Made::time).sum::<f64>();
        let mut windows: Vec<f64> = self.warm().chunks(self.warm().len().div_ceil(9).max(1)).map(rate).collect();
        windows.sort_by(f64::total_cmp);
        windows.get(windows.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// log Z of the last step.
    pub(crate) fn log_z(&self) -> f64 {
        self.made.kept.last().and_then(|made| made.log_z).unwrap_or(f64::NAN)
    }

    /// The figures of training, in the order in which people are told them.
    pub(super) fn figures(&self, run: &Run<'_>) -> Vec<(&'static str, Value)> {
        let common = run.common;
        let mean_len = self.mean(|made| made.mean_len.unwrap_or(f64::NAN));
        // Loss of the last tenth, on average.
        let made = &self.made.kept;
        let tail = &made[made.len() - made.len().div_ceil(10)..];
        let loss = tail.iter().map(|made| made.loss.unwrap_or(f64::NAN)).sum::<f64>() / tail.len() as f64;
        let modes_seen = self.made.kept.iter().filter_map(|made| made.metric(MODES)).next_back();
        let phase = |k: usize| 1e3 * self.mean(|made| made.seconds[k] / made.n as f64);
        vec![
            ("example", json!(run.example)),
            ("seed", json!(common.seed)),
            ("steps", json!(run.steps())),
            ("batch", json!(self.batch)),
            ("threads", json!(common.team.threads)),
            ("members", json!(self.members)),
            ("device", json!(common.device.to_string())),
            ("params", json!(self.params)),
            ("train_s", json!(self.filled_s + self.made.kept.iter().map(Made::time).sum::<f64>())),
            ("its_per_s", json!(self.its_per_s())),
            ("mean_len", json!(mean_len)),
            ("states_per_s", json!(self.its_per_s() * self.batch as f64 * mean_len)),
            ("distinct_share", json!(self.mean(|made| made.distinct as f64 / made.states as f64))),
            ("phases_ms", json!([phase(0), phase(1), phase(2), phase(3)])),
            // Each member counts its own, and has as many.
            ("reward_calls", json!(self.made.kept.last().map_or(0, |made| made.reward_calls) * self.members as u64)),
            ("modes_seen", json!(modes_seen.map(|seen| seen as u64))),
            ("loss", json!(loss)),
            ("log_z", json!(self.log_z())),
        ]
    }
}
