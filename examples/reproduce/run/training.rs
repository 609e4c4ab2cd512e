//! The training loop of the tasks, and their reports. A report is printed as numbers and pictures for users,
//! and as one line of JSON for programs.

use gfn::run::{FitOutcome, MetricsFile, TensorBoard, Validation};
use gfn::train::AverageFor;
use gfn_extras::explore::{Thompson, thompson_step};
use serde_json::Map;

use super::folder::write_json;
use super::seeds;
use super::steps::{StepRecord, Steps, read_steps};
use super::task_flags::{self, TaskFlags};
use crate::plot::Scale;
use crate::prelude::*;

/// The exit code that shells report for a program that was ended by Ctrl-C.
pub(super) const INTERRUPTED: i32 = 130;

impl Run<'_> {
    /// Trains a policy with the settings of the flags and with the task's observers. `measure` is called
    /// every few steps, and its time isn't counted as training time. If several threads or processes train
    /// together, returns `None` for all of them but the first. Also returns `None` if a signal interrupted
    /// the run of one of several seeds.
    pub(super) fn train<E: TrainEnv>(
        &self,
        trainer: Trainer<E>,
        mut measure: impl FnMut(&Trainer<E>) -> Result<Metrics>,
        observers: Vec<&mut dyn Observer<E>>,
    ) -> Result<Option<(Trainer<E>, Report)>> {
        let common = self.common;
        let steps = self.steps();
        let started = Instant::now();
        let mut trainer = self.prepare(trainer)?;
        let mut stats = TrainingStats::without_steps(trainer.context().config.batch, started);
        (stats.params, stats.members) = (trainer.n_parameters(), members::count());
        let run = common.run_folder().filter(|_| members::is_first());
        if let (Some(run), Some(flags)) = (&run, TaskFlags::of_process()) {
            let context = trainer.context();
            let training = json!(context.config);
            let objective = json!(context.objective.name());
            let sizes = [("steps", json!(steps)), ("parameters", json!(stats.params))];
            run.describe(flags, &[[("training", training), ("objective", objective)], sizes].concat())?;
            // The records of the steps before a resume come from the metrics file in the run folder.
            stats.steps = read_steps(&run.metrics(), trainer.steps_done())?;
        }
        let average = |trainer: &Trainer<E>| trainer.averaged(|_| measure(trainer));
        let mut validation =
            common.measures_every(steps).map(|every| Validation::every(every, average)).transpose()?;
        let mut lines = common.metrics().map(MetricsFile::new);
        let mut events = common.tensorboard.as_ref().map(TensorBoard::new);
        let mut keep = |_: &Trainer<E>, record: &mut Record| {
            stats.steps.push(StepRecord::from_record(record)?);
            seeds::count_steps(1);
            let ends = seeds::is_interrupted();
            Ok(if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        let mut fit = Fit::new(steps);
        if let Some(validation) = &mut validation {
            fit = fit.observe(validation);
        }
        for observer in observers {
            fit = fit.observe(observer);
        }
        fit = fit.observe(&mut keep);
        if let Some(lines) = &mut lines {
            fit = fit.observe(lines);
        }
        if let Some(events) = &mut events {
            fit = fit.observe(events);
        }
        let save = common.save();
        if let Some(path) = &save {
            fit = fit.checkpoint(path, common.checkpoint_every)?.stop_on_interrupt();
        }
        let ended = match trainer.source::<Thompson>() {
            None => fit.run_with_outcome(&mut trainer)?,
            Some(_) => fit.run_by(&mut trainer, &mut thompson_step)?,
        };
        if common.ema.is_some() && ended != FitOutcome::Interrupted {
            // The checkpoint was saved above, with both the trained and the averaged parameters. The report
            // is about the averaged parameters.
            trainer.take_average()?;
        }
        if !members::is_first() {
            return Ok(None);
        }
        let settings = run.as_ref().map(|run| run.settings());
        [&settings, &common.metrics(), &save, &common.tensorboard]
            .into_iter()
            .flatten()
            .for_each(|path| report_file(path));
        let is_interrupted = ended == FitOutcome::Interrupted || seeds::is_interrupted();
        if let (true, Some(path)) = (ended != FitOutcome::Done && is_interrupted, &save) {
            report_interruption(path, run.is_some(), common.seed, trainer.steps_done());
            if seeds::interrupt_all_seeds() {
                return Ok(None);
            }
            std::process::exit(INTERRUPTED);
        }
        let mut report = Report::new(stats);
        report.set("rollouts", trainer.context().rollout_place().to_string());
        Ok(Some((trainer, report)))
    }

    /// Trains the policy, and prints the report. `add` adds entries to the report.
    pub(crate) fn finish<E: TrainEnv>(
        &self,
        trainer: Trainer<E>,
        measure: impl FnMut(&Trainer<E>) -> Result<Metrics>,
        observers: Vec<&mut dyn Observer<E>>,
        add: impl FnOnce(&Trainer<E>, &mut Report) -> Result<()>,
    ) -> Result<()> {
        let Some((trainer, mut report)) = self.train(trainer, measure, observers)? else { return Ok(()) };
        add(&trainer, &mut report)?;
        self.print(report)
    }

    /// Runs a search that trains no policy, and returns a report with the time of the search.
    pub(crate) fn search(&self, search: impl FnOnce() -> Result<()>) -> Result<Report> {
        refuse_training()?;
        if members::count() > 1 {
            let one = "1: leave out --dist and --threads-for replicas";
            return Err(Error::config(
                "the number of processes or replicas of a search without a policy",
                members::count(),
                one,
            ));
        }
        let started = Instant::now();
        search()?;
        Ok(Report::new(TrainingStats::without_steps(self.config.batch, started)))
    }

    /// Connects the trainer to the other threads or processes that train with it, if there are any. Then
    /// resumes a checkpoint if there is one, or else fills the replay buffer.
    fn prepare<E: TrainEnv>(&self, trainer: Trainer<E>) -> Result<Trainer<E>> {
        let mut trainer = members::join(trainer)?;
        let steps = self.steps();
        if let Some(decay) = self.common.ema {
            let purpose =
                if self.common.ema_sampling { AverageFor::Sampling } else { AverageFor::Evaluation };
            trainer = trainer.with_average(decay, purpose)?;
        }
        if let Some(path) = self.common.resume() {
            trainer.resume(&path)?;
            let path = path.display();
            let done = trainer.steps_done();
            if done >= steps {
                tell(format_args!(
                    "{path} has {done} steps, and --steps is {steps}: nothing is trained, the policy is only \
                     evaluated; give more --steps to train further"
                ));
            }
        } else if self.recipe.prefill > 0 && trainer.replay().is_some() {
            trainer.prefill(self.recipe.prefill)?;
        }
        Ok(trainer)
    }
}

/// Tells the user how to continue an interrupted run, whose checkpoint is at `path`.
fn report_interruption(path: &Path, has_folder: bool, seed: u64, steps_done: usize) {
    let is_seed = task_flags::is_one_of_several();
    let seed = if is_seed { format!("out --seeds, with --seed {seed}") } else { String::new() };
    let command = format!("continue with{seed} --save {0} --resume {0}", path.display());
    let remedy = if has_folder { "the same command resumes the run" } else { &command };
    tell(format_args!("interrupted: saved at step {steps_done}; {remedy}"));
}

/// The report of a task. The report has the statistics of training, named entries, and panels that are drawn
/// beside the curves of training.
pub(crate) struct Report {
    pub(crate) stats: TrainingStats,
    figures: Map<String, Value>,
    pub(crate) panels: Vec<Panel>,
}

/// The names of entries that every report has. An entry is `null` if its value is unknown.
const COMMON: [&str; 4] = ["log_z_true", "l1", "tv", "jsd"];

impl Report {
    fn new(stats: TrainingStats) -> Self {
        let mut report = Self { stats, figures: Map::new(), panels: Vec::new() };
        for name in &COMMON {
            report.set(name, Value::Null);
        }
        report.set("exact", false);
        report
    }

    /// Sets an entry of the report. `name` is its key in the line of JSON.
    pub(crate) fn set(&mut self, name: &str, value: impl Serialize) {
        self.figures.insert(name.to_owned(), json!(value));
    }

    /// Adds all entries of a JSON object to the report.
    pub(crate) fn extend(&mut self, figures: Value) {
        if let Value::Object(figures) = figures {
            self.figures.extend(figures);
        }
    }

    /// Sets the entry for the target's log Z, if log Z is known.
    pub(crate) fn set_log_z(&mut self, log_z: Option<f64>) {
        if let Some(log_z) = &log_z {
            self.set("log_z_true", log_z);
        }
    }

    /// Sets the entries for the target's log Z, and for the distance of the learned log Z from it.
    pub(crate) fn log_z_error(&mut self, log_z: f64) {
        self.extend(json!({ "log_z_true": log_z, "log_z_error": (self.stats.log_z() - log_z).abs() }));
    }

    /// Sets the entries for the exact distances L1, TV and JSD. The entries are means over `distances`.
    pub(crate) fn exact_mean(&mut self, distances: &[Distances]) {
        let n = distances.len() as f64;
        let mean = |of: fn(&Distances) -> f64| distances.iter().map(|one| of(one) / n).sum::<f64>();
        self.extend(
            json!({ "l1": mean(|d| d.l1), "tv": mean(|d| d.tv), "jsd": mean(|d| d.jsd), "exact": true }),
        );
    }

    /// Sets an entry with the reason why the report has no exact distances. Sets the entries that count modes
    /// to null.
    pub(crate) fn not_listed(&mut self, run: &Run<'_>) {
        let why = if run.common.is_frozen() {
            "the policy is frozen (--lr 0)".to_owned()
        } else {
            format!("there are more than {} states", run.recipe.exact_up_to)
        };
        self.extend(json!({ "modes_found": null, "modes_total": null, "why_not_exact": why }));
    }
}

impl Run<'_> {
    /// Draws the pictures, writes the result file, and prints the report for users. With `--json` the report
    /// is also printed as one line of JSON.
    pub(crate) fn print(&self, mut report: Report) -> Result<()> {
        self.draw_training(&mut report)?;
        report.extend(
            json!({ "example": task_flags::example(), "seed": self.common.seed, "steps": self.steps(),
            "threads": self.common.threads, "device": self.common.device.to_string() }),
        );
        // A value that the task has set replaces the statistic of training with the same name.
        let mut line = report.stats.figures();
        merge(&mut line, Value::Object(report.figures));
        if let Some(run) = self.common.run_folder() {
            write_json(&run.result(), &line)?;
            report_file(&run.result());
        }
        if seeds::store_report(&line) {
            return Ok(());
        }
        // With `--json`, standard output has only the line of JSON, so numbers for users go to standard
        // error.
        if self.common.json {
            tell(format_args!("{line:#}"));
            return print(line);
        }
        print(format_args!("{line:#}"))
    }

    /// Draws a figure with the curves of the loss, log Z and other metrics, and with the task's panels.
    fn draw_training(&self, report: &mut Report) -> Result<()> {
        let records = &report.stats.steps.records;
        let metrics: BTreeSet<&str> =
            records.iter().flat_map(|step| step.metrics.keys().map(String::as_str)).collect();
        let mut figure = Figure::new(task_flags::command());
        for name in ["loss", "log_z"].into_iter().chain(metrics) {
            let title = name.replace('_', " ");
            let is_by_calls = name == MODES;
            let x = |step: &StepRecord| if is_by_calls { step.reward_calls as f64 } else { step.step as f64 };
            let points = records.iter().filter_map(|step| Some((x(step), step.figure(name)?)));
            let mut panel = Panel::new(&title).labels(if is_by_calls { "reward calls" } else { "step" }, "");
            panel = panel.curve(Curve::new("training", points));
            if name == "log_z" {
                let truth = report.figures.get("log_z_true").and_then(Value::as_f64);
                panel = truth.map_or(panel.clone(), |value| panel.reference(value, "true"));
            } else if !is_by_calls {
                panel = panel.y_scale(Scale::Log);
            }
            figure = figure.panel(panel);
        }
        let figure = report.panels.drain(..).fold(figure, Figure::panel);
        self.common.draw("training", |path| figure.write(path))
    }
}

/// The statistics of training over all steps of the run, including the steps before a resume. In a run
/// without steps, numbers about steps are NaN.
#[derive(Default)]
pub(crate) struct TrainingStats {
    batch: usize,
    params: i64,
    members: usize,
    /// The seconds spent before the first step, which include filling the replay buffer.
    filled_s: f64,
    steps: Steps,
}

/// The name of the metric that counts the distinct modes found so far. The curve of this metric is drawn
/// against reward calls, and all other curves against steps.
const MODES: &str = "modes_found";

impl StepRecord {
    /// Returns the metric with this name; `None` if it wasn't measured after this step.
    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "loss" => self.loss,
            "log_z" => self.log_z,
            metric => self.metrics.get(metric).copied().flatten(),
        }
    }

    /// Returns the seconds that the steps of this record took, summed over the phases of a step, such as
    /// sampling.
    fn time(&self) -> f64 {
        self.seconds.iter().sum()
    }
}

impl TrainingStats {
    /// Returns statistics without steps, for work that began at the time `started` and has just ended.
    fn without_steps(batch: usize, started: Instant) -> Self {
        Self { batch, members: 1, filled_s: started.elapsed().as_secs_f64(), ..Self::default() }
    }

    /// Returns the records after the warm-up, which is the first quarter of all records.
    fn warm(&self) -> &[StepRecord] {
        &self.steps.records[self.steps.records.len() / 4..]
    }

    /// Returns the mean of the numbers that `of` returns for the records after the warm-up.
    fn mean(&self, of: impl Fn(&StepRecord) -> f64) -> f64 {
        self.warm().iter().map(of).sum::<f64>() / self.warm().len() as f64
    }

    /// Returns the training steps per second after the warm-up. The speed is the median over nine windows of
    /// records.
    pub(crate) fn its_per_s(&self) -> f64 {
        let steps = |window: &[StepRecord]| window.iter().map(|step| step.n).sum::<usize>() as f64;
        let rate = |window: &[StepRecord]| steps(window) / window.iter().map(StepRecord::time).sum::<f64>();
        let mut windows: Vec<f64> =
            self.warm().chunks(self.warm().len().div_ceil(9).max(1)).map(rate).collect();
        windows.sort_by(f64::total_cmp);
        windows.get(windows.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Returns log Z after the last step; NaN if it is unknown.
    fn log_z(&self) -> f64 {
        self.steps.records.last().and_then(|step| step.log_z).unwrap_or(f64::NAN)
    }

    /// Returns the statistics of training as entries of the report. The loss is a mean over the last tenth of
    /// the records.
    fn figures(&self) -> Value {
        let mean_len = self.mean(|step| step.mean_len.unwrap_or(f64::NAN));
        let records = &self.steps.records;
        let tail = &records[records.len() - records.len().div_ceil(10)..];
        let loss = tail.iter().map(|step| step.loss.unwrap_or(f64::NAN)).sum::<f64>() / tail.len() as f64;
        let modes_seen = records.iter().filter_map(|step| step.figure(MODES)).next_back();
        let phase = |k: usize| 1e3 * self.mean(|step| step.seconds[k] / step.n as f64);
        json!({
            "batch": self.batch,
            "members": self.members,
            "params": self.params,
            "train_s": self.filled_s + records.iter().map(StepRecord::time).sum::<f64>(),
            "its_per_s": self.its_per_s(),
            "mean_len": mean_len,
            "states_per_s": self.its_per_s() * self.batch as f64 * mean_len,
            "distinct_share": self.mean(|step| step.distinct as f64 / step.states as f64),
            "phases_ms": { "sample": phase(0), "score": phase(1), "backward": phase(2), "update": phase(3) },
            // Each of the threads or processes that train together counts only the reward calls for its own
            // share of the batch. All shares are equal, so the sum is a product.
            "reward_calls": records.last().map_or(0, |step| step.reward_calls) * self.members as u64,
            "modes_seen": modes_seen.map(|seen| seen as u64),
            "loss": loss,
            "log_z": self.log_z(),
        })
    }
}

/// Returns no metrics. This is the `measure` function of tasks that measure nothing during training.
pub(crate) fn unmeasured<E: TrainEnv>(_: &Trainer<E>) -> Result<Metrics> {
    Ok(Metrics::new())
}

/// Returns metrics with the JSD, or without any metric for `None`.
pub(crate) fn jsd(value: Option<f64>) -> Metrics {
    value.map(|jsd| ("jsd".to_owned(), jsd)).into_iter().collect()
}
